"""The tables: every line is called, no failing line is lost, each change runs enough of them."""

from __future__ import annotations

import itertools

import pytest
from tables import Case, Table, table, walk


def cases_of(function, **more):
    decorated = table(**more)(function).table
    return [Case(function, line, {}, True) for line in decorated.lines]


def test_every_line_is_called_with_numbers_of_its_own():
    called = []

    def test(rng, n, rows):
        called.append((n, rows, rng.random()))

    walk(cases_of(test, n=[1, 7], rows=[2, 3]), {})
    assert [each[:2] for each in called] == [(1, 2), (1, 3), (7, 2), (7, 3)]
    assert len({each[2] for each in called}) == 1


def test_every_failing_line_is_named():
    def test(n, rows):
        if rows == 3:
            raise ZeroDivisionError("lost")
        assert n == 1, "no one"

    with pytest.raises(pytest.fail.Exception) as failed:
        walk(cases_of(test, n=[1, 7], rows=[2, 3]), {})
    lines = str(failed.value).splitlines()
    assert lines[:4] == [
        "3 of 4 lines failed",
        "  n=1 rows=3: ZeroDivisionError: lost",
        "  n=7 rows=2: AssertionError: no one",
        "  n=7 rows=3: ZeroDivisionError: lost",
    ]


def test_lines_that_skip_hide_none_that_fail():
    def test(n):
        if n < 3:
            pytest.skip("too few")
        assert n != 4

    walk(cases_of(test, n=[1, 3]), {})
    with pytest.raises(pytest.skip.Exception):
        walk(cases_of(test, n=[1, 2]), {})
    with pytest.raises(pytest.fail.Exception, match=r"n=4"):
        walk(cases_of(test, n=[1, 4]), {})


def test_a_case_is_chosen_by_its_words():
    cases = cases_of(lambda n, format_name: None, n=[1, 17], format_name=["q4_k", "f16"])
    assert [case.line.arguments["n"] for case in cases if case.has(["q4_k"])] == [1, 17]
    assert [case.words for case in cases if case.has(["n=17", "f16"])] == [
        ["n=17", "format_name=f16"]
    ]
    assert not any(case.has(["7"]) for case in cases)


def test_every_two_values_meet_with_every_change():
    columns = {("a",): range(5), ("b",): range(4), ("c",): range(3)}
    chosen = Table(columns).chosen(emulated=False)
    lines = [line.places for line, now in zip(Table(columns).lines, chosen, strict=True) if now]
    for first, second in itertools.combinations(range(3), 2):
        wanted = itertools.product(*(list(columns.values())[i] for i in (first, second)))
        assert {(line[first], line[second]) for line in lines} == set(wanted)
    assert len(lines) < 60


def test_emulated_devices_meet_every_function():
    columns = {("format_name",): ["f16", "q4_k"], ("rows",): [1, 2, 16, 17, 70], ("n",): [1, 2, 3]}
    wanted = Table(columns, functions=("format_name", "rows"))
    lines = [
        line.arguments
        for line, now in zip(wanted.lines, wanted.chosen(emulated=True), strict=True)
        if now
    ]
    classes = {1: "single", 2: "few", 16: "few", 17: "many", 70: "many"}
    assert {(line["format_name"], classes[line["rows"]]) for line in lines} == set(
        itertools.product(["f16", "q4_k"], ["single", "few", "many"])
    )
    assert {line["rows"] for line in lines} == set(classes)
    assert {line["n"] for line in lines} == {1, 2, 3}
