"""Curves of speed over threads, drawn as SVG: both axes in steps of doubling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP = 360, 280, 52, 34  # of one panel, and where its axes begin
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df")


@dataclass(frozen=True, slots=True)
class Curve:
    """Tokens a second of an engine in one test, by the number of threads."""

    engine: str
    test: str
    rates: dict[int, float]


def plot(curves: list[Curve]) -> str:
    """A panel for each test, a line for each engine; dashed: as many times as fast as threads."""
    tests = list(dict.fromkeys(curve.test for curve in curves))
    engines = list(dict.fromkeys(curve.engine for curve in curves))
    parts = []
    for number, test in enumerate(tests):
        panel = _panel([curve for curve in curves if curve.test == test], engines)
        parts.append(f'<g transform="translate({number * WIDTH} 0)">{panel}</g>')
    size = f'width="{WIDTH * len(tests)}" height="{HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _panel(curves: list[Curve], engines: list[str]) -> str:
    threads = sorted({count for curve in curves for count in curve.rates})
    least, most = threads[0], threads[-1]
    low = min(min(curve.rates.values()) for curve in curves)
    high = max(curve.rates[min(curve.rates)] * most / least for curve in curves)
    high = max(high, *(max(curve.rates.values()) for curve in curves))
    bottom = HEIGHT - 36
    right = WIDTH - 12

    def x(count: float) -> float:
        return LEFT + (right - LEFT) * _share(count, least, most)

    def y(rate: float) -> float:
        return bottom - (bottom - TOP) * _share(rate, low, high)

    parts = [
        f'<text x="{LEFT}" y="14" font-weight="bold">{escape(curves[0].test)}, tokens/s</text>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#57606a"/>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">threads</text>',
    ]
    for count in threads:
        parts.append(f'<text x="{x(count)}" y="{bottom + 14}" text-anchor="middle">{count}</text>')
    for step in range(5):
        rate = low * (high / low) ** (step / 4)
        parts.append(
            f'<text x="{LEFT - 5}" y="{y(rate) + 4}" text-anchor="end">{_number(rate)}</text>'
        )
    for curve in curves:
        number = engines.index(curve.engine)
        colour = COLOURS[number % len(COLOURS)]
        counts = sorted(curve.rates)
        points = " ".join(f"{x(count):.1f},{y(curve.rates[count]):.1f}" for count in counts)
        first = curve.rates[counts[0]]
        ideal = first * counts[-1] / counts[0]
        parts += [
            f'<line x1="{x(counts[0]):.1f}" y1="{y(first):.1f}" x2="{x(counts[-1]):.1f}" '
            f'y2="{y(ideal):.1f}" stroke="{colour}" stroke-dasharray="3 4" opacity="0.5"/>',
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{LEFT + 8}" y="{TOP + 12 + 14 * number}" fill="{colour}">'
            f"{escape(curve.engine)}</text>",
        ]
    return "".join(parts)


def _number(rate: float) -> str:
    return f"{rate:.3g}" if rate < 100 else f"{rate:,.0f}"


def _share(value: float, low: float, high: float) -> float:
    """Where it lies between the two, in steps of doubling; 0 where they are the same."""
    return math.log(value / low) / math.log(high / low) if high > low else 0.0
