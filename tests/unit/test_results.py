"""tools/results.py: what the tools measured comes back out of a line for each run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools import results

SPEED = {
    "model": "m.gguf",
    "threads": 2,
    "peer": {"engine": "llama.cpp", "version": "0.3"},
    "tests": [
        {"name": "pp512", "tokens": 512, "akunu_seconds": [0.25, 1.5]},
        {"name": "tg64", "tokens": 64, "akunu_seconds": [2e-05], "note": "one, and slow"},
    ],
}
FLOORS = [
    {"model": "a", "samples_ns": [1, 2], "limits": {"read_gb_per_s": 2.5}},
    {"model": "b", "samples_ns": [3], "limits": {"read_gb_per_s": 3.5, "int8_gop_per_s": 1.5}},
]


def keep(folder: Path, machine: str, name: str, measured: Any) -> None:
    file = folder / f"{name}.json"
    file.write_text(json.dumps(measured))
    results.keep(machine, [file], folder)


@pytest.mark.parametrize(
    ("name", "measured", "n_lines"), [("compare-m", SPEED, 2), ("floors", FLOORS, 2)]
)
def test_what_is_kept_comes_back_a_line_for_each_run(
    tmp_path: Path, name: str, measured: Any, n_lines: int
) -> None:
    keep(tmp_path, "zen4", name, measured)
    file = tmp_path / f"{results.kind_of(name)}.csv"
    assert results.load(file) == (measured if isinstance(measured, list) else [measured])
    assert len(file.read_text().splitlines()) == 1 + n_lines


def test_a_newer_result_takes_the_place_of_the_older_of_its_name_alone(tmp_path: Path) -> None:
    for machine in ("zen4", "zen3"):
        keep(tmp_path, machine, "floors", FLOORS)
    keep(tmp_path, "zen4", "floors", FLOORS[1:])
    assert results.load(tmp_path / "floors.csv", "zen4/*") == FLOORS[1:]
    assert results.load(tmp_path / "floors.csv", "zen3/floors") == FLOORS


def test_numbers_have_nine_digits(tmp_path: Path) -> None:
    keep(tmp_path, "zen4", "floors", [{"seconds": [0.12345678901], "bytes": 12345678901}])
    kept = [{"seconds": [0.123456789], "bytes": 12345678901}]
    assert results.load(tmp_path / "floors.csv") == kept


def test_what_has_no_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a name begins with compare-, "):
        keep(tmp_path, "zen4", "other", FLOORS)
    with pytest.raises(ValueError, match="no place for commands"):
        keep(tmp_path, "zen4", "scaling-m", {"points": [{}], "commands": [{"rows": 1}]})
