"""Several models: names, loading on demand, memory, and who makes room for whom."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_server import running

import akunu.loading
from akunu import ArgumentError
from akunu.server import ServedModels, ServerSettings
from akunu.server.http.errors import ApiError

THREE = {"a": "ember", "b": "ember", "c": "ember"}


@pytest.fixture(scope="module")
def size() -> int:
    """A little more than the bytes that the packaged model takes: its tokenizer grows with use."""
    with akunu.load() as model:
        return int(1.2 * model.memory["total"])


def loaded(models: ServedModels) -> list[str]:
    return [each.name for each in models.all if each.model is not None]


def test_the_least_recently_used_model_makes_room(size: int) -> None:
    async def work() -> None:
        models = ServedModels(THREE, memory=2 * size)
        for name in ("a", "b", "a", "c"):
            await models.load(name)
        assert loaded(models) == ["a", "c"]
        await models.load("b")
        assert loaded(models) == ["b", "c"]
        await models.close()

    asyncio.run(work())


def test_a_pinned_model_stays(size: int) -> None:
    async def work() -> None:
        models = ServedModels(THREE, memory=2 * size, pinned=["a"], idle_seconds=0.001)
        for name in ("a", "b", "c"):
            await models.load(name)
        assert loaded(models) == ["a", "c"]
        while "c" in loaded(models):
            await asyncio.sleep(0.002)
        assert loaded(models) == ["a"]
        await models.close()

    asyncio.run(work())


def test_a_model_waits_for_one_that_is_in_use_and_nobody_else_does(size: int) -> None:
    async def work() -> None:
        models = ServedModels(THREE, memory=2 * size)
        async with AsyncExitStack() as stack:
            held, _ = await stack.enter_async_context(models.use("a"))
            await stack.enter_async_context(models.use("b"))
            waiting = asyncio.ensure_future(models.load("c"))
            for name in ("a", "b"):  # those that are there go on
                async with models.use(name) as (_, model):
                    assert await model.generate_async("Once", max_tokens=1) is not None
            assert not waiting.done()
            assert held.n_users == 1
        await waiting
        assert loaded(models) == ["a", "c"]  # b was the first that nobody used
        await models.close()

    asyncio.run(work())


def test_who_waits_too_long_is_told_to_come_again(size: int) -> None:
    async def work() -> None:
        models = ServedModels(THREE, memory=size, wait_seconds=0.01)
        async with models.use("a"):
            with pytest.raises(ApiError, match="other models are in use") as told:
                await models.load("b")
        assert (told.value.status, told.value.code) == (503, "model_loading")
        assert told.value.headers == {"retry-after": "5"}
        await models.load("b")
        assert loaded(models) == ["b"]
        await models.close()

    asyncio.run(work())


@pytest.mark.parametrize(("share", "pinned"), [(0.2, []), (0.7, []), (1.5, ["a"])])
def test_a_model_that_never_fits_is_refused(size: int, share: float, pinned: list[str]) -> None:
    async def work() -> None:
        models = ServedModels(THREE, memory=int(share * size), pinned=pinned)
        if pinned:
            await models.load("a")
        with pytest.raises(ApiError, match="cannot be loaded: it takes") as told:
            await models.load("b")
        assert told.value.code == "model_not_loaded"
        assert loaded(models) == pinned
        await models.close()

    asyncio.run(work())


def test_a_model_that_cannot_be_loaded_takes_no_room(size: int, tmp_path: Any) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")

    async def work() -> None:
        models = ServedModels({"a": "ember", "broken": str(broken)}, memory=size)
        with pytest.raises(ApiError, match="cannot be loaded"):
            await models.load("broken")
        await models.load("a")
        assert loaded(models) == ["a"]
        await models.close()

    asyncio.run(work())


def test_models_are_loaded_side_by_side(size: int) -> None:
    async def work() -> None:
        models = ServedModels(THREE)
        await asyncio.gather(*(models.load(name) for name in ("a", "b", "c", "a")))
        assert loaded(models) == ["a", "b", "c"]
        await models.close()

    asyncio.run(work())


def test_models_that_take_long_to_load_block_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = threading.Event()
    find_model = akunu.loading.find_model

    def slowly(source: Any, *options: Any, **more: Any) -> Path:
        if source == "slow":
            assert arrived.wait(60)
        return find_model("ember" if source == "slow" else source, *options, **more)

    monkeypatch.setattr(akunu.loading, "find_model", slowly)

    async def work() -> None:
        slow = {f"slow{number}": "slow" for number in range(40)}  # more than asyncio has threads
        models = ServedModels({**slow, "a": "ember"})
        waiting = [asyncio.ensure_future(models.load(name)) for name in slow]
        async with models.use("a") as (_, model):
            long = "the " * 600  # which is read in a thread
            assert await model.generate_async(long, max_tokens=1) is not None
        assert not any(each.done() for each in waiting)
        for each in waiting:
            each.cancel()
        await models.close()
        arrived.set()

    asyncio.run(work())


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_client_that_leaves_while_its_model_is_loaded_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    arrived = threading.Event()
    find_model = akunu.loading.find_model

    def slowly(source: Any, *options: Any, **more: Any) -> Path:
        assert arrived.wait(60)
        return find_model(source, *options, **more)

    monkeypatch.setattr(akunu.loading, "find_model", slowly)
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    models = ServedModels({"a": "ember"})
    with running(models) as client:
        with (
            httpx.Client(base_url=client.base_url, timeout=0.2) as other,
            pytest.raises(httpx.ReadTimeout),
        ):
            other.post(path, json=body)
        ends = time.monotonic() + 30
        while models.find("a").n_users:  # by the request that nobody reads
            assert time.monotonic() < ends
            time.sleep(0.01)
        arrived.set()
        assert client.post(path, json=body).status_code == 200


def test_a_model_has_several_names() -> None:
    models = ServedModels(["small,gpt-4o=ember", "Big=ember"])
    assert models.names == ["small", "Big"]
    assert models.find("gpt-4o") is models.find("SMALL") is models.find(None)
    assert models.find("GPT-4O").aliases == ("gpt-4o",)
    with pytest.raises(ApiError, match="there is small, gpt-4o, Big"):
        models.find("gpt-5")


def test_a_name_in_other_case_that_may_be_two_models_is_refused() -> None:
    models = ServedModels({"ab,AB": "ember", "aB": "ember"})
    with pytest.raises(ApiError, match="matches ab or AB or aB"):
        models.find("Ab")
    assert ServedModels({"ab,AB": "ember"}).find("Ab").name == "ab"


@pytest.mark.parametrize(
    ("sources", "pinned", "message"),
    [
        (["a,b=ember", "b=ember"], [], "the name 'b' is empty, or another model has it"),
        (["a,=ember"], [], "the name '' is empty, or another model has it"),
        (["a=ember"], ["b"], "pinned is 'b'; the models are a"),
    ],
)
def test_names_that_make_no_sense_are_refused(
    sources: list[str], pinned: list[str], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ServedModels(sources, pinned=pinned)


def test_a_server_has_one_model_loaded_where_there_is_room_for_one(size: int) -> None:
    settings = ServerSettings(memory=size, pinned=[])
    with running(ServedModels.of(settings, ["a,x=ember", "b=ember"])) as client:
        for name in ("x", "b"):
            body = {"model": name, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
            assert client.post("/v1/chat/completions", json=body).status_code == 200
        listed = client.get("/v1/models").json()["data"]
    assert [(each["id"], each["loaded"]) for each in listed] == [("a", False), ("b", True)]
    assert listed[0]["aliases"] == ["x"]


def test_requests_for_models_that_take_turns_are_all_answered(size: int) -> None:
    models = ServedModels(THREE, memory=size)

    async def ask(client: httpx.AsyncClient, name: str) -> str:
        body = {"model": name, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
        answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        found: str = answer.json()["model"]
        return found

    async def work(address: httpx.URL) -> list[str]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            return await asyncio.gather(*(ask(client, name) for name in "abcabc"))

    with running(models) as client:
        assert asyncio.run(work(client.base_url)) == list("abcabc")
