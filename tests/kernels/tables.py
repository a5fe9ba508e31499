"""Tests as tables: a test is called for each line of its table, and one item of pytest walks them.

A failure names its lines. `pytest tests/kernels/test_matmul.py --line q4_k,rows=17` walks the lines
that have these words, nightly ones too; where it is one line, `--pdb` stops in the test.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np
from harness import Run, row_class_of
from selection import covering

from lines import check_each

# Tables with fewer lines run all of them with every change, except on emulated devices.
MANY = 24
SEED = 20240607


@dataclass(frozen=True)
class Line:
    """The arguments of one call, and of each column which of its values they are."""

    arguments: Mapping[str, Any]
    places: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        return [f"{name}={label}" for name, label in self.labels.items()]


def labelled(value: Any, place: int) -> str:
    """A value as a word of `--line`."""
    if callable(value) or isinstance(value, np.ndarray):
        return str(getattr(value, "__name__", place))
    if isinstance(value, (list, tuple)):
        return "+".join(labelled(each, place) for each in value) or "none"
    if isinstance(value, dict):
        return "+".join(f"{name}:{labelled(each, place)}" for name, each in value.items()) or "none"
    return str(value).replace(", ", "/").replace(" ", "")


@dataclass(frozen=True)
class Table:
    """Columns of arguments; every combination of their values is a line. Not all lines run with
    every change:

    - of a table with many, some in which the values of each two columns meet (`meet`: of so many),
    - of those, only lines with certain values of some columns (`on_change`),
    - on emulated devices some in which each value occurs, and each combination of those columns
      that choose the kernel's function (`functions`; of numbers of rows, their classes).
    """

    columns: Mapping[tuple[str, ...], Sequence[Any]]
    meet: int = 2
    on_change: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    functions: Sequence[str] = ()

    @cached_property
    def lines(self) -> list[Line]:
        choices = [
            [line_of(names, value, place) for place, value in enumerate(values)]
            for names, values in self.columns.items()
        ]
        return [joined(parts) for parts in itertools.product(*choices)]

    def chosen(self, *, emulated: bool) -> list[bool]:
        """Of each line, whether it runs with every change."""
        allowed = [
            index
            for index, line in enumerate(self.lines)
            if all(line.arguments[name] in values for name, values in self.on_change.items())
        ]
        found = set(allowed)
        if emulated or len(allowed) >= MANY:
            parts = self.once if emulated else self.meeting
            found = {allowed[i] for i in covering([parts(self.lines[j]) for j in allowed])}
        return [index in found for index in range(len(self.lines))]

    def meeting(self, line: Line) -> set[Hashable]:
        """Every two of its values."""
        return set(itertools.combinations(enumerate(line.places), min(self.meet, len(line.places))))

    def once(self, line: Line) -> set[Hashable]:
        """Each of its values, and what chooses the function of the kernel."""
        function = tuple(
            class_of(line.arguments[name]) if name in ("rows", "runs") else line.labels[name]
            for name in self.functions
        )
        return {function, *enumerate(line.places)}


def class_of(rows: int | Sequence[Run]) -> str:
    """The class of a number of rows, or of some spans together."""
    return row_class_of(rows if isinstance(rows, int) else sum(run.n_rows for run in rows))


def line_of(names: tuple[str, ...], value: Any, place: int) -> Line:
    """One value of one column, alone. `pytest.param(..., id=...)` names it."""
    if hasattr(value, "values") and hasattr(value, "marks"):
        assert not value.marks, "a line has no marks"
        named, parts = value.id, value.values
    else:
        named, parts = None, (value,) if len(names) == 1 else tuple(value)
    arguments = dict(zip(names, parts, strict=True))
    labels = {name: named or labelled(part, place) for name, part in arguments.items()}
    return Line(arguments, (place,), labels)


def joined(parts: Iterable[Line]) -> Line:
    arguments: dict[str, Any] = {}
    labels: dict[str, str] = {}
    places: list[int] = []
    for part in parts:
        arguments |= part.arguments
        labels |= part.labels
        places += part.places
    return Line(arguments, tuple(places), labels)


def table(
    several: Mapping[str, Iterable[Any]] | None = None,
    /,
    *,
    meet: int = 2,
    on_change: Mapping[str, Sequence[Any]] | None = None,
    functions: Sequence[str] = (),
    **single: Iterable[Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`@table({"n, k": [(1, 7), (3, 64)]}, rows=[1, 17])`: four lines of n, k and rows."""
    columns = {(name,): list(values) for name, values in single.items()}
    columns |= {tuple(names.split(", ")): list(values) for names, values in (several or {}).items()}
    assert all(columns.values()), "a column without values leaves no line"

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        function.table = Table(columns, meet, on_change or {}, functions)  # type: ignore[attr-defined]
        return function

    return decorate


@dataclass(frozen=True)
class Case:
    """One call of a test: a line of its table, on a level of a device where it is for devices."""

    function: Callable[..., None]
    line: Line
    on_device: Mapping[str, Any]  # the argument `target` or `gpu_target`
    on_change: bool  # or nightly only

    @property
    def words(self) -> list[str]:
        return [str(target) for target in self.on_device.values()] + self.line.words

    def has(self, words: Sequence[str]) -> bool:
        """Whether it has every word: a device, a level, a value, or a column's name and value."""
        own = self.words + [target.device for target in self.on_device.values()]
        return all(word in own or any(each.endswith(f"={word}") for each in own) for word in words)

    def call(self, fixtures: Mapping[str, Any]) -> None:
        """Draws its own random numbers: a line does not depend on those before it."""
        arguments = {**fixtures, **self.on_device, **self.line.arguments}
        if "rng" in signature(self.function).parameters:
            arguments["rng"] = np.random.default_rng(SEED)
        self.function(**arguments)


def walk(cases: Sequence[Case], fixtures: Mapping[str, Any]) -> None:
    """Calls each; fails with all lines that failed, skips if all did."""
    calls = ((" ".join(case.words), partial(case.call, fixtures)) for case in cases)
    check_each(calls, is_skipped=all)
