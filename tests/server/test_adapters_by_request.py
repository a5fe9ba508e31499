"""Requests choose adapters by `lora`; adapters are loaded and unloaded while the server runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from ember_adapter import write_adapter
from running_server import running

import akunu
from akunu import LoadOptions
from akunu.server import ServedModels

QUESTION = [{"role": "user", "content": "Tell me something about the sea."}]
GREEDY = {"max_tokens": 8, "temperature": 0}
CHOICES: dict[str, Any] = {"none": None, "odd": "odd", "half": {"odd": 0.5}, "even": "even"}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return {
        name: write_adapter(folder / f"{name}.gguf", seed=seed)
        for name, seed in (("odd", 1), ("even", 2))
    }


@pytest.fixture(scope="module")
def replies(paths: dict[str, Path]) -> dict[str, str]:
    with akunu.load(adapters=paths, context=1024) as model:
        found = {
            name: str(model.chat(QUESTION, adapters=adapters, max_tokens=8))
            for name, adapters in CHOICES.items()
        }
    assert len(set(found.values())) == len(found)
    return found


@pytest.fixture
def client(paths: dict[str, Path]) -> Iterator[httpx.Client]:
    """A server with `odd`, which lets requests load others."""
    models = ServedModels(
        {"ember": "ember"}, LoadOptions(adapters={"odd": paths["odd"]}, context=1024)
    )
    options = {"allow_pull": True, "context_overflow": "shift"}  # for a text without an end
    with running(models, context=1024, **options) as client:
        yield client


def said_by(client: httpx.Client, **body: Any) -> str:
    body = {"model": "ember", "messages": QUESTION, **GREEDY, **body}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def post(client: httpx.Client, path: str, body: Any, status: int = 200) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    is_json = answer.headers["content-type"].startswith("application/json")
    return answer.json() if is_json else answer.text


def refused(client: httpx.Client, path: str, body: Any, status: int, words: str) -> None:
    assert words in post(client, path, body, status)["error"]["message"]


def test_every_api_has_the_field(client: httpx.Client, replies: dict[str, str]) -> None:
    lora = [{"id": 0, "scale": 0.5}]
    assert said_by(client, lora=lora) == replies["half"]
    assert said_by(client, model="ember:odd", lora=lora) == replies["half"]
    assert said_by(client, model="ember:odd", lora=[]) == replies["none"]
    message = post(
        client, "/v1/messages", {"model": "ember", "messages": QUESTION, **GREEDY, "lora": lora}
    )
    assert message["content"][0]["text"] == replies["half"]
    body = {"model": "ember", "input": QUESTION, "temperature": 0, "lora": lora}
    response = post(client, "/v1/responses", {**body, "max_output_tokens": 8})
    assert response["output"][0]["content"][0]["text"] == replies["half"]
    options = {"num_predict": 8, "temperature": 0, "lora": lora}
    body = {"model": "ember", "messages": QUESTION, "stream": False, "options": options}
    assert post(client, "/api/chat", body)["message"]["content"] == replies["half"]
    body = {"model": "ember", "prompt": "The sea", "n_predict": 8, "temperature": 0}
    by_id = post(client, "/completion", {**body, "lora": [{"id": 0, "scale": 1.0}]})["content"]
    assert by_id == post(client, "/completion", {**body, "model": "ember:odd"})["content"]


@pytest.mark.parametrize(
    ("lora", "words"),
    [
        ({"id": 0, "scale": 1}, "it must be a list"),
        (["odd"], 'lora[0] is "odd"; it must have an id and a scale'),
        ([{"id": 0}], "it must have an id and a scale"),
        ([{"id": True, "scale": 1}], "it must have an id and a scale"),
        ([{"id": 0, "scale": "a"}], "lora[0].scale"),
        ([{"id": 0, "scale": 1e9}], "lora[0].scale"),
        ([{"id": 0, "scale": 1}, {"id": 0, "scale": 2}], "lora has the adapter 0 twice"),
        ([{"id": 1, "scale": 1}], "lora has the adapter 1; the model has 0"),
        ([{"id": -1, "scale": 1}], "lora has the adapter -1; the model has 0"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(client: httpx.Client, lora: Any, words: str) -> None:
    body = {"model": "ember", "messages": QUESTION, **GREEDY, "lora": lora}
    refused(client, "/v1/chat/completions", body, 400, words)
    refused(client, "/lora-adapters", lora, 400, words)


def test_scales_of_all_requests(client: httpx.Client, replies: dict[str, str]) -> None:
    listed = [{"id": 0, "name": "odd", "path": "odd.gguf", "scale": 0.0}]
    assert client.get("/lora-adapters").json() == listed
    assert said_by(client) == replies["none"]
    assert post(client, "/lora-adapters", [{"id": 0, "scale": 0.5}]) == {"success": True}
    assert client.get("/lora-adapters?model=ember").json()[0]["scale"] == 0.5
    assert said_by(client) == replies["half"]
    assert said_by(client, model="ember:odd") == replies["odd"]
    assert said_by(client, lora=[]) == replies["none"]
    post(client, "/lora-adapters", [])
    assert said_by(client) == replies["none"]


def test_an_adapter_comes_and_goes(
    client: httpx.Client, paths: dict[str, Path], replies: dict[str, str]
) -> None:
    even = {"lora_name": "even", "lora_path": str(paths["even"])}
    told = post(client, "/v1/load_lora_adapter", even)
    assert told == "Success: LoRA adapter 'even' added successfully."
    names = [each["id"] for each in client.get("/v1/models").json()["data"]]
    assert {"ember", "ember:odd", "ember:even"} <= set(names)
    assert [each["id"] for each in client.get("/lora-adapters").json()] == [0, 1]
    asked: list[dict[str, Any]] = [{}, {"model": "ember:odd"}, {"model": "ember:even"}] * 4
    with ThreadPoolExecutor(len(asked)) as threads:
        found = list(threads.map(lambda body: said_by(client, **body), asked))
    assert found == [replies[name] for name in ("none", "odd", "even")] * 4
    assert said_by(client, lora=[{"id": 1, "scale": 1.0}]) == replies["even"]
    refused(client, "/v1/load_lora_adapter", even, 400, "already")

    post(client, "/v1/models/unload", {"model": "ember"})  # it is there when the model comes back
    assert said_by(client, model="ember:even") == replies["even"]

    told = post(client, "/v1/unload_lora_adapter", {"lora_name": "even"})
    assert told == "Success: LoRA adapter 'even' removed successfully."
    refused(client, "/v1/unload_lora_adapter", {"lora_name": "even"}, 404, "there is odd")
    body = {"model": "ember:even", "messages": QUESTION}
    refused(client, "/v1/chat/completions", body, 404, "ember:even")
    assert said_by(client, model="ember:odd") == replies["odd"]


def test_an_adapter_in_use_is_not_unloaded(client: httpx.Client) -> None:
    """A text that shifts is none for a moment, so there are several."""
    body = {"model": "ember:odd", "prompt": "The sea", "max_tokens": 1_000_000, "ignore_eos": True}
    with client.stream("POST", "/v1/completions", json={**body, "n": 8, "stream": True}) as stream:
        lines = stream.iter_lines()  # the stream is closed when they go
        next(lines)
        refused(client, "/v1/unload_lora_adapter", {"lora_name": "odd"}, 409, "is in use")


def test_a_load_that_fails_says_why(client: httpx.Client, tmp_path: Path) -> None:
    path = "/v1/load_lora_adapter"
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    refused(client, path, {"lora_name": "a", "lora_path": str(broken)}, 400, "broken.gguf")
    nowhere = {"lora_name": "a", "lora_path": str(tmp_path / "nowhere")}
    refused(client, path, nowhere, 400, "nowhere")
    refused(client, path, {"lora_name": "a"}, 400, "lora_path is missing")
    refused(client, path, {"lora_name": "", "lora_path": "a"}, 400, "lora_name is empty")
    assert [each["name"] for each in client.get("/lora-adapters").json()] == ["odd"]


def test_a_server_that_does_not_allow_it_loads_none(paths: dict[str, Path]) -> None:
    with running(ServedModels({"ember": "ember"}), context=1024) as client:
        body = {"lora_name": "odd", "lora_path": str(paths["odd"])}
        refused(client, "/v1/load_lora_adapter", body, 403, "--allow-pull")
        refused(client, "/v1/unload_lora_adapter", body, 403, "--allow-pull")
        assert client.get("/lora-adapters").json() == []
