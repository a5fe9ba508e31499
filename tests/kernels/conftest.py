"""Fixtures of the kernel tests: every device and level that this build and this machine have."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import update_wrapper
from inspect import signature

import numpy as np
import pytest
from harness import On, Target, pack_params, plain_step, run
from tables import SEED, Case, Table, walk

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


def targets_of(function: Callable[..., None], names: Collection[str]) -> dict[str, list[Target]]:
    """Each device with those of its levels that a test is for.

    `@pytest.mark.kind(NAME)`: levels with that activation kind. `@pytest.mark.cpu`: the CPU only.
    An argument `gpu_target` instead of `target`: all but the CPU.
    """
    marks = {mark.name: mark for mark in getattr(function, "pytestmark", [])}
    devices = defaultdict(list)
    for target in TARGETS:
        is_cpu = target.device == "cpu"
        if ("gpu_target" in names and is_cpu) or ("cpu" in marks and not is_cpu):
            continue
        if "kind" not in marks or marks["kind"].args[0] in target.kinds:
            devices[target.device].append(target)
    return devices


def cases_of(function: Callable[..., None], target: Target | None) -> list[Case]:
    """The lines of its table; for a test with an argument `kind`, in each kind of the device."""
    table = getattr(function, "table", Table({}))
    on_device = {}
    if target is not None:
        names = signature(function).parameters
        on_device["target" if "target" in names else "gpu_target"] = target
        if "kind" in names:
            table = replace(table, columns={**table.columns, ("kind",): target.kinds})
    chosen = table.chosen(emulated=target is not None and "emulated" in target.device)
    return [
        Case(function, line, on_device, on_change)
        for line, on_change in zip(table.lines, chosen, strict=True)
    ]


def item_of(
    collector: pytest.Module, function: Callable[..., None], device: str, cases: Sequence[Case]
) -> pytest.Function:
    """An item that walks the cases. Arguments that are no columns are fixtures, as everywhere."""
    columns = {"rng", *cases[0].on_device, *cases[0].line.arguments}
    own = signature(function)
    rest = [each for name, each in own.parameters.items() if name not in columns]

    def walker(**fixtures: object) -> None:
        walk(cases, fixtures)

    update_wrapper(walker, function, updated=())  # without what would become keywords of -k
    walker.pytestmark = getattr(function, "pytestmark", [])  # type: ignore[attr-defined]
    walker.__signature__ = own.replace(parameters=rest)  # type: ignore[attr-defined]
    name = function.__name__ + (f"[{device}]" if device else "")
    item = pytest.Function.from_parent(collector, name=name, callobj=walker)
    item.cases = cases  # type: ignore[attr-defined]  # for compare_coverage.py
    return item


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module, name: str, obj: Callable[..., None]
) -> list[pytest.Function] | None:
    """A test of devices, or one with a table, is an item for each device, and one for what runs
    nightly."""
    if not (isinstance(collector, pytest.Module) and collector.istestfunction(obj, name)):
        return None
    names = signature(obj).parameters
    if names.keys().isdisjoint(("target", "gpu_target")):
        if not hasattr(obj, "table"):
            return None
        cases_by_device = {"": cases_of(obj, None)}
    else:
        cases_by_device = {
            device: in_turns([cases_of(obj, target) for target in targets])
            for device, targets in targets_of(obj, names).items()
        }
        if not cases_by_device:
            return [item_without_device(collector, obj)]
    wanted = collector.config.getoption("line", default=None)
    if wanted:
        words = wanted.split(",")
        matching = {
            device: [case for case in cases if case.has(words)]
            for device, cases in cases_by_device.items()
        }
        return [item_of(collector, obj, *each) for each in matching.items() if each[1]]
    items = []
    for device, cases in cases_by_device.items():
        if now := [case for case in cases if case.on_change]:
            items.append(item_of(collector, obj, device, now))
        if later := [case for case in cases if not case.on_change]:
            nightly = item_of(collector, obj, "-".join(filter(None, (device, "nightly"))), later)
            nightly.add_marker(pytest.mark.slow)
            items.append(nightly)
    return items


def in_turns(cases_of_levels: Sequence[Sequence[Case]]) -> list[Case]:
    """A line at every level, then the next line: what a line makes may serve all levels."""
    together = itertools.zip_longest(*cases_of_levels)
    return [case for cases in together for case in cases if case is not None]


def item_without_device(collector: pytest.Module, function: Callable[..., None]) -> pytest.Function:
    """Skipped once, with the reason."""
    kinds = [mark.args[0] for mark in getattr(function, "pytestmark", []) if mark.name == "kind"]
    why = "this build has no GPU, nor an emulated one (AKUNU_METAL_EMULATOR)"
    if kinds:
        why = f"nothing here takes the activation kind {kinds[0]}"

    def skipped() -> None:
        pytest.skip(why)

    return pytest.Function.from_parent(collector, name=function.__name__, callobj=skipped)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)
