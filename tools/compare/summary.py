"""Keep a line of each measurement, so that old lines of single seconds can go.

    python -m tools.compare summary benchmarks/speed.csv --add-to benchmarks/summaries.csv

A line that is there already stays; a new one is added at its place.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools import results
from tools.compare.pairs import ratios, spread

COLUMNS = (
    *("machine", "level", "model", "test", "date", "pairs", "akunu", "peer"),
    *("ratio", "lower_quartile", "upper_quartile", "peer_version"),
)


def level_of(system: str) -> str:
    """Of akunu's words about itself: `instruction set level avx2: asked for by AKUNU_CPU_ISA`."""
    return system.partition("level ")[2].partition(":")[0]


def lines_of(machine: str, result: dict[str, Any]) -> list[dict[str, str]]:
    """A line for each test of a file: medians of tokens a second, and of the ratios of pairs."""
    lines = []
    for test in result["tests"]:
        sides = (test["akunu_seconds"], test["peer_seconds"])
        ratio = spread(ratios(*sides))
        values = (
            *(machine, level_of(result["akunu"]["system"]), result["model"].removesuffix(".gguf")),
            *(test["name"], result["date"][:16], len(sides[0])),
            *(f"{spread([test['tokens'] / each for each in side]).median:.4g}" for side in sides),
            *(f"{each:.3f}" for each in (ratio.median, ratio.lower_quartile, ratio.upper_quartile)),
            result["peer"]["version"],
        )
        lines.append({name: str(value) for name, value in zip(COLUMNS, values, strict=True)})
    return lines


def all_lines(path: Path, names: str = "*/*") -> list[dict[str, str]]:
    """Those of the raw results in a CSV that are called so."""
    found = results.read(path, names)
    return [
        line
        for (machine, _), measured in found.items()
        for result in measured
        for line in lines_of(machine, result)
    ]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def written(lines: Sequence[dict[str, str]]) -> str:
    """All lines in their order, each once."""
    rows = sorted({tuple(line[name] for name in COLUMNS) for line in lines})
    return "\n".join(",".join(row) for row in [COLUMNS, *rows]) + "\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", type=Path, help="the CSV that `python -m tools.results keep` made"
    )
    parser.add_argument("--add-to", type=Path, required=True, metavar="FILE", help="a CSV file")


def run(arguments: argparse.Namespace) -> int:
    lines = read(arguments.add_to) if arguments.add_to.exists() else []
    lines += all_lines(arguments.results)
    arguments.add_to.write_text(written(lines), encoding="utf-8")
    return 0
