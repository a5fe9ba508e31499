"""Responses in the background: written without a client, read at any time, and after a restart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from journal_requests import without_times
from running_server import Serving, running

from akunu.server.journal import generation

RESPONSES = "/v1/responses"
STORY: dict[str, Any] = {
    "input": "Tell me a story.",
    "background": True,
    "max_output_tokens": 40,
    "temperature": 1.0,
    "ignore_eos": True,
}
ENDLESS = {**STORY, "max_output_tokens": 800}


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with a journal."""
    with running(journal=tmp_path_factory.mktemp("journal")) as client:
        yield client


def begin(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post(RESPONSES, json={**STORY, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def retrieve(client: httpx.Client, name: str, **query: Any) -> httpx.Response:
    return client.get(f"{RESPONSES}/{name}", params=query)


def until_over(client: httpx.Client, name: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while (found := retrieve(client, name).json())["status"] in ("queued", "in_progress"):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found  # type: ignore[no-any-return]


def events_of(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines()
    return [json.loads(each[6:]) for each in lines if each.startswith("data: ")]


def test_a_response_is_written_without_its_client(keeping: httpx.Client) -> None:
    begun = begin(keeping, seed=3)
    assert (begun["status"], begun["background"], begun["output"]) == ("queued", True, [])
    found = until_over(keeping, begun["id"])
    assert found["status"] == "incomplete"  # 40 tokens
    assert (found["id"], found["created_at"]) == (begun["id"], begun["created_at"])
    plain = keeping.post(RESPONSES, json={**STORY, "background": False, "seed": 3}).json()
    assert found["output"][0]["content"] == plain["output"][0]["content"]
    (item,) = keeping.get(f"{RESPONSES}/{begun['id']}/input_items").json()["data"]
    assert item["content"][0]["text"] == STORY["input"]
    second = begin(keeping, previous_response_id=begun["id"])
    assert until_over(keeping, second["id"])["previous_response_id"] == begun["id"]


def test_its_events_are_read_from_any_on(keeping: httpx.Client) -> None:
    whole = keeping.post(RESPONSES, json={**STORY, "stream": True}).text
    told = events_of(whole)
    name = told[0]["response"]["id"]
    assert [each["sequence_number"] for each in told] == list(range(len(told)))
    assert retrieve(keeping, name).json() == told[-1]["response"]
    assert retrieve(keeping, name, stream=True).text == whole
    rest = retrieve(keeping, name, stream=True, starting_after=4).text
    assert events_of(rest) == told[5:]
    begun = begin(keeping, max_output_tokens=200)
    read = events_of(retrieve(keeping, begun["id"], stream=True).text)  # while it is written
    assert read[-1]["response"] == retrieve(keeping, begun["id"]).json()


def test_it_goes_on_when_its_reader_leaves(
    keeping: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "LINGER_SECONDS", 0.0)
    body = {**STORY, "stream": True, "max_output_tokens": 200}
    with keeping.stream("POST", RESPONSES, json=body) as answer:
        first = next(answer.iter_text())
    name = events_of(first)[0]["response"]["id"]
    assert until_over(keeping, name)["usage"]["output_tokens"] == 200


def test_it_is_cancelled_and_deleted(keeping: httpx.Client) -> None:
    name = begin(keeping, **ENDLESS)["id"]
    for _ in range(2):
        told = keeping.post(f"{RESPONSES}/{name}/cancel").json()
        assert (told["id"], told["status"]) == (name, "cancelled")
    assert retrieve(keeping, name).json()["status"] == "cancelled"
    assert retrieve(keeping, name, stream=True).status_code == 404
    follower = {"input": "And?", "previous_response_id": name}
    assert keeping.post(RESPONSES, json=follower).status_code == 400
    with keeping.stream("POST", RESPONSES, json={**ENDLESS, "stream": True}) as answer:
        pieces = answer.iter_text()
        text = next(pieces)
        name = events_of(text)[0]["response"]["id"]
        assert keeping.delete(f"{RESPONSES}/{name}").json()["deleted"]
        text += "".join(pieces)
    assert events_of(text)[-1]["code"] == "response_cancelled"
    assert retrieve(keeping, name).status_code == 404
    plain = keeping.post(RESPONSES, json={"input": "a", "max_output_tokens": 1}).json()["id"]
    assert keeping.post(f"{RESPONSES}/{plain}/cancel").status_code == 400
    assert retrieve(keeping, plain, stream=True).status_code == 400


def test_what_fails_says_why(keeping: httpx.Client) -> None:
    found = until_over(keeping, begin(keeping, input="hello " * 2000)["id"])
    assert found["status"] == "failed"
    assert found["error"]["code"] == "context_length_exceeded"
    answer = keeping.post(RESPONSES, json={**STORY, "store": False})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "background")
    assert keeping.post(RESPONSES, json={**STORY, "model": "nobody"}).status_code == 404


def test_it_goes_on_in_the_next_server(tmp_path: Path, serving: Serving) -> None:
    with serving(journal=tmp_path) as client:
        begun = begin(client, **ENDLESS)
        with client.stream("GET", f"{RESPONSES}/{begun['id']}?stream=true") as answer:
            first = next(answer.iter_text())
    told = events_of(first[: first.rfind("\n\n") + 2])
    with serving(journal=tmp_path) as client:
        after = {"starting_after": told[-1]["sequence_number"]}
        rest = retrieve(client, begun["id"], stream=True, **after).text
        whole = retrieve(client, begun["id"], stream=True).text
        found = retrieve(client, begun["id"]).json()
    assert told + events_of(rest) == events_of(whole)
    assert found == events_of(whole)[-1]["response"]
    assert found["usage"]["output_tokens"] == 800
    with serving(journal=tmp_path) as client:  # once more: nothing is left to do
        assert retrieve(client, begun["id"]).json() == found
    assert without_times(whole)


def test_without_a_journal_the_option_is_named(client: httpx.Client) -> None:
    answer = client.post(RESPONSES, json=STORY)
    assert answer.status_code == 400
    assert "--journal FOLDER" in answer.json()["error"]["message"]
