"""The table of `python -m tools.compare speech`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.speech import Measured, markdown

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[2]


def test_the_table_has_medians_of_turns_and_of_their_pairs() -> None:
    ours = Measured(wall=[1.0, 2.0, 10.0], cpu=[2.0, 2.0, 2.0], n_words=7)
    theirs = Measured(wall=[2.0, 3.0, 40.0], cpu=[3.0, 1.0, 5.0], n_words=8)
    lines = markdown({"beams": {"akunu": ours, "peer": theirs}}).splitlines()
    assert lines[2:] == [
        "| one window at a time, five beams | akunu | 7 | 2.00 | 2.00 | 1.00 | 1.00 |",
        "| one window at a time, five beams | peer | 8 | 3.00 | 3.00 | 2.00 | 1.50 |",
    ]


def test_a_mode_that_is_none_is_said() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tools.compare", "speech", "model", "a.wav"),
            *("--peer-model", "other", "--modes", "greedy,fast"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "--modes are of greedy, beams, batched, got fast" in done.stderr
