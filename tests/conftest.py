"""What tests of several folders share."""

from __future__ import annotations

import pytest

from akunu import _core


@pytest.fixture
def one_arithmetic(monkeypatch: pytest.MonkeyPatch) -> str:
    """The best level of the CPU at which prompt rows have the bits of generated ones, now in use.

    There inputs of quantised weights are rounded to int8 throughout, as llama.cpp does it.
    """
    kinds = {
        str(level["name"]): _core.activation_kind("cpu", "q8_0", "many", str(level["name"]))
        for level in _core.levels("cpu")
        if level["is_available"]
    }
    best = [name for name, kind in kinds.items() if kind == "q8_32"][-1]
    monkeypatch.setenv("AKUNU_CPU_ISA", best)
    return best
