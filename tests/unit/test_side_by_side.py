"""tools/side_by_side.py measures what it says; how fast that is, no test asks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.side_by_side import WIDTHS, measured

from akunu.hub.packaged_models import PACKAGED_MODELS

pytestmark = pytest.mark.tools


def test_every_width_and_both_waits_are_measured() -> None:
    found = measured(PACKAGED_MODELS["ember"], rounds=1, long=256)
    assert set(found["tokens_per_second"]) == set(WIDTHS)
    assert set(found["times_one"]) == set(WIDTHS) - {1}
    assert all(value > 0 for value in found["tokens_per_second"].values())
    assert found["short_alone_ms"] > 0
    assert found["short_beside_ms"] > 0
    assert found["longest_mixed_step_ms"] > 0
    assert found["rounds_in_time"] in (0, 1)
