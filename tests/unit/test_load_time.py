"""docs/reference/benchmarks.md: its table of load times is the tool's, of the results beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.load_time import BEGIN, END, rows
from tools.results import load

ROOT = Path(__file__).parents[2]

RUN = {
    **{"imports": 0.1, "load": 0.1, "first_logits": 0.5, "forward": 0.4},
    **{"first_text": 0.3, "from_process_start": 0.9, "major_faults": 0},
}
RESULT = {
    **{"model": "m.gguf", "bytes": 4_000_000_000, "cpu_info": "chip", "n_threads": 2},
    **{"test_time": "2026-01-02T03:04:05Z", "runs": [RUN]},
}


def test_the_page_has_the_table_of_the_results() -> None:
    results = load(ROOT / "benchmarks" / "load.csv", "intel-amx/load")
    page = (ROOT / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].strip() == "\n".join(rows(results))


def test_what_a_forward_pass_takes_does_not_count() -> None:
    cells = [cell.strip() for cell in rows([RESULT])[2].split("|")]
    times = ["0.10 s", "0.50 s", "0.40 s", "0.20 s", "0.30 s", "0.50 s", "0.30 s"]
    assert cells[1:-1] == ["m.gguf", "4.00 GB", *times]


def test_runs_that_waited_for_the_disk_do_not_count() -> None:
    cold = {**RUN, "load": 9.0, "major_faults": 1}
    assert rows([{**RESULT, "runs": [cold, RUN, cold]}]) == rows([RESULT])
    with pytest.raises(SystemExit, match=r"m\.gguf: every run"):
        rows([{**RESULT, "runs": [cold]}])
