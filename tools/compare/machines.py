"""Tables of several machines: a few models, prompts and tokens, next to the peer.

    python -m tools.compare machines benchmarks --write docs/reference/benchmarks.md
    python -m tools.compare machines benchmarks --short --write README.md

Of each machine the level that akunu takes there by itself, or the one that is named; of each test
the newest measurement.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import TypeAlias

from tools.compare.report import marks, replace_between
from tools.compare.summary import all_lines

Lines: TypeAlias = dict[tuple[str, str], dict[str, str]]
"""The newest line of results of each model and test."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What results call it, and what a reader has to know of it."""

    key: str
    level: str
    name: str


MACHINES = (
    Machine("intel-amx", "amx", "Intel Xeon with AMX"),
    Machine("zen5", "avx512", "AMD Zen 5, AVX-512"),
    Machine("zen4", "avx512", "AMD Zen 4, AVX-512"),
    Machine("zen3", "avx2", "AMD Zen 3, AVX2"),
)
FORMATS = ("Q4_0", "Q4_K_M", "Q8_0")
TESTS = ("pp512", "tg64")
TABLE = "machines"
SHORT = "machines in short"

_HEADER = (
    "| machine, two cores of it | weights | prompt: akunu | llama.cpp | ratio "
    "| tokens: akunu | llama.cpp | ratio |",
    "|---|---|---:|---:|---:|---:|---:|---:|",
)


def newest(lines: Iterable[dict[str, str]]) -> Lines:
    """The latest line of each (model, test)."""
    found: Lines = {}
    for line in sorted(lines, key=lambda line: line["date"]):
        found[line["model"], line["test"]] = line
    return found


def read(folder: Path, machine: Machine) -> Lines:
    lines = all_lines(folder / "speed.csv", f"{machine.key}/compare-*")
    return newest(line for line in lines if line["level"] == machine.level)


def markdown(found: Sequence[tuple[Machine, Lines]]) -> str:
    """The table; its last rows are geometric means over all formats that were measured."""
    rows, means = [*_HEADER], []
    for machine, lines in found:
        model = sorted({name for name, _ in lines})[0].rpartition("-")[0]
        for weights in FORMATS:
            cells = [machine.name, weights]
            for test in TESTS:
                line = lines[f"{model}-{weights}", test]
                cells += [line["akunu"], line["peer"], f"{float(line['ratio']):.2f}"]
            rows.append("| " + " | ".join(cells) + " |")
        means.append(
            "{}: {:.2f} and {:.2f} ({} formats, {} to {})".format(machine.name, *ratio_means(lines))
        )
    versions = {line["peer_version"] for _, lines in found for line in lines.values()}
    facts = (
        f"Tokens a second of {model}, medians; the peer is {' and '.join(sorted(versions))}. "
        f"Geometric means of the ratios, prompts and tokens, over all formats that were measured: "
        f"{'; '.join(means)}."
    )
    return "\n".join([*rows, "", facts])


def ratio_means(lines: Lines) -> tuple[float, float, int, str, str]:
    """Geometric means of ratios, prompts and tokens; the number of formats; first and last date."""
    ratios = {
        test: [float(line["ratio"]) for (_, name), line in lines.items() if name == test]
        for test in TESTS
    }
    dates = sorted(line["date"][:10] for line in lines.values())
    prompts, tokens = (geometric_mean(ratios[test]) for test in TESTS)
    return prompts, tokens, len(ratios["tg64"]), dates[0], dates[-1]


def short(found: Sequence[tuple[Machine, Lines]]) -> str:
    """A line for each machine, with the means over all formats."""
    rows = ["| two cores of | prompts | generated tokens | formats | measured |"]
    rows.append("|---|---:|---:|---:|---|")
    for machine, lines in found:
        prompts, tokens, n_formats, _, last = ratio_means(lines)
        rows.append(f"| {machine.name} | {prompts:.1f} | {tokens:.1f} | {n_formats} | {last} |")
    return "\n".join(rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="where speed.csv is")
    parser.add_argument("--write", type=Path, help="put the table into this document")
    parser.add_argument("--short", action="store_true", help="a line for each machine")


def run(arguments: argparse.Namespace) -> int:
    found = [(each, read(arguments.folder, each)) for each in MACHINES]
    table = short(found) if arguments.short else markdown(found)
    if arguments.write is None:
        print(table)
        return 0
    begin, end = marks(SHORT if arguments.short else TABLE)
    page = arguments.write.read_text(encoding="utf-8")
    text = replace_between(page, table, begin=begin, end=end)
    arguments.write.write_text(text, encoding="utf-8")
    return 0
