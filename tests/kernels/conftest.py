"""Fixtures of the kernel tests: every ISA level that this machine has."""

from __future__ import annotations

import numpy as np
import pytest

from akunu import _core


@pytest.fixture(params=_core.isa_levels())
def isa(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)
