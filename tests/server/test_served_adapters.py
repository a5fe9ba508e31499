"""Adapters are models of their own: `base:adapter` in every API, and in the list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ember_adapter import write_adapter
from running_server import running

import akunu
from akunu import ArgumentError, LoadOptions
from akunu.server import ServedModels, ServerSettings

QUESTION = [{"role": "user", "content": "Tell me something about the sea."}]
GREEDY = {"max_tokens": 8, "temperature": 0}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_adapter(tmp_path_factory.mktemp("adapters") / "odd.gguf")


@pytest.fixture(scope="module")
def replies(odd: Path) -> dict[str, str]:
    """What Ember says without the adapter and with it."""
    with akunu.load(adapters={"odd": odd}, context=1024) as model:
        return {
            name: str(model.chat(QUESTION, adapters=adapters, max_tokens=8))
            for name, adapters in (("ember", None), ("ember:odd", "odd"))
        }


@pytest.fixture(scope="module")
def client(odd: Path) -> Iterator[httpx.Client]:
    settings = ServerSettings(adapters=[f"odd={odd}"], context=1024)
    with running(ServedModels.of(settings), context=1024) as client:
        yield client


def said_by(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("name", ["ember", "ember:odd"])
def test_every_api_finds_the_adapter_behind_the_model(client, replies, name) -> None:
    assert replies["ember"] != replies["ember:odd"]
    chat = said_by(client, "/v1/chat/completions", model=name, messages=QUESTION, **GREEDY)
    assert chat["choices"][0]["message"]["content"] == replies[name]
    message = said_by(client, "/v1/messages", model=name, messages=QUESTION, **GREEDY)
    assert message["content"][0]["text"] == replies[name]
    response = said_by(
        client, "/v1/responses", model=name, input=QUESTION, max_output_tokens=8, temperature=0
    )
    assert response["output"][0]["content"][0]["text"] == replies[name]
    options = {"num_predict": 8, "temperature": 0}
    ollama = said_by(
        client, "/api/chat", model=name, messages=QUESTION, stream=False, options=options
    )
    assert ollama["message"]["content"] == replies[name]


def test_completions_have_it_too(client, odd) -> None:
    with akunu.load(adapters={"odd": odd}, context=1024) as model:
        expected = model.generate("The sea", adapters="odd", max_tokens=8)
    found = said_by(client, "/v1/completions", model="ember:odd", prompt="The sea", **GREEDY)
    assert found["choices"][0]["text"] == expected


def test_adapters_are_listed_with_their_model(client) -> None:
    listed = client.get("/v1/models").json()["data"]
    assert [each["id"] for each in listed] == ["ember", "ember:odd"]
    assert listed[1]["parent"] == "ember"
    assert client.get("/v1/models/ember:odd").json() == listed[1]


def test_an_adapter_that_is_not_there_is_an_unknown_model(client) -> None:
    answer = client.post("/v1/chat/completions", json={"model": "ember:even", "messages": QUESTION})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert "there is ember, ember:odd" in answer.json()["error"]["message"]


def test_of_several_models_one_says_whose_an_adapter_is() -> None:
    models = ServedModels({"a": "ember", "b": "ember"}, LoadOptions(adapters={"b:odd": "odd.gguf"}))
    assert [each.adapters for each in models.all] == [(), ("odd",)]
    with pytest.raises(ArgumentError, match=r"'odd': there are several models; write MODEL:odd"):
        ServedModels({"a": "ember", "b": "ember"}, LoadOptions(adapters={"odd": "odd.gguf"}))
    with pytest.raises(ArgumentError, match=r"'c:odd': there is no model 'c'"):
        ServedModels({"a": "ember"}, LoadOptions(adapters={"c:odd": "odd.gguf"}))
    with pytest.raises(ArgumentError, match=r"have the same name, 'a:odd'"):
        ServedModels({"a": "ember", "a:odd": "ember"}, LoadOptions(adapters={"a:odd": "odd.gguf"}))


def test_a_setting_that_is_no_name_and_path_is_refused() -> None:
    for given in (["odd.gguf"], ["=odd.gguf"], ["odd="]):
        with pytest.raises(ArgumentError, match=r"adapters is .*; it must be NAME=PATH"):
            ServerSettings(adapters=given)
