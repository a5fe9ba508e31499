"""The tables of README.md and docs/reference/benchmarks.md are those that scripts make."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools import results
from tools.compare import machines, report, summary

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[2]
RAW = ROOT / "benchmarks" / "speed.csv"


@pytest.mark.parametrize(
    ("path", "name", "write"),
    [
        ("README.md", machines.SHORT, machines.short),
        ("docs/reference/benchmarks.md", machines.TABLE, machines.markdown),
    ],
)
def test_the_tables_of_machines_are_what_the_script_makes_of_the_raw_results(path, name, write):
    found = [(each, machines.read(ROOT / "benchmarks", each)) for each in machines.MACHINES]
    begin, end = report.marks(name)
    page = (ROOT / path).read_text("utf-8")
    assert report.replace_between(page, write(found), begin=begin, end=end) == page


@pytest.mark.parametrize("machine", ["zen3", "zen4", "zen5"])
def test_the_tables_of_the_page_are_what_the_script_makes_of_the_raw_results(machine):
    page = (ROOT / "docs" / "reference" / "benchmarks.md").read_text("utf-8")
    for level in ("avx2", "avx512"):
        begin, end = report.marks(f"{machine} {level}")
        if begin in page:
            table = report.markdown(results.load(RAW, f"{machine}/compare-{level}-*"))
            assert report.replace_between(page, table, begin=begin, end=end) == page


@each_line("layers", ["experts", "recurrent"])
@each_line("level", ["avx2", "avx512"])
def test_the_tables_of_layers_are_what_the_script_makes_of_the_raw_results(layers, level):
    page = (ROOT / "docs" / "reference" / "benchmarks.md").read_text("utf-8")
    begin, end = report.marks(f"zen4 {layers} {level}")
    table = report.markdown(results.load(RAW, f"zen4/{layers}-{level}-*"))
    assert report.replace_between(page, table, begin=begin, end=end) == page


def test_every_raw_result_has_its_lines_in_the_summaries():
    kinds = ("compare", "experts", "recurrent")
    lines = [line for kind in kinds for line in summary.all_lines(RAW, f"*/{kind}-*")]
    assert lines
    text = (ROOT / "benchmarks" / "summaries.csv").read_text("utf-8")
    assert set(summary.written(lines).splitlines()) <= set(text.splitlines())


def test_the_newest_of_several_runs_counts():
    lines = [
        {"model": "m", "test": "tg64", "date": date, "ratio": ratio}
        for date, ratio in (("2026-11-02", "2"), ("2026-11-03", "3"), ("2026-11-01", "1"))
    ]
    assert machines.newest(lines)["m", "tg64"]["ratio"] == "3"
