"""The command line of a tool that measures models and keeps its table in a document."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.compare.report import replace_between
from tools.results import load

Results = list[dict[str, Any]]


def run_tool(
    description: str,
    measure_help: str,
    measured: Callable[[Path], Results],
    rows: Callable[[Results], list[str]],
    *,
    begin: str,
    end: str,
) -> int:
    """Measure models into a file of JSON, or make the table of one, between its two marks."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    measure = verbs.add_parser("measure", help=measure_help)
    measure.add_argument("models", type=Path, nargs="+")
    measure.add_argument("-o", "--output", type=Path, required=True)
    report = verbs.add_parser("report", help="print the table, or write it into a document")
    report.add_argument("results", type=Path, help="what `measure` wrote, or a CSV of benchmarks/")
    report.add_argument("--names", default="*/*", help="of a CSV, e.g. zen4/few-rows (%(default)s)")
    report.add_argument("--write", type=Path, help="a document with the two marks")
    arguments = parser.parse_args()
    if arguments.verb == "measure":
        results = [result for model in arguments.models for result in measured(model)]
        arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        return 0
    table = "\n".join(rows(load(arguments.results, arguments.names)))
    if arguments.write is None:
        print(table)
        return 0
    page = arguments.write.read_text(encoding="utf-8")
    text = replace_between(page, table, begin=begin, end=end)
    arguments.write.write_text(text, encoding="utf-8")
    return 0
