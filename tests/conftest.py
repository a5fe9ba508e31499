"""What tests of several folders share."""

from __future__ import annotations

import pytest

from akunu import _core


def prompt_kinds() -> dict[str, str]:
    """By level of the CPU that is available, the worst first: how it wants the inputs of prompts.

    "q8_32" is what all want of generated rows; where prompts differ, a matrix unit takes them.
    """
    return {
        str(level["name"]): _core.activation_kind("cpu", "q8_0", "many", str(level["name"]))
        for level in _core.levels("cpu")
        if level["is_available"]
    }


@pytest.fixture
def one_arithmetic(monkeypatch: pytest.MonkeyPatch) -> str:
    """The best level of the CPU at which prompt rows have the bits of generated ones, now in use.

    There inputs of quantised weights are rounded to int8 throughout, as llama.cpp does it.
    """
    best = [name for name, kind in prompt_kinds().items() if kind == "q8_32"][-1]
    monkeypatch.setenv("AKUNU_CPU_ISA", best)
    return best


@pytest.fixture
def matrix_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level of the CPU whose prompt rows go through a matrix unit; skips without one."""
    found = [name for name, kind in prompt_kinds().items() if kind != "q8_32"]
    if not found:
        pytest.skip("this CPU, or its operating system, offers no matrix unit that akunu knows")
    monkeypatch.setenv("AKUNU_CPU_ISA", found[-1])
