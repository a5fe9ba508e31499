"""Models are built once per run and format; `isa` runs a test at every instruction set level."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from golden_values import SEED
from random_models import ModelCase, case_cache

import akunu


@pytest.fixture(scope="session")
def model_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelCase]:
    """`model_case(kind, weight_format="f32")`: the random model, as a file."""
    return case_cache(tmp_path_factory.mktemp("models"), seed=SEED)


@pytest.fixture(params=["generic", "avx2"])
def isa(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    model_case: Callable[..., ModelCase],
) -> str:
    """The instruction set level that models loaded by this test run at."""
    level = str(request.param)
    monkeypatch.setenv("AKUNU_CPU_ISA", level)
    try:
        akunu.load(model_case("llama").path, device="cpu", threads=1).close()
    except akunu.ArgumentError as error:
        if "does not offer" not in str(error):
            raise
        pytest.skip(str(error))
    return level
