"""Fixtures of the kernel tests: every device and level of this build, where the machine has it."""

from __future__ import annotations

import numpy as np
import pytest
from harness import On, Target, pack_params, plain_step, run

from akunu import _core
from akunu.errors import ArgumentError, DeviceError


def why_missing(target: Target) -> str | None:
    data = np.zeros((1, 1), np.float32)
    try:
        run("add", [data, data.copy()], pack_params("add", 1), plain_step(1), On(target))
    except (ArgumentError, DeviceError) as error:
        return str(error)
    return None


TARGETS = [
    Target(device, str(level["name"]))
    for device in _core.backends()
    for level in _core.levels(device)
    # Emulated kernels are looked at as they run; without that they are what the models' tests run.
    if (device, level["name"]) != ("metal-emulated", "plain")
]
REASONS = {target: why_missing(target) for target in TARGETS}
# A level that is missing can't be asked what it wants; its tests are skipped with this one kind.
KINDS = {t: t.kinds if reason is None else ["unknown"] for t, reason in REASONS.items()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`target`: every device and level; with `kind`, every activation kind of its matmuls.

    `@pytest.mark.kind(NAME)`: only targets with that kind. `gpu_target`: those that are no CPU.
    """

    def parameter(target: Target, *more: str) -> object:
        reason = REASONS[target]
        marks = [] if reason is None else [pytest.mark.skip(reason=reason)]
        return pytest.param(target, *more, marks=marks, id="-".join([str(target), *more]))

    names = metafunc.fixturenames
    if "gpu_target" in names:
        found = [parameter(target) for target in TARGETS if target.device != "cpu"]
        why = "this build has no GPU, nor an emulated one (AKUNU_METAL_EMULATOR)"
        nothing = [pytest.param(None, marks=pytest.mark.skip(reason=why), id="none")]
        metafunc.parametrize("gpu_target", found or nothing)
    if "target" not in names:
        return
    wanted = metafunc.definition.get_closest_marker("kind")
    targets = [
        target
        for target in TARGETS
        if wanted is None or REASONS[target] is not None or wanted.args[0] in KINDS[target]
    ]
    if "kind" in names:
        pairs = [parameter(target, kind) for target in targets for kind in KINDS[target]]
        metafunc.parametrize(("target", "kind"), pairs)
    else:
        metafunc.parametrize("target", [parameter(target) for target in targets])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)
