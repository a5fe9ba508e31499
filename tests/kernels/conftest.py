"""Fixtures of the kernel tests: every device and level that this build and this machine have."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from harness import On, Target, pack_params, plain_step, run
from selection import MANY, covering

from akunu import _core
from akunu.errors import ArgumentError, DeviceError


def why_missing(target: Target) -> str | None:
    data = np.zeros((1, 1), np.float32)
    try:
        run("add", [data, data.copy()], pack_params("add", 1, 0), plain_step(1), On(target))
    except (ArgumentError, DeviceError) as error:
        return str(error)
    return None


_BUILT = [
    Target(device, str(level["name"]))
    for device in _core.backends()
    for level in _core.levels(device)
    # Emulated kernels are looked at as they run; without that they are what the models' tests run.
    if level["is_built"] and (device, level["name"]) != ("metal-emulated", "plain")
]
_REASONS = {target: why_missing(target) for target in _BUILT}
TARGETS = [target for target, reason in _REASONS.items() if reason is None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`target`: every device and level; with `kind`, every activation kind of its matmuls.

    `@pytest.mark.kind(NAME)`: only targets with that kind. `@pytest.mark.cpu`: only levels of the
    CPU. `gpu_target`: those that are no CPU.
    """
    names = metafunc.fixturenames
    if "gpu_target" in names:
        found = [pytest.param(t, id=str(t)) for t in TARGETS if t.device != "cpu"]
        why = "this build has no GPU, nor an emulated one (AKUNU_METAL_EMULATOR)"
        nothing = [pytest.param(None, marks=pytest.mark.skip(reason=why), id="none")]
        metafunc.parametrize("gpu_target", found or nothing)
    if "target" not in names:
        return
    wanted = metafunc.definition.get_closest_marker("kind")
    targets = [t for t in TARGETS if wanted is None or wanted.args[0] in t.kinds]
    if metafunc.definition.get_closest_marker("cpu"):
        targets = [t for t in targets if t.device == "cpu"]
    if not targets:
        why = f"nothing here takes the activation kind {wanted and wanted.args[0]}"
        nothing = pytest.param(None, marks=pytest.mark.skip(reason=why), id="none")
        metafunc.parametrize("target", [nothing])
    elif "kind" in names:
        pairs = [(t, kind) for t in targets for kind in t.kinds]
        ids = [f"{t}-{kind}" for t, kind in pairs]
        metafunc.parametrize(("target", "kind"), pairs, ids=ids)
    else:
        metafunc.parametrize("target", targets, ids=str)


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with many variants on a device, some run with every change, the others nightly.

    One that has no device here is skipped once, not in every variant.
    """
    variants = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            params = item.callspec.params
            if not params.keys().isdisjoint(("target", "gpu_target")):
                target = params.get("target") or params.get("gpu_target")
                variants[item.path, item.originalname, target].append(item)
    repeated: set[pytest.Item] = set()
    for (_, _, target), found in variants.items():
        if target is None:
            repeated.update(found[1:])
        elif len(found) >= MANY:
            for item in set(found) - covering(found):
                item.add_marker(pytest.mark.slow)
    items[:] = [item for item in items if item not in repeated]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)
