"""Tests as tables: one item of pytest calls its test for each line, and a failure names its lines.

    @each_line("text, n_tokens", [("", 0), ("a b", 2)])
    def test_texts_are_cut(text: str, n_tokens: int) -> None:

is `pytest.mark.parametrize` in one item: a line costs a call, an item milliseconds to collect and
as many to run. `pytest tests/unit/test_x.py --line 'a b'` calls only the lines with these words in
their names; where that is one line, `--pdb` stops in the test.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

LONGEST_NAME = 60  # of a value
N_TRACEBACKS = 5


@dataclass(frozen=True)
class Line:
    """The arguments of one call, its name, and marks such as `slow`."""

    name: str
    arguments: dict[str, Any]
    marks: tuple[pytest.Mark, ...] = ()


def each_line(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Iterable[str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with each of the values. Two of these, one above the other: with each pair.

    Each line has its own `tmp_path`, and what it sets by `monkeypatch` is reset after it; other
    fixtures are the item's. Lines with marks are an item for each kind of marks.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    added = [_line(columns, value) for value in values]
    if ids is not None:
        if callable(ids):
            ids = [_names(ids, line) for line in added]
        added = [replace(line, name=name) for line, name in zip(added, ids, strict=True)]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        inner, lines = getattr(function, "table", (function, [Line("", {})]))
        joined = [_joined(a, b) for a, b in itertools.product(added, lines)]
        return _walking(inner, joined)

    return decorate


def check_each(
    calls: Iterable[tuple[str, Callable[[], None]]],
    *,
    is_skipped: Callable[[Iterable[bool]], bool] = any,
) -> None:
    """Make each call; fail with the names of all that failed.

    `is_skipped`: whether the item counts as skipped, of which of its calls were. Usually that is
    one: the summary has to tell it.
    """
    calls = list(calls)
    assert calls, "no lines"
    if len(calls) == 1:
        return calls[0][1]()
    failures: list[tuple[str, BaseException]] = []
    reasons = []
    for name, call in calls:
        try:
            call()
        except pytest.skip.Exception as skip:
            reasons.append(str(skip))
        except (Exception, pytest.fail.Exception) as failure:
            failures.append((name, failure))
    if failures:
        pytest.fail(_report(failures, len(calls)), pytrace=False)
    if is_skipped(index < len(reasons) for index in range(len(calls))):
        pytest.skip(" / ".join(sorted(set(reasons))))
    return None


def _line(columns: Sequence[str], value: Any) -> Line:
    name, marks = None, ()
    if hasattr(value, "values") and hasattr(value, "marks"):  # a pytest.param
        name, parts = value.id, value.values
        marks = tuple(getattr(mark, "mark", mark) for mark in value.marks)
    else:
        parts = (value,) if len(columns) == 1 else tuple(value)
    arguments = dict(zip(columns, parts, strict=True))
    return Line(name or ", ".join(map(_short, parts)), arguments, marks)


def _names(ids: Callable[[Any], object], line: Line) -> str:
    return ", ".join(filter(None, (str(ids(value)) for value in line.arguments.values())))


def _short(value: Any) -> str:
    text = str(getattr(value, "__name__", value))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _joined(a: Line, b: Line) -> Line:
    name = " | ".join(filter(None, [a.name, b.name]))
    return Line(name, {**a.arguments, **b.arguments}, (*a.marks, *b.marks))


def _walking(function: Callable[..., None], lines: Sequence[Line]) -> Callable[..., None]:
    """A test that calls `function` for each of the lines; an item for each kind of marks."""
    groups: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(sorted({mark.name for mark in line.marks})), []).append(line)

    needed = inspect.signature(function).parameters
    known = lines[0].arguments.keys() if lines else ()
    own = [
        name
        for name in ("request", *(["lines"] if list(groups) != [()] else []))
        if name not in needed
    ]

    @functools.wraps(function)
    def walk(**fixtures: Any) -> None:
        given = {name: fixtures[name] for name in needed if name in fixtures}
        words = fixtures["request"].config.getoption("--line", None)
        chosen = [line for line in fixtures.get("lines", lines) if not words or words in line.name]
        if not chosen:
            pytest.skip("no line has the words of --line")
        check_each(
            (line.name, functools.partial(_call, function, line, index, given))
            for index, line in enumerate(chosen)
        )

    walk.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in own),
            *(
                each.replace(kind=each.KEYWORD_ONLY)
                for name, each in needed.items()
                if name not in known
            ),
        ]
    )
    walk.table = (function, lines)  # type: ignore[attr-defined]
    if list(groups) == [()]:
        return walk
    params = [
        pytest.param(group, marks=group[0].marks, id="-".join(names) or "plain")
        for names, group in groups.items()
    ]
    return pytest.mark.parametrize("lines", params)(walk)


def _call(function: Callable[..., None], line: Line, index: int, fixtures: dict[str, Any]) -> None:
    """Call the test with a line, and with what fixtures is the line's own."""
    with ExitStack() as stack:
        own = dict(fixtures)
        if "tmp_path" in own:
            own["tmp_path"] = own["tmp_path"] / f"line{index}"
            own["tmp_path"].mkdir()
        if "monkeypatch" in own:
            own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
        function(**own, **line.arguments)


def _report(failures: Sequence[tuple[str, BaseException]], n_lines: int) -> str:
    """A line for each, then each one's traceback."""
    text = [f"{len(failures)} of {n_lines} lines failed"]
    for name, failure in failures:
        said = (str(failure).splitlines() or [""])[0]
        text.append(f"  {name}: {type(failure).__name__}: {said}")
    for name, failure in failures[:N_TRACEBACKS]:
        frames = traceback.format_exception(type(failure), failure, failure.__traceback__)
        text += ["", f"--- {name}", "".join(frames)]
    return "\n".join(text)
