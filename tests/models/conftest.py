"""Models are built once per run and format; `device` runs a test on every device and level."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine import HERE
from golden_values import SEED
from random_models import ModelCase, case_cache

from arithmetic import available_levels, is_one_arithmetic

# Levels at which prompt rows have the same bits as generated rows. Every change runs the best level
# and one other. `generic` runs nightly: tests/kernels compares its kernels with every change.
LEVELS = [level for level in available_levels() if is_one_arithmetic("q8_0", level)]
CHOSEN = [level for level in LEVELS if level != "generic"][-2:] or LEVELS
CPU_PLACES = [
    pytest.param(
        ("cpu", level),
        id=f"cpu-{level}",
        marks=[] if level in CHOSEN else [pytest.mark.slow],
    )
    for level in LEVELS
]
# Emulated kernels run unchecked here: tests/kernels looks at each of them.
GPU_PLACES = [("metal", ""), ("cuda", ""), ("metal-emulated", "plain")]
PLACES = [
    *CPU_PLACES,
    *(pytest.param(place, id="-".join(place)) for place in GPU_PLACES if place[0] in HERE),
]


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`@pytest.mark.nightly_emulated("f16")`: on emulated devices only this with every change.

    For whole models: what runs there is compared by tests/kernels, what the host does by the other
    devices. Without an argument none of the test, otherwise those with all these parameters.
    """
    for item in items:
        mark = item.get_closest_marker("nightly_emulated")
        if mark is None or not hasattr(item, "callspec"):
            continue
        values = {str(value) for value in item.callspec.params.values()}
        is_kept = mark.args and values.issuperset(mark.args)
        if not is_kept and any("emulated" in value for value in values):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def model_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelCase]:
    """`model_case(kind, weight_format="f32")`: the random model, as a file."""
    return case_cache(tmp_path_factory.mktemp("models"), seed=SEED)


def go_to(place: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The device of a place; the environment says the level."""
    name, level = place
    if level:
        monkeypatch.setenv("AKUNU_CPU_ISA" if name == "cpu" else "AKUNU_METAL_LEVEL", level)
    return name


@pytest.fixture(params=PLACES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device of models loaded by this test: every one of this build, at every level."""
    return go_to(request.param, monkeypatch)


@pytest.fixture(params=CPU_PLACES)
def cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Likewise, of the CPU only: what takes minutes in an emulator."""
    return go_to(request.param, monkeypatch)
