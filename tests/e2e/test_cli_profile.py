"""`akunu profile`: the commands of a step and their times."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest

import akunu
from akunu.cli.profile import by_kind

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_every_command_of_a_step_is_there(run_akunu: Run, ember: akunu.Model) -> None:
    done = run_akunu("profile", "-r", "2", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    labels = [command["label"] for command in facts["commands"]]
    assert labels == [*ember._native.labels("single"), "sample", "advance"]
    assert all(command["seconds"] > 0 for command in facts["commands"])
    layers = ember.config.n_layers
    assert {kind["count"] for kind in facts["kinds"]} == {1, layers}
    times = [kind["seconds"] for kind in facts["kinds"]]
    assert times == sorted(times, reverse=True)
    assert sum(times) == pytest.approx(sum(c["seconds"] for c in facts["commands"]))


def test_the_table_adds_up(run_akunu: Run) -> None:
    done = run_akunu("profile", "-p", "20", "-d", "30", "-r", "1")
    assert done.returncode == 0, done.stderr
    header, *rows, last = [line.split() for line in done.stdout.splitlines()]
    assert header == ["command", "count", "µs", "each", "ms", "share"]
    assert last[0] == "all"
    assert last[-1] == "100.0%"
    assert float(last[-2]) == pytest.approx(
        sum(float(row[-2]) for row in rows), abs=0.001 * len(rows)
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-r", "0"], "-r must be 1 or more"),
        (["-p", "-1"], "-p must be 0 or more"),
        (["-p", "100000"], "100000 rows"),
        (["-d", "100000000"], "ask for a shorter context"),
        (["--device", "abacus"], 'no device "abacus"'),
    ],
)
def test_what_makes_no_sense_is_one_line(run_akunu: Run, arguments: list[str], words: str) -> None:
    done = run_akunu("profile", *arguments)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_kind_is_a_label_without_its_layer() -> None:
    labels = ["embedding", "layer 0 q, k, v", "layer 0 down", "layer 1 q, k, v", "layer 1 down"]
    kinds = by_kind([{"label": label, "seconds": 1.0} for label in labels])
    assert Counter({kind.name: kind.count for kind in kinds}) == {
        "embedding": 1,
        "q, k, v": 2,
        "down": 2,
    }
