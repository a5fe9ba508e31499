"""A text that goes round in circles: stopped with a note, or hinted at in a conversation."""

from __future__ import annotations

import json
from typing import Any

import akunu

LOOP = ("--prompt", "Once upon a time")  # Ember answers: time time time ...


def test_what_goes_round_is_stopped_with_a_note_and_0(run_akunu: Any) -> None:
    done = run_akunu("complete", *LOOP)
    assert done.returncode == 0
    assert 1000 < len(done.stdout) < 3000
    assert done.stdout.endswith("time time\n")
    assert "akunu: stopped: the text repeats itself; " in done.stderr
    assert "--no-loop-guard" in done.stderr


def test_the_guard_can_be_switched_off(run_akunu: Any) -> None:
    done = run_akunu("complete", *LOOP, "--no-loop-guard", "--max-tokens", "600")
    with akunu.load() as model:
        assert done.stdout == model.generate("Once upon a time", max_tokens=600) + "\n"
    assert "repeats itself" not in done.stderr


def test_json_has_what_came_until_then(run_akunu: Any) -> None:
    done = run_akunu("complete", *LOOP, "--json")
    facts = json.loads(done.stdout)
    assert facts["finish_reason"] == "cancelled"
    assert len(facts["text"]) < 3000
    assert "stopped: " in done.stderr
