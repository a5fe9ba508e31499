"""Commands say what of a file was ignored, and show what is no text."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from edited_model import edited

import akunu

Run = Callable[..., subprocess.CompletedProcess[str]]

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
NOTE = "tokenizer.ggml.padding_token_id is 4294967295, but tokenizer.ggml.tokens has ids 0 to"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ember with an id that is none and an author in Latin-1."""
    changes = {"tokenizer.ggml.padding_token_id": 2**32 - 1, "general.author": b"J\xf6rg"}
    return edited(EMBER, tmp_path_factory.mktemp("odd") / "m.gguf", changes)


def test_inspect_shows_notes_and_bytes_that_are_no_text(odd: Path, run_akunu: Run) -> None:
    done = run_akunu("inspect", str(odd), "--json")
    facts = json.loads(done.stdout)
    assert facts["metadata"]["general.author"] == r"J\xf6rg"
    (note,) = facts["tokenizer"]["notes"]
    assert note.startswith(NOTE)
    assert note not in facts["run"]["notes"]
    table = run_akunu("inspect", str(odd))
    assert (table.returncode, table.stderr) == (0, "")
    assert r"J\xf6rg" in table.stdout
    assert NOTE in table.stdout


@pytest.mark.parametrize("command", ["tokenize", "complete", "chat"])
def test_a_command_that_uses_a_model_shows_its_notes(
    command: str, odd: Path, run_akunu: Run
) -> None:
    limit = [] if command == "tokenize" else ["--max-tokens", "1"]
    done = run_akunu(command, str(odd), "--prompt", "Hello", *limit)
    assert done.returncode == 0
    assert f"akunu: {NOTE}" in done.stderr
