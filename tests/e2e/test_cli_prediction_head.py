"""--prediction-head: the model's own head proposes tokens, as the server's prediction_head."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "models"))

import head_models

from akunu import ArgumentError
from akunu.server import ServedModels, ServerSettings

ASKED = ("--prompt", "the sea", "--max-tokens", "12", "--temperature", "0", "--speculation", "1")


def test_a_text_is_the_one_without(run_akunu: Any, tmp_path: Path) -> None:
    folder = head_models.write(tmp_path / "model", "qwen35", 0.0)
    said = [
        run_akunu("complete", str(folder), *ASKED, *more) for more in ((), ("--prediction-head",))
    ]
    assert [done.returncode for done in said] == [0, 0], said[1].stderr
    assert said[0].stdout == said[1].stdout
    assert "prediction_head" in said[0].stderr  # the note
    assert "prediction_head" not in said[1].stderr


def test_a_model_without_one_is_refused(run_akunu: Any) -> None:
    done = run_akunu("complete", "ember", *ASKED, "--prediction-head")
    assert done.returncode != 0
    assert "a prediction head was asked for" in done.stderr
    done = run_akunu("complete", "ember", *ASKED, "--prediction-head", "--draft", "ember")
    assert done.returncode != 0
    assert "set one of them" in done.stderr


def test_a_server_loads_them() -> None:
    settings = ServerSettings(prediction_head=True)
    assert all(each.options.prediction_head for each in ServedModels.of(settings, ("ember",)).all)
    with pytest.raises(ArgumentError, match="set one of them"):
        ServedModels.of(ServerSettings(prediction_head=True, draft="small.gguf"), ("ember",))
