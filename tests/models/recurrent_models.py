"""What tests of models with recurrent layers ask of each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dense_golden import changed

import akunu
from akunu.errors import ModelFormatError, UnsupportedModelError

PAGE = 256


def check_cache(
    folder: Path, *, layers: int, convolved: int, state: int, of_position: int = 0
) -> None:
    """Hold the bytes of the cache to what layers with states keep of a text.

    That is, in F32, of each of so many `layers` the inputs of four positions, `convolved` numbers
    each, and two states of `state` numbers; and in F16 `of_position` numbers of each position,
    those of all layers that attend.
    """
    with akunu.load(folder, context=PAGE, kv_type="f16") as model:
        free = {pages.kind: pages.free for pages in model.occupancy.cache}
        assert free.keys() == ({"states", "full"} if of_position else {"states"})
        expected = free["states"] * layers * (4 * convolved + 2 * state) * 4
        if of_position:
            expected += free["full"] * PAGE * of_position * 2
        assert model.memory["cache"] == expected


def check_refusal(folder: Path, changes: dict[str, Any], message: str) -> None:
    """Hold the message about a directory whose config.json has these changes."""
    changed(folder, **changes)
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as refusal:
        akunu.load(folder)
    assert message in str(refusal.value)
