"""Models that a server finds on the machine, and how long models stay loaded."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_server import EMBER, running

import akunu.loading
from akunu import ArgumentError
from akunu.cli.main import main
from akunu.server import ServedModels, ServerSettings
from akunu.server.catalogue.discovered import discovering, models_in
from akunu.server.http.errors import ApiError

TWO = {"a": "ember", "b": "ember"}
HI = [{"role": "user", "content": "Hi"}]


def loaded(models: ServedModels) -> list[str]:
    return [each.name for each in models.all if each.model is not None]


def ps(client: httpx.Client) -> dict[str, Any]:
    return {each["name"]: each for each in client.get("/api/ps").json()["models"]}


def wait_until_unloaded(client: httpx.Client) -> None:
    ends = time.monotonic() + 30
    while ps(client):
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_max_loaded_unloads_the_least_recently_used() -> None:
    async def work() -> None:
        models = ServedModels({**TWO, "c": "ember"}, max_loaded=2)
        for name in ("a", "b", "a", "c"):
            await models.load(name)
        assert loaded(models) == ["a", "c"]
        await models.close()

    asyncio.run(work())


def test_max_loaded_never_unloads_a_model_that_is_used() -> None:
    async def work() -> None:
        models = ServedModels(TWO, max_loaded=1, wait_seconds=0.01)
        async with models.use("a"):
            with pytest.raises(ApiError, match="other models are in use"):
                await models.load("b")
        await models.load("b")
        assert loaded(models) == ["b"]
        await models.close()
        models = ServedModels(TWO, max_loaded=1, pinned=["a"])
        await models.load("a")
        with pytest.raises(ApiError, match="max_loaded is 1, and as many pinned models"):
            await models.load("b")
        await models.close()

    asyncio.run(work())


@pytest.mark.parametrize(("idle_seconds", "stays"), [(0.0, ["b"]), (0.01, [])])
def test_a_model_whose_clients_left_while_it_was_loading_can_go(
    monkeypatch: pytest.MonkeyPatch, idle_seconds: float, stays: list[str]
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    load = akunu.loading.load

    def slowly(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert goes_on.wait(60)
        return load(*arguments, **options)

    monkeypatch.setattr(akunu.loading, "load", slowly)

    async def work() -> None:
        models = ServedModels(TWO, idle_seconds=idle_seconds, max_loaded=1, wait_seconds=30)
        first = asyncio.ensure_future(models.load("a"))
        await asyncio.to_thread(begun.wait, 60)
        second = asyncio.ensure_future(models.load("b"))  # waits for room
        await asyncio.sleep(0.05)
        first.cancel()
        goes_on.set()
        await second
        ends = time.monotonic() + 30
        while loaded(models) != stays and time.monotonic() < ends:
            await asyncio.sleep(0.01)
        assert loaded(models) == stays
        alone = asyncio.ensure_future(models.load("a"))
        while models.find("a").state != "loading":
            await asyncio.sleep(0)
        alone.cancel()
        ends = time.monotonic() + 30
        while loaded(models) != (stays and ["a"]) and time.monotonic() < ends:
            await asyncio.sleep(0.01)
        assert loaded(models) == (stays and ["a"])
        await models.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", {"messages": HI, "stream": False, "options": {"num_predict": 1}}),
        ("/api/generate", {"prompt": "Hi", "stream": False, "options": {"num_predict": 1}}),
        ("/v1/chat/completions", {"messages": HI, "max_tokens": 1}),
        ("/v1/completions", {"prompt": "Hi", "max_tokens": 1}),
    ],
)
def test_keep_alive_says_how_long_a_model_stays(path: str, body: dict[str, Any]) -> None:
    with running(ServedModels({"a": "ember"}, idle_seconds=0.01)) as client:

        def ask(keep_alive: Any) -> None:
            answer = client.post(path, json={"model": "a", "keep_alive": keep_alive, **body})
            assert answer.status_code == 200, answer.text

        ask(-1)
        time.sleep(0.1)  # idle_seconds would have unloaded it
        assert "expires_at" not in ps(client)["a"]
        ask("1h")
        assert "expires_at" in ps(client)["a"]
        ask(None)
        wait_until_unloaded(client)
        ask("0s")
        wait_until_unloaded(client)


@pytest.mark.parametrize(
    "keep_alive", [10**400, 1e308, f"{10**400}h"], ids=["integer", "float", "text"]
)
def test_a_keep_alive_longer_than_any_clock_is_for_ever(keep_alive: Any) -> None:
    with running(ServedModels({"a": "ember"}, idle_seconds=0.01)) as client:
        body = {"model": "a", "prompt": "Hi", "max_tokens": 1, "keep_alive": keep_alive}
        assert client.post("/v1/completions", json=body).status_code == 200
        assert "expires_at" not in ps(client)["a"]


def test_lm_studios_ttl_is_in_seconds() -> None:
    with running(ServedModels({"a": "ember"})) as client:
        body = {"messages": HI, "max_tokens": 1, "ttl": 0}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
        wait_until_unloaded(client)
        refused = client.post("/v1/chat/completions", json={**body, "ttl": -1})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "ttl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of models, two of them in folders of their publishers."""
    for name in (
        "small.gguf",
        "org/Tiny-Q8_0.gguf",
        "org/mmproj-Tiny.gguf",
        "Large.GGUF",
        ".hidden/no.gguf",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(EMBER, path)
    for name in ("config.json", "model.safetensors"):
        path = tmp_path / "hf" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    return tmp_path


def test_the_models_of_a_folder_have_their_paths_as_names(folder: Path) -> None:
    assert models_in(folder) == {
        "small": str(folder / "small.gguf"),
        "Large": str(folder / "Large.GGUF"),
        "hf": str(folder / "hf"),
        "org/Tiny-Q8_0": str(folder / "org" / "Tiny-Q8_0.gguf"),
    }


def test_models_come_and_go_while_the_server_runs(folder: Path) -> None:
    models = ServedModels(["ember"], discover=discovering(folder, everywhere=False))
    with running(models) as client:

        def listed() -> dict[str, Any]:
            found = client.get("/v1/models").json()["data"]
            return {each["id"]: each["status"]["value"] for each in found}

        unloaded = {
            "Large": "unloaded",
            "hf": "unloaded",
            "small": "unloaded",
            "org/Tiny-Q8_0": "unloaded",
        }
        assert listed() == {"ember": "unloaded", **unloaded}
        body = {"model": "ORG/tiny-q8_0", "messages": HI, "max_tokens": 1}
        assert client.post("/v1/chat/completions", json=body).json()["model"] == "org/Tiny-Q8_0"
        assert listed()["org/Tiny-Q8_0"] == "loaded"
        shutil.copy(EMBER, folder / "new.gguf")
        for path in (folder / "small.gguf", folder / "org" / "Tiny-Q8_0.gguf"):
            path.unlink()
        assert set(listed()) == {
            "ember",
            "Large",
            "hf",
            "new",
            "org/Tiny-Q8_0",
        }  # one is loaded still
        client.post("/v1/models/unload", json={"model": "org/Tiny-Q8_0"})
        assert set(listed()) == {"ember", "Large", "hf", "new"}


def test_a_name_that_is_new_is_found_without_a_list(folder: Path) -> None:
    models = ServedModels(["ember"], discover=discovering(folder, everywhere=False))
    assert models.find("small").source == str(folder / "small.gguf")
    shutil.copy(EMBER, folder / "new.gguf")
    time.sleep(1.1)  # it looks once a second at most
    assert models.find("new").is_discovered
    with pytest.raises(ApiError, match='"newer" is not served here; there is ember, '):
        models.find("newer")


def test_a_name_of_the_command_line_comes_first(folder: Path) -> None:
    models = ServedModels(["small=ember"], discover=discovering(folder, everywhere=False))
    asyncio.run(models.listed())
    assert models.find("small").source == "ember"
    assert models.names == ["small", "Large", "hf", "org/Tiny-Q8_0"]


def test_everywhere_is_what_list_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests = tmp_path / "ollama" / "manifests" / "registry.ollama.ai" / "library" / "tiny"
    manifests.mkdir(parents=True)
    layer = '{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:aa"}'
    (manifests / "latest").write_text(f'{{"layers": [{layer}]}}')
    (tmp_path / "ollama" / "blobs").mkdir()
    shutil.copy(EMBER, tmp_path / "ollama" / "blobs" / "sha256-aa")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    discover = discovering(None, everywhere=True)
    assert discover is not None
    there = discover()
    assert there["tiny:latest"] == "tiny:latest"
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in there)
    with running(ServedModels(["ember"], discover=discover)) as client:
        body = {"model": "tiny", "messages": HI, "stream": False, "options": {"num_predict": 1}}
        assert client.post("/api/chat", json=body).json()["model"] == "tiny:latest"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="which is not a folder"):
        discovering(tmp_path / "gone", everywhere=False)
    assert discovering(None, everywhere=False) is None
    assert ServerSettings(models_dir=str(tmp_path)).models_dir == tmp_path


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/completions"])
def test_a_stream_has_comments_while_its_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch, path: str, is_broken: bool
) -> None:
    begun = threading.Event()
    find_model = akunu.loading.find_model

    def slowly(source: Any, *options: Any, **more: Any) -> Path:
        if "local_only" in more:  # a look at its file, for the list
            return find_model(source, *options, **more)
        assert begun.wait(60)
        return find_model("/gone.gguf" if is_broken else source, *options, **more)

    monkeypatch.setattr(akunu.loading, "find_model", slowly)
    body = {"stream": True, "max_tokens": 2, "reasoning_effort": "low"}
    body |= {"prompt": "Hi"} if path == "/v1/completions" else {"messages": HI}
    with (
        running(ServedModels({"a": "ember"}), ping_seconds=0.05) as client,
        client.stream("POST", path, json=body) as answer,
    ):
        assert answer.status_code == 200
        chunks = answer.iter_bytes()
        first = next(chunks)
        assert b"ping" in first
        assert client.get("/v1/models").json()["data"][0]["status"] == {"value": "loading"}
        begun.set()
        rest = b"".join(chunks).decode()
    assert ("error" in rest) is is_broken
    assert ("cannot be loaded" in rest) is is_broken
    if path == "/v1/chat/completions" and not is_broken:
        assert ": x-akunu-ignored: reasoning_effort\n\n" in rest
        assert rest.endswith("data: [DONE]\n\n")


