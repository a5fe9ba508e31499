"""What tests of several folders share."""

from __future__ import annotations

import pytest

from arithmetic import available_levels, is_one_arithmetic


@pytest.fixture
def one_arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The best level of the CPU at which prompt rows have the bits of generated ones, now in use.

    That is with a cache in F32, for the test's `weight_format`, or weights in blocks: their inputs
    are rounded to int8 throughout, as llama.cpp does it.
    """
    params = getattr(request.node, "callspec", None)
    weight_format = params.params.get("weight_format", "q8_0") if params else "q8_0"
    best = [name for name in available_levels() if is_one_arithmetic(weight_format, name)][-1]
    monkeypatch.setenv("AKUNU_CPU_ISA", best)
    return best


@pytest.fixture
def matrix_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level of the CPU whose prompt rows go through a matrix unit; skips without one."""
    found = [name for name in available_levels() if not is_one_arithmetic("q8_0", name)]
    if not found:
        pytest.skip("this CPU, or its operating system, offers no matrix unit that akunu knows")
    monkeypatch.setenv("AKUNU_CPU_ISA", found[-1])
