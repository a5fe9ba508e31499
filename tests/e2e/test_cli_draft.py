"""--draft MODEL: a model that proposes tokens, and what the server makes of the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import akunu
from akunu import ArgumentError
from akunu.server import ServedModels, ServerSettings

ASKED = ("--prompt", "The sea", "--max-tokens", "8", "--temperature", "0")


def test_a_text_is_the_one_without(run_akunu: Any) -> None:
    with akunu.load("ember") as model:
        expected = str(model.generate("The sea", max_tokens=8, temperature=0))
    done = run_akunu("complete", "ember", *ASKED, "--draft", "ember")
    assert done.returncode == 0, done.stderr
    assert expected.strip() in done.stdout


def test_a_draft_that_is_not_there_is_named(run_akunu: Any, tmp_path: Path) -> None:
    done = run_akunu("complete", "ember", *ASKED, "--draft", str(tmp_path / "none.gguf"))
    assert done.returncode != 0
    assert "none.gguf" in done.stderr


def drafts(draft: str, *models: str) -> dict[str, Any]:
    served = ServedModels.of(ServerSettings(draft=draft), models)
    return {each.name: each.options.draft for each in served.all}


def test_a_server_has_one_for_each_model() -> None:
    assert drafts("small.gguf", "big=big.gguf") == {"big": "small.gguf"}
    assert drafts("big=small.gguf", "big=big.gguf") == {"big": "small.gguf"}
    assert drafts("a=x.gguf, b=y.gguf", "a=a.gguf", "b=b.gguf", "c=c.gguf") == {
        "a": "x.gguf",
        "b": "y.gguf",
        "c": None,
    }


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ("small.gguf", "there are several models; write NAME=small.gguf, for example a=small.gguf"),
        ("c=small.gguf", "there is no model 'c'"),
        ("a=x.gguf,a=y.gguf", "draft is set twice for the model 'a'"),
    ],
)
def test_what_it_may_not_be(draft: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        drafts(draft, "a=a.gguf", "b=b.gguf")
