"""tools.compare scaling: one engine with several counts of threads, as a table and as a plot."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from akunu.hub.packaged_models import PACKAGED_MODELS
from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare import scaling
from tools.compare.curves import Curve, plot
from tools.compare.speed import parse_test

pytestmark = pytest.mark.tools

SVG = "{http://www.w3.org/2000/svg}"


def test_an_engine_is_timed_with_each_count_of_threads() -> None:
    saved = []
    result = scaling.scale(
        PACKAGED_MODELS["ember"],
        [parse_test("pp8")],
        engines={"akunu": (sys.executable, "akunu_worker")},
        threads=[1, 2],
        alternations=1,
        commands=[0],
        save=lambda result: saved.append(len(result["points"])),
    )
    assert saved == [1, 2]  # an interrupted run keeps what it has
    assert [(p["test"], p["threads"], len(p["seconds"])) for p in result["points"]] == [
        ("pp8", 1, 1),
        ("pp8", 2, 1),
    ]
    table = scaling.markdown(result)
    assert "| test | engine | 1 threads | 2 threads |" in table
    assert "(1.00)" in table
    assert "| 1 | " in table  # a command of one row


def test_others_may_keep_processors_busy_meanwhile() -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    with scaling.busy_processors(1):
        (spinner,) = set(children.read_text().split()) - set(before.split())
        while os.sched_getaffinity(int(spinner)) != {min(os.sched_getaffinity(0))}:
            assert Path(f"/proc/{spinner}").exists()
    assert children.read_text() == before
    with pytest.raises(ValueError, match="--busy is 5000"), scaling.busy_processors(5000):
        pass


def result_of(seconds: dict[int, list[float]]) -> dict[str, Any]:
    return {
        "points": [
            {"engine": "akunu", "threads": n, "test": "pp512", "tokens": 512, "seconds": each}
            for n, each in seconds.items()
        ]
    }


def test_a_rate_is_that_of_the_median() -> None:
    (curve,) = scaling.curves(result_of({1: [1.0, 2.0, 4.0], 4: [0.5, 0.5, 9.0]}))
    assert curve == Curve("akunu", "pp512", {1: 256.0, 4: 1024.0})


def test_a_plot_has_a_panel_for_each_test_and_a_line_for_each_engine() -> None:
    rates = {1: 100.0, 4: 400.0, 16: 800.0}
    slower = {1: 50.0, 4: 100.0, 16: 100.0}
    drawn = plot(
        [
            Curve("akunu", "pp512", rates),
            Curve("a<b", "pp512", slower),
            Curve("akunu", "tg32", rates),
        ]
    )
    panels = ElementTree.fromstring(drawn).findall(f"{SVG}g")
    lines = [panel.findall(f"{SVG}polyline") for panel in panels]
    assert [len(found) for found in lines] == [2, 1]
    points = [tuple(map(float, p.split(","))) for p in lines[0][0].attrib["points"].split()]
    (x1, y1), (x4, y4), (x16, y16) = points
    assert x4 - x1 == pytest.approx(x16 - x4, abs=0.2)  # each is four times the one before
    assert y1 - y4 == pytest.approx(2 * (y4 - y16), abs=0.2)  # four times, then twice


def test_one_count_of_threads_can_be_drawn() -> None:
    assert "polyline" in plot([Curve("akunu", "pp512", {2: 10.0})])


@each_line("text", ["", "0", "1,", "1,x", "2,2"])
def test_threads_are_counts(text: str) -> None:
    with pytest.raises(ValueError, match="--threads"):
        scaling.parse_threads(text)


@pytest.mark.parametrize("beside", ["python", "=python", "akunu=python"])
def test_another_build_needs_a_name_of_its_own(beside: str) -> None:
    with pytest.raises(ValueError, match="NAME=PYTHON"):
        scaling.engines_of(argparse.Namespace(beside=[beside], peer=None))
