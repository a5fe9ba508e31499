"""Writes the charts of docs/speed.md from benchmarks/: python -m tools.speed_charts"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

from tools.compare import machines, scaling
from tools.compare.curves import COLOURS, Curve, plot
from tools.results import load

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "images"
DATA: Final = ROOT / "benchmarks"

Groups: TypeAlias = Mapping[str, Mapping[str, float]]
"""Values of bars by group, then by series."""

# In benchmarks/h200: akunu in turns with llama.cpp, and the newest run of texts side by side.
RUN_OF_PAIRS, RUN_OF_TEXTS = "6", "17"
AKUNU, PEER = ("warpgroups", "streamed"), ("llama.cpp v0.5.0", "")
TESTS_OF_GPU: Final = {
    "pp512": "prompt of 512",
    "pp2048": "prompt of 2,048",
    "tg128": "generated tokens",
}

WIDTH, LEFT, BAR, GAP, TOP = 720, 190, 15, 12, 44
MOST_OF_RATIOS = 100  # larger values are rates


def charts() -> dict[str, str]:
    """Return the charts by the names of their files."""
    return {
        "cpu.svg": bars("Times as fast as llama.cpp, two cores", cpu_ratios()),
        "gpu.svg": bars("Times as fast as llama.cpp, one H200", gpu_ratios()),
        "gpu-texts.svg": bars(
            "Tokens per second of all texts together, Llama-3.1-8B Q4_0, one H200", texts_of_gpu()
        ),
        "threads.svg": plot(curves_of_threads()),
    }


def cpu_ratios() -> Groups:
    """Return the geometric means of prompts and tokens of each machine."""
    found = {}
    for machine in machines.MACHINES:
        prompts, tokens = machines.ratio_means(machines.read(DATA, machine))[:2]
        found[machine.name] = {"prompt of 512": prompts, "generated tokens": tokens}
    return found


def gpu_ratios() -> Groups:
    """Return the ratios of medians of each model and test."""
    rates: dict[tuple[str, str, tuple[str, str]], list[float]] = {}
    for line in _lines("cuda.csv"):
        if line["run"] == RUN_OF_PAIRS:
            key = line["model"], line["test"], (line["prompts"], line["rows"])
            rates.setdefault(key, []).append(float(line["tokens_per_second"]))
    models = dict.fromkeys(model for model, _, engine in rates if engine == PEER)
    return {
        model: {
            name: median(rates[model, test, AKUNU]) / median(rates[model, test, PEER])
            for test, name in TESTS_OF_GPU.items()
        }
        for model in models
    }


def texts_of_gpu() -> Groups:
    """Return tokens a second of all texts together, by their number."""
    lines = [line for line in _lines("crowd.csv") if line["run"] == RUN_OF_TEXTS]
    usual = [line for line in lines if line["prompt_tokens"] == line["reply_tokens"] == "128"]
    return {
        _texts(int(line["texts"])): {"akunu": float(line["tokens_per_second"])} for line in usual
    }


def _texts(count: int) -> str:
    return f"{count} texts" if count > 1 else "1 text"


def curves_of_threads() -> list[Curve]:
    """Return prompts and tokens of akunu with 1 to 16 threads."""
    (result,) = load(DATA / "scaling.csv", "intel-amx/scaling-qwen3-0.6b-q4_0")
    return [curve for curve in scaling.curves(result) if curve.engine == "akunu"]


def _lines(name: str) -> list[dict[str, str]]:
    with (DATA / "h200" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def bars(title: str, groups: Groups) -> str:
    """Return horizontal bars, grouped by key; for ratios also a line where both are as fast."""
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    most = max(value for values in groups.values() for value in values.values())
    step = (WIDTH - LEFT - 60) / most
    y = TOP
    parts = [f'<text x="8" y="18" font-weight="bold">{escape(title)}</text>']
    for number, name in enumerate(series):
        x = LEFT + 150 * number
        parts.append(f'<rect x="{x}" y="26" width="10" height="10" fill="{COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 15}" y="35">{escape(name)}</text>')
    for label, values in groups.items():
        middle = y + BAR * len(values) / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>')
        for name, value in values.items():
            colour = COLOURS[series.index(name)]
            size = f'width="{step * value:.1f}" height="{BAR - 2}"'
            parts.append(f'<rect x="{LEFT}" y="{y}" {size} fill="{colour}"/>')
            end = LEFT + step * value + 5
            text = f"{value:.1f}" if most < MOST_OF_RATIOS else f"{value:,.0f}"
            parts.append(f'<text x="{end:.1f}" y="{y + BAR - 4}">{text}</text>')
            y += BAR
        y += GAP
    if most < MOST_OF_RATIOS:
        line = f"M{LEFT + step:.1f} {TOP - 4}V{y}"
        parts.append(f'<path d="{line}" stroke="#57606a" stroke-dasharray="3 4"/>')
    size = f'width="{WIDTH}" height="{y + 6}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Write the charts."""
    for name, chart in charts().items():
        (FOLDER / name).write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
