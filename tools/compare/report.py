"""Print saved comparisons as tables, or write them into a document."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.compare.pairs import ratios, spread
from tools.results import load

BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"


def marks(table: str | None) -> tuple[str, str]:
    """The lines around a table of its own, or around the main one."""
    if table is None:
        return BEGIN, END
    return f"<!-- measured {table}: begin -->", f"<!-- measured {table}: end -->"


# Above this many processors, other processes have taken part in what was measured.
QUIET = 0.1


def _header(results: Sequence[dict[str, Any]]) -> list[str]:
    peers = " and ".join(dict.fromkeys(result["peer"]["engine"] for result in results))
    return [
        f"| model | test | akunu, tok/s | {peers}, tok/s | ratio | quartiles |",
        "|---|---|---:|---:|---:|---:|",
    ]


def _row(result: dict[str, Any], test: dict[str, Any]) -> str:
    speeds = [
        spread([test["tokens"] / seconds for seconds in test[f"{side}_seconds"]]).median
        for side in ("akunu", "peer")
    ]
    ratio = spread(ratios(test["akunu_seconds"], test["peer_seconds"]))
    cells = [
        result["model"],
        test["name"],
        *(f"{speed:.2f}" if speed < 100 else f"{speed:.0f}" for speed in speeds),
        f"{ratio.median:.3f}",
        f"{ratio.lower_quartile:.3f} to {ratio.upper_quartile:.3f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _facts(result: dict[str, Any]) -> list[str]:
    """Where and with what it was measured."""
    akunu, peer = result["akunu"], result["peer"]
    counts = sorted({len(test["akunu_seconds"]) for test in result["tests"]})
    return [
        f"{result['processor']}, {result['processors']} processors, {result['threads']} threads, "
        f"{' and '.join(map(str, counts))} alternations, {result['date'][:10]}; akunu "
        f"{akunu['version']}, {peer['version']}.",
        f"akunu's own words about itself: `{akunu['system']}`; {peer['engine']}'s: "
        f"`{peer['system']}`.",
    ]


def _noise(results: Sequence[dict[str, Any]]) -> list[str]:
    """A warning where the machine was not quiet."""
    lines = []
    for result in results:
        for test in result["tests"]:
            others = spread(test["akunu_others"] + test["peer_others"])
            if others.median > QUIET:
                lines.append(
                    f"Not quiet: {result['model']}, {test['name']}: other processes used "
                    f"{others.median:.2f} processors."
                )
    return lines


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """A table of all results, with the facts about the machine and the peer below it."""
    rows = [_row(result, test) for result in results for test in result["tests"]]
    facts = list(dict.fromkeys(line for result in results for line in _facts(result)))
    return "\n".join([*_header(results), *rows, "", *[*facts, *_noise(results)]])


def replace_between(document: str, table: str, *, begin: str = BEGIN, end: str = END) -> str:
    """The document with the table between its two marks; ValueError where they are not there."""
    before, found_begin, rest = document.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"the document has no lines {begin} and {end}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", type=Path, nargs="+", help="what `speed` has written, or benchmarks/speed.csv"
    )
    parser.add_argument("--names", default="*/*", help="of the CSV, e.g. zen5/compare-avx2-*")
    parser.add_argument("--write", type=Path, help="put the table into this document")
    parser.add_argument(
        "--table", metavar="NAME", help="between marks of its own, e.g. avx2 (the main table's)"
    )


def run(arguments: argparse.Namespace) -> int:
    table = markdown([each for path in arguments.results for each in load(path, arguments.names)])
    if arguments.write is None:
        print(table)
    else:
        begin, end = marks(arguments.table)
        document = arguments.write.read_text()
        arguments.write.write_text(replace_between(document, table, begin=begin, end=end))
    return 0
