"""Models that a server downloads and deletes for its clients, as Ollama's do."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hub_server import Hub, Repo

from akunu import ArgumentError
from akunu.server import ServedModels, ServerSettings
from akunu.server.catalogue.discovered import discovering

sys.path.append(str(Path(__file__).parents[1] / "server"))
from running_server import running

REPO = "small/Ember-GGUF"
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def repo(hub: Hub, ember: bytes) -> Repo:
    hub.repos[REPO] = Repo({"README.md": b"# Ember", "ember-q8_0.gguf": ember})
    return hub.repos[REPO]


@pytest.fixture
def client(hub: Hub) -> Iterator[httpx.Client]:
    models = ServedModels(["ember"], discover=discovering(None, everywhere=True))
    with running(models, allow_pull=True) as client:
        yield client


def pull(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    answer = client.post("/api/pull", json=body)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def names(client: httpx.Client) -> set[str]:
    return {each["name"] for each in client.get("/api/tags").json()["models"]}


def test_a_model_is_pulled_served_and_deleted(client: httpx.Client, repo: Repo) -> None:
    assert names(client) == {"ember"}
    lines = pull(client, model=REPO)
    assert lines[-1] == {"status": "success"}
    arriving = [line for line in lines if "total" in line]
    assert arriving
    assert all(0 <= line["completed"] <= line["total"] for line in arriving)
    (name,) = names(client) - {"ember"}
    assert name.startswith(REPO)
    body = {"model": name, "messages": HI, "stream": False, "options": {"num_predict": 1}}
    assert client.post("/api/chat", json=body).json()["model"] == name
    assert client.request("DELETE", "/api/delete", json={"model": name}).status_code == 200
    assert names(client) == {"ember"}
    again = client.request("DELETE", "/api/delete", json={"model": name})
    assert again.status_code == 404


def test_without_a_stream_the_answer_comes_at_the_end(client: httpx.Client, repo: Repo) -> None:
    assert pull(client, name=f"hf.co/{REPO}:latest", stream=False) == [{"status": "success"}]
    assert len(names(client)) == 2


def test_two_clients_share_a_download(client: httpx.Client, hub: Hub, repo: Repo) -> None:
    ends: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: ends.append(pull(client, model=REPO)[-1])) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == [{"status": "success"}] * 3


def test_what_fails_is_the_last_line(client: httpx.Client, hub: Hub) -> None:
    lines = pull(client, model="small/Gone-GGUF")
    assert set(lines[-1]) == {"error"}
    assert "small/Gone-GGUF" in lines[-1]["error"]
    refused = client.post("/api/pull", json={"model": "small/Gone-GGUF", "stream": False})
    assert refused.status_code >= 400
    assert "small/Gone-GGUF" in refused.json()["error"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "model is missing"),
        ({"model": "llama3.2"}, "write org/repo"),
        ({"model": "https://example.org/a.gguf"}, "write org/repo"),
        ({"model": "/etc/passwd"}, "write org/repo"),
        ({"model": "../a/b"}, "write org/repo"),
        ({"model": 3}, "model is 3"),
        ({"model": REPO, "insecure": True}, "insecure"),
    ],
)
def test_only_repositories_of_the_hub_are_pulled(
    client: httpx.Client, body: dict[str, Any], message: str
) -> None:
    answer = client.post("/api/pull", json=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]


def test_what_the_server_did_not_find_is_not_deleted(client: httpx.Client) -> None:
    answer = client.request("DELETE", "/api/delete", json={"model": "ember"})
    assert answer.status_code == 400
    assert "only models that the server found" in answer.json()["error"]


def test_a_model_in_use_is_not_deleted(client: httpx.Client, repo: Repo) -> None:
    pull(client, model=REPO)
    (name,) = names(client) - {"ember"}
    body = {"model": name, "messages": HI, "options": {"num_predict": 400}}
    body["options"]["ignore_eos"] = True
    with client.stream("POST", "/api/chat", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
        refused = client.request("DELETE", "/api/delete", json={"model": name})
        assert (refused.status_code, "in use" in refused.json()["error"]) == (409, True)
    assert name in names(client)


def test_a_server_has_to_allow_it(hub: Hub, repo: Repo) -> None:
    with running(ServedModels(["ember"])) as client:
        for method, path in (("POST", "pull"), ("DELETE", "delete")):
            answer = client.request(method, f"/api/{path}", json={"model": REPO})
            assert answer.status_code == 403
            assert "--allow-pull" in answer.json()["error"]
    with pytest.raises(ArgumentError, match="with without_key it works on this machine only"):
        ServerSettings(allow_pull=True, without_key=True, host="0.0.0.0")
