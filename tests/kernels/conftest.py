"""Fixtures of the kernel tests: every ISA level, where the machine has it."""

from __future__ import annotations

import numpy as np
import pytest
from harness import On, pack_params, plain_step, run

from akunu import _core
from akunu.errors import ArgumentError, DeviceError

LEVELS = [str(level["name"]) for level in _core.levels("cpu")]  # all of this build


def why_missing(level: str) -> str | None:
    data = np.zeros((1, 1), np.float32)
    try:
        run("add", [data, data.copy()], pack_params("add", 1), plain_step(1), On(level))
    except (ArgumentError, DeviceError) as error:
        return str(error)
    return None


MISSING = {level: why_missing(level) for level in LEVELS}


@pytest.fixture(params=LEVELS)
def isa(request: pytest.FixtureRequest) -> str:
    level = str(request.param)
    if reason := MISSING[level]:
        pytest.skip(reason)
    return level


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)
