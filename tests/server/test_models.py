"""/v1/models, /health, /ready: what the server has, and how it is."""

from __future__ import annotations

import asyncio
import math

import gguf
import httpx
import pytest
from running_server import EMBER, running

from akunu import ArgumentError
from akunu.server import ServedModels, ServerSettings, create_app
from akunu.server.http.errors import ApiError
from akunu.server.model_names import named_sources


def test_models_are_listed_with_what_clients_look_for(client: httpx.Client) -> None:
    client.post(
        "/v1/chat/completions",
        json={"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1},
    )
    listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    (ember,) = listed["data"]
    assert ember["id"] == "ember"
    assert ember["object"] == "model"
    assert ember["owned_by"] == "akunu"
    assert ember["max_model_len"] == 1024
    assert ember["meta"]["n_ctx_train"] == 1024
    assert ember["meta"]["n_vocab"] == 4096
    parameters = sum(math.prod(each.shape) for each in gguf.GGUFReader(EMBER).tensors)
    assert ember["meta"]["n_params"] == parameters
    assert ember["capabilities"] == ["completion", "tools"]
    assert client.get("/v1/models/ember").json() == ember


def test_a_name_may_have_slashes() -> None:
    with running(ServedModels({"org/small:Q8_0": "ember"})) as client:
        for path in ("/v1/models/org/small:Q8_0", "/models/org%2Fsmall:Q8_0"):
            assert client.get(path).json()["id"] == "org/small:Q8_0"


def test_models_are_loaded_and_unloaded_by_name() -> None:
    with running(ServedModels({"a": "ember"})) as client:
        for path, is_loaded in (("load", True), ("unload", False), ("unload", False)):
            answer = client.post(f"/v1/models/{path}", json={"model": "A"}).json()
            assert (answer["success"], answer["id"], answer["loaded"]) == (True, "a", is_loaded)
        for body, status in (({}, 400), ({"model": 3}, 400), ({"model": "b"}, 404)):
            answer = client.post("/v1/models/load", json=body)
            assert (answer.status_code, answer.json()["error"]["param"]) == (status, "model")


def test_a_model_in_use_is_not_unloaded() -> None:
    async def work() -> None:
        models = ServedModels({"a": "ember"})
        app = create_app(ServerSettings(), models)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            async with models.use("a"):
                answer = await client.post("/v1/models/unload", json={"model": "a"})
            assert answer.status_code == 409
            assert "in use" in answer.json()["error"]["message"]
        await models.close()

    asyncio.run(work())


def test_health_and_ready_answer(client: httpx.Client) -> None:
    for path in ("/health", "/ready"):
        assert client.get(path).json() == {"status": "ok"}


def test_a_models_name_counts_in_any_case() -> None:
    models = ServedModels({"Qwen3": "ember", "a": "ember", "A": "ember"})
    assert models.find("qwen3").name == "Qwen3"
    assert models.find("A").name == "A"
    assert models.find(None).name == "Qwen3"
    with pytest.raises(ApiError, match="not served here"):
        models.find("qwen")


def test_a_name_that_may_be_two_is_refused() -> None:
    models = ServedModels({"ab": "ember", "AB": "ember"})
    with pytest.raises(ApiError, match="matches ab or AB") as error:
        models.find("Ab")
    assert error.value.status == 400


def test_models_get_names() -> None:
    given = ["x=https://example.org/a.gguf?b=c", "https://example.org/a.gguf?b=c", "dir/b.GGUF"]
    assert list(named_sources(given)) == ["x", "https://example.org/a.gguf?b=c", "b"]
    with pytest.raises(ArgumentError, match="two models are called 'a'"):
        named_sources(["x/a.gguf", "y/a.gguf"])
    with pytest.raises(ArgumentError, match="is not a model"):
        named_sources(["=a"])


def test_the_document_describes_every_field(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    route = document["paths"]["/v1/chat/completions"]["post"]
    schema = route["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["messages"]
    assert {"temperature", "tools", "audio", "user", "seed"} <= set(schema["properties"])
    assert schema["properties"]["user"]["description"].startswith("Without effect")


def test_the_document_describes_streams_and_errors(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert set(document["components"]["schemas"]) == {"Error", "AnthropicError", "OllamaError"}

    def kinds(path: str) -> set[str]:
        (operation,) = document["paths"][path].values()
        assert set(operation["responses"]) == {"200", "default"}
        return set(operation["responses"]["200"]["content"])

    assert kinds("/v1/chat/completions") == {"application/json", "text/event-stream"}
    assert kinds("/api/chat") == {"application/json", "application/x-ndjson"}
    assert kinds("/v1/messages/count_tokens") == {"application/json"}
    assert kinds("/metrics") == {"text/plain"}
    for path, operations in document["paths"].items():
        if "post" in operations and not path.endswith("/cancel"):
            assert "requestBody" in operations["post"], path
