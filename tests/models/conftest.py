"""Models are built once per run and format; `device` runs a test on every device and level."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine import HERE
from golden_values import SEED
from random_models import ModelCase, case_cache

import akunu

# Emulated kernels run unchecked here: tests/kernels looks at each of them.
CPU_PLACES = [("cpu", "generic"), ("cpu", "avx2")]
PLACES = [*CPU_PLACES, ("metal", ""), ("cuda", ""), ("metal-emulated", "plain")]


@pytest.fixture(scope="session")
def model_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelCase]:
    """`model_case(kind, weight_format="f32")`: the random model, as a file."""
    return case_cache(tmp_path_factory.mktemp("models"), seed=SEED)


def go_to(
    place: tuple[str, str], monkeypatch: pytest.MonkeyPatch, case: Callable[..., ModelCase]
) -> str:
    """The device of a place; the environment says the level. Skips what is not here."""
    name, level = place
    if level:
        monkeypatch.setenv("AKUNU_CPU_ISA" if name == "cpu" else "AKUNU_METAL_LEVEL", level)
    try:
        akunu.load(case("llama").path, device=name, threads=1).close()
    except akunu.ArgumentError as error:
        if "does not offer" not in str(error):
            raise
        pytest.skip(str(error))
    return name


@pytest.fixture(params=[place for place in PLACES if place[0] in HERE], ids="-".join)
def device(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    model_case: Callable[..., ModelCase],
) -> str:
    """The device of models loaded by this test: every one of this build, at every level."""
    return go_to(request.param, monkeypatch, model_case)


@pytest.fixture(params=CPU_PLACES, ids="-".join)
def cpu(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    model_case: Callable[..., ModelCase],
) -> str:
    """Likewise, of the CPU only: what takes minutes in an emulator."""
    return go_to(request.param, monkeypatch, model_case)
