"""tests/lines.py: no line is left out, and a failure names its lines."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lines import check_each, each_line


def walked(test: Any, line: str | None = None, **fixtures: Any) -> None:
    config = SimpleNamespace(getoption=lambda name, default: line)
    test(request=SimpleNamespace(config=config), **fixtures)


def test_each_line_is_called_with_each_other_one() -> None:
    seen = []

    @each_line("a, b", [(1, 2), (3, 4)])
    @each_line("c", ["x", "y"])
    def test(a: int, b: int, c: str) -> None:
        seen.append((a, b, c))

    walked(test)
    assert sorted(seen) == [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")]
    seen.clear()
    walked(test, line="3, 4 | y")
    assert seen == [(3, 4, "y")]


def test_a_failure_names_all_lines_that_failed() -> None:
    @each_line("n", [1, 2, 3, 4])
    def test(n: int) -> None:
        assert n % 2, "even"

    with pytest.raises(pytest.fail.Exception) as caught:
        walked(test)
    text = str(caught.value)
    assert text.startswith("2 of 4 lines failed\n  2: AssertionError: even")
    assert "\n  4: AssertionError: even" in text
    assert 'assert n % 2, "even"' in text  # of the traceback


def test_a_line_that_was_skipped_is_told_and_hides_no_failure() -> None:
    def skip() -> None:
        pytest.skip("no such device")

    with pytest.raises(pytest.skip.Exception, match="no such device"):
        check_each([("a", lambda: None), ("b", skip)])
    with pytest.raises(pytest.fail.Exception, match="1 of 2"):
        check_each([("a", skip), ("b", lambda: 1 / 0)])  # type: ignore[arg-type, return-value]


def test_lines_share_no_folder_and_no_setting(tmp_path: Path) -> None:
    name = "AKUNU_TEST_OF_LINES"

    @each_line("n", [1, 2])
    def test(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch(exist_ok=False)
        monkeypatch.setenv(name, str(n), prepend=":")
        assert os.environ[name] == str(n)

    with pytest.MonkeyPatch.context() as patch:
        walked(test, tmp_path=tmp_path, monkeypatch=patch)


def test_lines_with_marks_are_another_item() -> None:
    @each_line("n", [1, pytest.param(2, marks=pytest.mark.slow), 3])
    def test(n: int) -> None:
        pass

    assert list(inspect.signature(test).parameters) == ["request", "lines"]
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    plain, slow = mark.args[1]
    assert [line.arguments["n"] for line in plain.values[0]] == [1, 3]
    assert [line.arguments["n"] for line in slow.values[0]] == [2]
    assert [mark.name for mark in slow.marks] == ["slow"]
