"""Stored responses: continued, retrieved, deleted; by their owner only, and after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from add_tool import FUNCTION
from running_server import Serving

from akunu.server.http.errors import ApiError
from akunu.server.stored.store import MemoryStore
from lines import each_line

RESPONSES = "/v1/responses"
SUM = "What is 12 + 7?"


def ask(client: httpx.Client, given: Any, **body: Any) -> dict[str, Any]:
    answer = client.post(RESPONSES, json={"input": given, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refusal(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["param"]


def input_items(client: httpx.Client, name: str, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{RESPONSES}/{name}/input_items", params=query).json()
    return found


def test_a_response_continues_another_as_if_its_conversation_were_sent(
    client: httpx.Client,
) -> None:
    first = ask(client, SUM, instructions="Be brief.")
    second = ask(client, "And 3 + 4?", previous_response_id=first["id"])
    third = ask(client, "And 1 + 1?", previous_response_id=second["id"])
    turns = []
    for question, response in ((SUM, first), ("And 3 + 4?", second)):
        turns += [{"role": "user", "content": question}, *response["output"]]
    sent = ask(client, [*turns, {"role": "user", "content": "And 1 + 1?"}])
    assert third["usage"]["input_tokens"] == sent["usage"]["input_tokens"]
    assert third["output"][0]["content"] == sent["output"][0]["content"]
    assert third["previous_response_id"] == second["id"]
    counted = {"input": "And 1 + 1?", "previous_response_id": second["id"]}
    n = client.post(f"{RESPONSES}/input_tokens", json=counted).json()["input_tokens"]
    assert n == sent["usage"]["input_tokens"]


def test_calls_and_their_results_are_continued(client: httpx.Client) -> None:
    tools = [{"type": "function", **FUNCTION}]
    first = ask(client, SUM, tools=tools, tool_choice="required")
    (call,) = [each for each in first["output"] if each["type"] == "function_call"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "19"}
    body = {"tools": tools, "tool_choice": "none"}
    second = ask(client, [result], previous_response_id=first["id"], **body)
    sent = ask(client, [{"role": "user", "content": SUM}, *first["output"], result], **body)
    assert second["output"][0]["content"] == sent["output"][0]["content"]


@each_line("is_stream", [True, False])
def test_a_response_is_retrieved_as_it_was_answered(client: httpx.Client, is_stream: bool) -> None:
    if is_stream:
        answer = client.post(RESPONSES, json={"input": SUM, "stream": True}).text
        last = answer.strip().split("\n")[-1].removeprefix("data: ")
        response = json.loads(last)["response"]
    else:
        response = ask(client, SUM, max_output_tokens=2)  # incomplete
    assert response["store"] is True
    found = client.get(f"{RESPONSES}/{response['id']}")
    assert found.json() == response
    items = input_items(client, response["id"])
    (item,) = items["data"]
    assert item["content"] == [{"type": "input_text", "text": SUM}]
    assert (items["first_id"], items["last_id"]) == (item["id"], item["id"])
    assert items["has_more"] is False


def test_input_items_come_in_pages(client: httpx.Client) -> None:
    given = [{"role": "user", "content": str(number)} for number in range(5)]
    name = ask(client, given, max_output_tokens=1)["id"]

    def texts(page: dict[str, Any]) -> list[str]:
        return [each["content"][0]["text"] for each in page["data"]]

    assert texts(input_items(client, name)) == ["4", "3", "2", "1", "0"]
    first = input_items(client, name, limit=2, order="asc")
    assert (texts(first), first["has_more"]) == (["0", "1"], True)
    second = input_items(client, name, limit=3, order="asc", after=first["last_id"])
    assert (texts(second), second["has_more"]) == (["2", "3", "4"], False)
    path = f"{RESPONSES}/{name}/input_items"
    assert refusal(client.get(path, params={"limit": 101})) == (400, "limit")
    assert refusal(client.get(path, params={"order": "up"})) == (400, "order")
    assert refusal(client.get(path, params={"after": "msg_1"})) == (404, "after")


def test_a_deleted_response_is_gone_and_so_is_what_continued_it(client: httpx.Client) -> None:
    first = ask(client, SUM, max_output_tokens=1)["id"]
    second = ask(client, "And?", previous_response_id=first, max_output_tokens=1)["id"]
    told = client.delete(f"{RESPONSES}/{first}")
    assert told.json() == {"id": first, "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        assert client.request(method, f"{RESPONSES}/{first}").status_code == 404
    for name in (first, second):
        answer = client.post(RESPONSES, json={"input": "a", "previous_response_id": name})
        assert refusal(answer) == (400, "previous_response_id")
        assert first in answer.json()["error"]["message"]
    assert client.get(f"{RESPONSES}/{second}").status_code == 200


def test_what_is_not_to_be_stored_is_not(client: httpx.Client) -> None:
    response = ask(client, SUM, store=False, max_output_tokens=1)
    assert response["store"] is False
    assert client.get(f"{RESPONSES}/{response['id']}").status_code == 404


@each_line("name", ["resp_1", "..%2F..%2Flock", "resp_" + "0" * 32, "resp_" + "0" * 32 + "%0A"])
def test_an_id_that_no_response_has_is_not_found(client: httpx.Client, name: str) -> None:
    assert client.get(f"{RESPONSES}/{name}").status_code == 404


@each_line("has_journal", [True, False])
def test_no_key_sees_what_another_stored(
    has_journal: bool, tmp_path: Path, serving: Serving
) -> None:
    journal = tmp_path / "journal" if has_journal else None
    with serving(journal=journal, api_keys=["a", "b"]) as client:
        owner, other = ({"authorization": f"Bearer {key}"} for key in "ab")
        body: dict[str, Any] = {"input": SUM, "max_output_tokens": 1}
        name = client.post(RESPONSES, json=body, headers=owner).json()["id"]
        path = f"{RESPONSES}/{name}"
        for each in (path, f"{path}/input_items"):
            assert client.get(each).status_code == 401
            assert client.get(each, headers=other).status_code == 404
        assert client.delete(path, headers=other).status_code == 404
        body["previous_response_id"] = name
        assert client.post(RESPONSES, json=body, headers=other).status_code == 400
        assert client.post(RESPONSES, json=body, headers=owner).status_code == 200


def test_with_a_journal_responses_outlive_the_server(tmp_path: Path, serving: Serving) -> None:
    with serving(journal=tmp_path) as client:
        first = ask(client, SUM)
        keyed = {"idempotency-key": "one"}
        kept = client.post(RESPONSES, json={"input": SUM}, headers=keyed).json()
    with serving(journal=tmp_path) as client:
        assert client.get(f"{RESPONSES}/{first['id']}").json() == first
        assert client.get(f"{RESPONSES}/{kept['id']}").json() == kept
        again = client.post(RESPONSES, json={"input": SUM}, headers=keyed).json()
        assert again == kept
        assert ask(client, "And?", previous_response_id=first["id"])["status"] == "completed"
    for path in tmp_path.rglob("*.journal"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_response_that_cannot_be_stored_is_an_error(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with serving(journal=tmp_path) as client:
        ask(client, SUM, max_output_tokens=1)
        monkeypatch.setattr("os.pwrite", full)
        answer = client.post(RESPONSES, json={"input": SUM, "max_output_tokens": 1})
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "journal_failed"
        stream = client.post(RESPONSES, json={"input": SUM, "stream": True}).text
        assert "response.failed" in stream
        assert "No space left on device" in stream
        assert ask(client, SUM, store=False)["status"] == "completed"
        monkeypatch.undo()
        assert ask(client, SUM, max_output_tokens=1)["store"] is True
    assert not [path for path in tmp_path.rglob("*.journal") if not path.stat().st_size]


def test_memory_forgets_what_was_used_least() -> None:
    kept = MemoryStore(most_bytes=40)
    for name in "abc":
        kept.add(("", "responses", name), {"number": 1})
    assert kept.find(("", "responses", "a"))
    kept.add(("", "responses", "d"), {"number": 12})
    assert [bool(kept.find(("", "responses", name))) for name in "abcd"] == [
        True,
        False,
        True,
        True,
    ]
    with pytest.raises(ApiError) as caught:
        kept.add(("", "responses", "e"), {"text": "a" * 40})
    assert caught.value.status == 507
