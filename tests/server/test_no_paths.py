"""No answer of the server has a folder of its machine in it; its log has."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_server import EMBER, running

from akunu import LoadOptions
from akunu.server import ServedModels
from akunu.server.http.errors import without_folders
from lines import each_line

HELLO = [{"role": "user", "content": "Hello"}]


@each_line(
    ("text", "told"),
    [
        ("/srv/my models/a.gguf, byte 24: cut", "a.gguf, byte 24: cut"),
        (
            "the model 'a' cannot be loaded: /a/b.gguf: no",
            "the model 'a' cannot be loaded: b.gguf: no",
        ),
        ("[Errno 2] No such file: '/a/b c/d.bin'", "[Errno 2] No such file: 'd.bin'"),
        ("cannot read /a/b and /c/d/e", "cannot read b and e"),
        ("see docs/embeddings-speech-images.md, and/or https://a.example/b/c", None),
        ("1 / 2 tokens/s, in ./models/a or ~/a/b", None),
        ("/data: is full", "data: is full"),
    ],
)
def test_a_text_without_folders(text: str, told: str | None) -> None:
    assert without_folders(text) == (text if told is None else told)


def documented(client: httpx.Client, names: list[str]) -> list[httpx.Response]:
    """The answers of every route that only asks, for each model, and of those that describe one."""
    answers = []
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for name in names:
            if "get" in methods:
                answers.append(client.get(path.replace("{name}", name)))
            elif path in ("/api/show", "/v1/models/load", "/v1/models/unload"):
                answers.append(client.post(path, json={"model": name}))
    return answers


def test_no_route_tells_where_models_and_answers_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "a secret folder"
    for each in ("models", "cache", "journal"):
        (secret / each).mkdir(parents=True)
    shutil.copy(EMBER, secret / "models" / "good.gguf")
    (secret / "models" / "broken.gguf").write_bytes(b"GGUF, but for all that follows")
    other = (secret / "models" / "good.gguf").read_bytes()
    (secret / "models" / "other.gguf").write_bytes(other.replace(b"llama", b"lamma"))
    (secret / "models" / "unreadable").mkdir()
    names = ["good", "broken", "other", "unreadable", "gone"]
    sources = {name: str(secret / "models" / f"{name}.gguf") for name in names}
    sources["unreadable"] = str(secret / "models" / "unreadable")
    options = LoadOptions(cache_dir=secret / "cache")
    models = ServedModels(sources, options)
    with running(models, journal=secret / "journal") as client:
        answers: list[httpx.Response] = documented(client, names)
        keyed = {"idempotency-key": "a"}
        for name in names:
            for path in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
                body: dict[str, Any] = {"model": name, "messages": HELLO, "max_tokens": 1}
                answers.append(client.post(path, json=body))
                answers.append(client.post(path, json=body, headers=keyed))
        answers += documented(client, names)
        monkeypatch.setattr(os, "pwrite", _full)
        body = {"model": "good", "messages": HELLO, "max_tokens": 1, "stream": True}
        answers.append(
            client.post("/v1/chat/completions", json=body, headers={"idempotency-key": "b"})
        )
        monkeypatch.undo()
    n_failed = 0
    for answer in answers:
        n_failed += answer.status_code >= 500
        told = answer.text + str(answer.headers)
        assert str(tmp_path) not in told, (answer.url, told)
        assert "secret" not in told, (answer.url, told)
    assert n_failed > 5
    assert logging.getLogger("akunu.server").isEnabledFor(logging.ERROR)
    assert sources["broken"] in caplog.text
    assert (
        "/gone.gguf' is neither a file" in caplog.text
    )  # long paths are shown without their middle
    assert f"{secret}/journal/" in caplog.text


def _full(*_: Any) -> int:
    raise OSError(28, "No space left on device")
