"""`threads="auto"`: which number is taken, that it is said, and that no text knows it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import akunu
from akunu.options.text_options import LoadOptions
from akunu.thread_choice import (
    ThreadChoice,
    ThreadPoint,
    counts_on,
    counts_to_try,
    with_chosen_threads,
)
from lines import each_line

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_shortest_turn_is_taken() -> None:
    points = [
        ThreadPoint(4, 100.0, 40.0),  # 2.56 s and 3.2 s
        ThreadPoint(8, 200.0, 50.0),  # 1.28 s and 2.56 s
        ThreadPoint(16, 400.0, 20.0),  # 0.64 s and 6.4 s
    ]
    assert ThreadChoice.of(points).threads == 8


def test_of_numbers_that_are_about_as_good_the_lowest_is_taken() -> None:
    half = ThreadPoint(8, 200.0, 50.0)
    assert ThreadChoice.of([replace(half, threads=16, writing=50.5), half]).threads == 8
    assert ThreadChoice.of([replace(half, threads=16, writing=60.0), half]).threads == 16


@each_line(
    ("cores", "processors", "from_one", "expected"),
    [
        (1, 1, False, [1]),
        (4, 4, False, [1, 2, 3, 4]),
        (8, 16, False, [2, 4, 6, 8, 16]),
        (24, 32, False, [6, 12, 18, 24, 32]),  # 8 performance cores of two, 16 efficiency cores
        (16, 16, True, [1, 2, 4, 8, 12, 16]),
    ],
    ids=str,
)
def test_numbers_from_a_quarter_of_the_cores_to_all_processors_are_tried(
    cores: int, processors: int, from_one: bool, expected: list[int]
) -> None:
    assert counts_to_try(cores, processors, from_one=from_one) == expected


def test_a_load_says_what_was_measured_and_taken() -> None:
    with akunu.load("ember", threads="auto", device="cpu") as model:
        choice = model.thread_choice
        assert choice is not None
        assert [point.threads for point in choice.points] == counts_on("cpu")
        assert choice.threads in counts_on("cpu")
        assert all(point.reading > 0 and point.writing > 0 for point in choice.points)
        assert choice.note() in model.notes
    with akunu.load("ember", threads=1) as model:
        assert model.thread_choice is None


@each_line("threads", [2, 3, 5, "auto"])
def test_a_text_is_the_same_with_any_number_of_threads(threads: Any) -> None:
    texts = []
    for count in (1, threads):
        with akunu.load("ember", device="cpu", threads=count, context=256) as model:
            prompt = "Once upon a time " * 8
            texts.append(model.generate(prompt, max_tokens=24, temperature=1.0, seed=7).text)
    assert texts[0] == texts[1]


@each_line("value", ["all", "AUTO", "", 0, 257, True, 1.5], ids=repr)
def test_what_is_no_number_of_threads_is_refused(value: Any) -> None:
    with pytest.raises(akunu.ArgumentError) as error:
        akunu.load("ember", threads=value)
    assert str(error.value) == (
        f'threads is {value!r}; it must be an integer from 1 to 256 or "auto" or None'
    )


def test_where_there_are_no_threads_nothing_is_measured() -> None:
    assert counts_on("no such device") == []
    options = LoadOptions(threads="auto", device="no such device")
    path = akunu.hub.packaged_models.PACKAGED_MODELS["ember"]
    assert with_chosen_threads(path, options) == (replace(options, threads=None), None)
    with pytest.raises(akunu.AkunuError, match="no such device"):
        akunu.load("ember", threads="auto", device="no such device")


def test_bench_shows_the_curve_and_measures_with_what_it_took(run_akunu: Run) -> None:
    done = run_akunu("bench", "--threads", "auto", "-p", "4", "-n", "0", "-r", "1")
    assert done.returncode == 0, done.stderr
    curve, results = done.stdout.split("\n\n")[:2]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in curve.splitlines()]
    assert lines[0] == ["threads", "read t/s", "written t/s", "a turn of 256 read, 128 written"]
    assert [int(cells[0]) for cells in lines[2:]] == counts_on("auto", from_one=True)
    [taken] = [cells[0] for cells in lines[2:] if cells[3].endswith("s, taken")]
    assert results.splitlines()[2].split("|")[5].strip() == taken


def test_the_curve_stays_out_of_json(run_akunu: Run) -> None:
    done = run_akunu("bench", "--threads", "auto", "-p", "4", "-n", "0", "-r", "1", "-o", "json")
    [row] = json.loads(done.stdout)
    assert re.search(rf"^\| +{row['n_threads']} \|.*, taken \|$", done.stderr, re.MULTILINE)


def test_bench_takes_auto_alone(run_akunu: Run) -> None:
    done = run_akunu("bench", "--threads", "auto,2")
    assert done.returncode == 2
    assert "--threads" in done.stderr


@pytest.mark.parametrize(
    "command",
    [["complete", "--max-tokens", "2"], ["profile", "-r", "1"]],
    ids=lambda command: command[0],
)
def test_commands_say_what_was_taken(run_akunu: Run, command: list[str]) -> None:
    done = run_akunu(*command, "--threads", "auto", stdin="Once")
    assert done.returncode == 0, done.stderr
    assert "akunu: threads is " in done.stderr
    assert ", as measured: read and written per second with " in done.stderr


def test_a_command_refuses_what_is_no_number_of_threads(run_akunu: Run) -> None:
    done = run_akunu("complete", "--threads", "many", stdin="Once")
    assert done.returncode == 2
    assert "--threads is 'many'; it must be an integer from 1 to 256 or \"auto\"" in done.stderr
