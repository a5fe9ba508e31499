"""docs/reference/benchmarks.md: its table of floors is the tool's, of the results beside it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.floors import BEGIN, END, rows
from tools.results import load

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_of_the_results() -> None:
    results = load(ROOT / "benchmarks" / "floors.csv", "intel-amx/floors")
    page = (ROOT / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].strip() == "\n".join(rows(results))


def test_a_floor_is_the_longer_of_reading_and_multiplying_and_a_rate_the_median() -> None:
    limits = {"read_gb_per_s": 20, "bf16_gop_per_s": 5, "int8_gop_per_s": 4, "float_gop_per_s": 3}
    row = {
        **{"model": "m.gguf", "cpu_info": "chip", "isa_level": "amx", "n_threads": 2},
        **{"n_prompt": 0, "n_gen": 64, "n_depth": 8, "test_time": "2026-01-02T03:04:05Z"},
        **{"avg_ts": 30.0, "samples_ns": [2_000_000_000, 2_400_000_000, 2_000_000_000]},
        **{"read_gb_per_s": 15.0, "gop_per_s": 1.0, "limits": limits},
        **{"bandwidth_share": 0.75, "compute_share": 0.25},
    }
    assert rows([row])[2] == "| m.gguf | tg64 @ 8 | 32.0 | 40.0 | 80 % | 16.0 | 1 |"
