"""Models of Ollama and LM Studio: found by name, used where they are, left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hub_server import Hub, Repo
from hub_support import EMBER, ollama_has

import akunu
from akunu import ArgumentError, UnsupportedModelError


def test_a_model_of_ollama_is_used_where_it_is(home: Path, ember: bytes) -> None:
    root = home / ".ollama/models"
    blob = ollama_has(root, "registry.ollama.ai/library/ember-chat/10m", ember)
    ollama_has(root, "registry.ollama.ai/me/own/latest", ember)
    for name in ("ember-chat:10m", "ollama:ember-chat:10m", "ollama:me/own"):
        with akunu.load(name, context=64) as model:
            assert model.path == blob
            assert model.chat([{"role": "user", "content": "Hello!"}], max_tokens=3)


def test_ollama_models_names_the_folder(
    home: Path, tmp_path: Path, ember: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "big-disk"))
    blob = ollama_has(tmp_path / "big-disk", "registry.ollama.ai/library/ember-chat/latest", ember)
    with akunu.load("ember-chat", context=64) as model:
        assert model.path == blob


def test_other_tags_of_a_model_of_ollama_are_listed(home: Path, ember: bytes) -> None:
    ollama_has(home / ".ollama/models", "registry.ollama.ai/library/ember-chat/10m", ember)
    with pytest.raises(ArgumentError, match=r"no ember-chat:latest here; it has ember-chat:10m"):
        akunu.load("ember-chat")
    with pytest.raises(ArgumentError, match=r"'ember-chad:10m' is .*did you mean ember-chat:10m\?"):
        akunu.load("ember-chad:10m")
    with pytest.raises(
        ArgumentError, match=r"Ollama has no other:latest on this machine \(looked in "
    ):
        akunu.load("ollama:other")


def test_a_model_of_ollama_that_is_no_gguf_file_is_named(home: Path) -> None:
    ollama_has(home / ".ollama/models", "registry.ollama.ai/library/x/latest", b"x", "tensor")
    with pytest.raises(UnsupportedModelError, match="is not a single GGUF file"):
        akunu.load("ollama:x")


def test_what_ollama_has_of_the_hub_is_not_fetched_again(
    hub: Hub, home: Path, ember: bytes
) -> None:
    blob = ollama_has(home / ".ollama/models", "hf.co/small/Ember-GGUF/Q8_0", ember)
    with akunu.load("small/Ember-GGUF:Q8_0", context=64) as model:
        assert model.path == blob
    assert hub.requests == []


@pytest.mark.parametrize("folder", [".lmstudio/models", ".cache/lm-studio/models"])
def test_a_model_of_lm_studio_is_used_where_it_is(
    hub: Hub, home: Path, ember: bytes, folder: str
) -> None:
    path = home / folder / "small/Ember-GGUF/ember-q8_0.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(ember)
    for name in ("small/Ember-GGUF", "small/Ember-GGUF:Q8_0", "small/Ember-GGUF:ember-q8_0.gguf"):
        with akunu.load(name, context=64, local_only=True) as model:
            assert model.path == path
    assert hub.requests == []


def test_a_path_wins_over_a_name(hub: Hub, tmp_path: Path, ember: bytes) -> None:
    hub.repos["small/ember"] = Repo({"ember.gguf": ember})
    (tmp_path / "small").mkdir()
    (tmp_path / "small/ember").write_bytes(EMBER.read_bytes())
    with akunu.load("small/ember", context=64) as model:
        assert model.path == Path("small/ember")
    assert hub.requests == []


def test_the_packaged_model_is_known_by_its_name_in_a_sentence(home: Path) -> None:
    with akunu.load("Ember", context=64) as model:
        assert model.path == EMBER


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "embr",
            r"'embr' is neither a file nor the name of a model inside akunu \(ember\), nor a "
            r"model of Ollama on this machine; did you mean ember\?",
        ),
        ("modle.gguf", r"'modle.gguf' is neither a file .*\(ember\); did you mean model.gguf\?"),
        (
            "nothing",
            r"'nothing' is neither .*; from the Hugging Face hub it would be org/repo, "
            r"such as Qwen/Qwen3-0.6B-GGUF; `akunu list` shows the models on this machine",
        ),
        ("EMBR", r"'EMBR' is neither .*; did you mean ember\?"),
    ],
)
def test_a_name_of_nothing_says_what_was_looked_for(
    home: Path, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ArgumentError, match=message):
        akunu.load(name)


def test_a_link_to_nothing_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").symlink_to("gone.gguf")
    (tmp_path / "round.gguf").symlink_to("round.gguf")
    for name, where in (("model.gguf", "gone.gguf"), ("round.gguf", "round.gguf")):
        with pytest.raises(ArgumentError, match=f"is a link to {where}, which does not exist"):
            akunu.load(str(tmp_path / name))
