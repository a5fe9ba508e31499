"""`akunu benchmark`: texts of real words, alone and side by side; JSON; beside an earlier run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from akunu.cli.measuring.text_run import percentiles
from lines import each_line

Run = Callable[..., "subprocess.CompletedProcess[str]"]

QUICK = ("--prompts", "short", "--side-by-side", "1,2", "-r", "2", "-n", "3")


def test_percentiles_of_a_hundred_and_one_numbers_are_those_numbers() -> None:
    assert percentiles([float(n) for n in range(101)]) == {"p50": 50, "p90": 90, "p99": 99}


def test_every_case_has_its_numbers(run_akunu: Run, tmp_path: Path) -> None:
    done = run_akunu("benchmark", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["model"] == "ember-q8_0.gguf"
    assert [case["case"] for case in found["cases"]] == ["short x 1", "short x 2"]
    for case in found["cases"]:
        assert (case["prompt_tokens"], case["reply_tokens"], case["rounds"]) == (32, 3, 2)
        for values in (case["first_token_ms"], case["between_tokens_ms"]):
            assert 0 < values["p50"] <= values["p90"] <= values["p99"]
        for name in ("prompt", "reply", "all"):
            assert case[f"{name}_tokens_per_second"] > 0
    baseline = tmp_path / "before.json"
    baseline.write_text(done.stdout)
    done = run_akunu(
        "benchmark", *QUICK[:2], "--side-by-side", "2,3", *QUICK[4:], "--compare", str(baseline)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2].startswith("short x 2 ")
    assert "times as fast as the baseline" in done.stderr
    assert "short x 3 is not in the baseline" in done.stderr


@each_line(
    ("arguments", "said"),
    [
        (["--prompts", "tiny"], "--prompts has 'tiny'; it may have short, medium and long"),
        (["--side-by-side", "65"], "--side-by-side is 65; it must be 1 to 64"),
        (["-n", "1"], "-n is 1; it must be 2 or more"),
        (["--compare", "no.json"], "--compare no.json: this is not JSON"),
        (
            ["--prompts", "long"],
            "long prompts: a prompt and its reply take 2112 positions; the model has 1024",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_be_measured_is_said_before(
    run_akunu: Run, arguments: list[str], said: str
) -> None:
    done = run_akunu("benchmark", *arguments)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert said in done.stderr
