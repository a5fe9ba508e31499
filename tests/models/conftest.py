"""Models are built once per run and format; `device` runs a test on every device and level."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from golden_values import SEED
from random_models import ModelCase, case_cache

import akunu
from akunu import _core

# Emulated kernels run unchecked here: tests/kernels looks at each of them.
PLACES = [("cpu", "generic"), ("cpu", "avx2"), ("metal", ""), ("metal-emulated", "plain")]


@pytest.fixture(scope="session")
def model_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelCase]:
    """`model_case(kind, weight_format="f32")`: the random model, as a file."""
    return case_cache(tmp_path_factory.mktemp("models"), seed=SEED)


@pytest.fixture(params=[place for place in PLACES if place[0] in _core.backends()], ids="-".join)
def device(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    model_case: Callable[..., ModelCase],
) -> str:
    """The device of models loaded by this test; the environment says the level."""
    name, level = request.param
    if level:
        monkeypatch.setenv("AKUNU_CPU_ISA" if name == "cpu" else "AKUNU_METAL_LEVEL", level)
    try:
        akunu.load(model_case("llama").path, device=name, threads=1).close()
    except akunu.ArgumentError as error:
        if "does not offer" not in str(error):
            raise
        pytest.skip(str(error))
    return str(name)