def test_a_client_that_leaves_an_open_stream_ends_nothing_but_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()
    find_model = akunu.loading.find_model

    def slowly(source: Any, *options: Any, **more: Any) -> Path:
        assert "local_only" in more or begun.wait(60)
        return find_model(source, *options, **more)

    monkeypatch.setattr(akunu.loading, "find_model", slowly)
    models = ServedModels({"a": "ember"})
    body = {"messages": HI, "max_tokens": 2}
    with running(models, ping_seconds=0.05) as client:
        with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as answer:
            assert b"ping" in next(answer.iter_bytes())
        ends = time.monotonic() + 30
        while models.find("a").n_users:
            assert time.monotonic() < ends
            time.sleep(0.01)
        begun.set()
        assert client.post("/v1/chat/completions", json=body).status_code == 200
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_default_model_answers_for_names_that_no_model_has() -> None:
    settings = ServerSettings(default_model="b")
    with running(ServedModels.of(settings, TWO)) as client:
        for path, more in (
            ("/v1/chat/completions", {"max_tokens": 1}),
            ("/v1/messages", {"max_tokens": 1}),
            ("/api/chat", {"stream": False, "options": {"num_predict": 1}}),
        ):
            answers = [
                client.post(path, json={"model": name, "messages": HI, **more}).json()["model"]
                for name in ("gpt-5", "a")
            ]
            assert answers == ["b", "a"]
        assert client.get("/v1/models/gpt-5").status_code == 404
    with pytest.raises(ArgumentError, match="default_model is 'c'; the models are a, b"):
        ServedModels.of(ServerSettings(default_model="c"), TWO)


def test_a_look_for_an_unknown_name_is_not_on_the_event_loop() -> None:
    threads = []

    def discover() -> dict[str, str]:
        threads.append(threading.current_thread().name)
        return {}

    with running(ServedModels(["ember"], discover=discover)) as client:
        for method, path, body in (
            ("POST", "/v1/chat/completions", {"messages": HI}),
            ("POST", "/api/chat", {"messages": HI}),
            ("POST", "/api/embed", {"input": "Hi"}),
            ("POST", "/api/show", {}),
            ("POST", "/v1/models/load", {}),
            ("GET", "/v1/models/gone", None),
        ):
            n = len(threads)
            named = None if body is None else {"model": "gone", **body}
            assert client.request(method, path, json=named).status_code == 404, path
            assert len(threads) == n + 1, path
            time.sleep(1.05)  # it looks once a second
    assert not {"akunu server"} & set(threads)
