"""Conversations: items that are stored, and responses that add to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from running_server import Serving

from lines import each_line

CONVERSATIONS = "/v1/conversations"
RESPONSES = "/v1/responses"
SUM = {"role": "user", "content": "What is 12 + 7?"}


def post(client: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def items_of(client: httpx.Client, name: str) -> list[dict[str, Any]]:
    page = client.get(f"{CONVERSATIONS}/{name}/items", params={"order": "asc", "limit": 100})
    return page.json()["data"]  # type: ignore[no-any-return]


def test_a_response_continues_a_conversation_and_adds_to_it(client: httpx.Client) -> None:
    name = post(client, CONVERSATIONS, items=[SUM])["id"]
    first = post(client, RESPONSES, input="And 3 + 4?", conversation=name)
    assert first["conversation"] == {"id": name}
    second = post(client, RESPONSES, input="And 1 + 1?", conversation={"id": name})
    turns = [SUM, {"role": "user", "content": "And 3 + 4?"}, *first["output"]]
    sent = [*turns, {"role": "user", "content": "And 1 + 1?"}]
    whole = post(client, RESPONSES, input=sent)
    assert second["output"][0]["content"] == whole["output"][0]["content"]
    assert second["usage"]["input_tokens"] == whole["usage"]["input_tokens"]
    items = items_of(client, name)
    assert [each["role"] for each in items] == [*("user", "user", "assistant", "user", "assistant")]
    assert items[2] == first["output"][0]
    assert len({each["id"] for each in items}) == 5


def test_a_conversation_is_looked_at_changed_and_deleted(client: httpx.Client) -> None:
    begun = post(client, CONVERSATIONS, metadata={"of": "me"})
    path = f"{CONVERSATIONS}/{begun['id']}"
    assert client.get(path).json() == begun
    assert items_of(client, begun["id"]) == []
    changed = post(client, path, metadata={"of": "you"})
    assert changed == {**begun, "metadata": {"of": "you"}}
    added = post(client, f"{path}/items", items=[SUM, {"role": "assistant", "content": "19"}])
    assert added["data"] == items_of(client, begun["id"])
    assert added["data"][1]["content"][0]["type"] == "output_text"
    item = f"{path}/items/{added['first_id']}"
    assert client.get(item).json() == added["data"][0]
    assert client.delete(item).json() == changed
    assert client.get(item).status_code == client.delete(item).status_code == 404
    assert items_of(client, begun["id"]) == added["data"][1:]
    assert client.delete(path).json() == {
        "id": begun["id"],
        "object": "conversation.deleted",
        "deleted": True,
    }
    for method in ("GET", "DELETE"):
        assert client.request(method, path).status_code == 404
    assert client.post(CONVERSATIONS).json()["metadata"] == {}


@each_line(
    ("path", "body", "param"),
    [
        (CONVERSATIONS, {"items": [SUM] * 21}, "items"),
        (CONVERSATIONS, {"items": [{"role": "nobody", "content": "a"}]}, "items"),
        (CONVERSATIONS, {"metadata": 3}, "metadata"),
        (RESPONSES, {"input": "a", "conversation": 3}, "conversation"),
        (RESPONSES, {"input": "a", "conversation": "conv_1"}, "conversation"),
        (
            RESPONSES,
            {"input": "a", "conversation": "conv_1", "previous_response_id": "resp_1"},
            "conversation",
        ),
        (RESPONSES, {"input": "a", "conversation": "CONVERSATION", "store": False}, "conversation"),
        (RESPONSES, {"input": "a", "previous_response_id": "RESPONSE"}, "previous_response_id"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    client: httpx.Client, path: str, body: dict[str, Any], param: str
) -> None:
    name = post(client, CONVERSATIONS)["id"]
    body = {key: name if value == "CONVERSATION" else value for key, value in body.items()}
    if body.get("previous_response_id") == "RESPONSE":
        asked = {"input": "a", "conversation": name, "max_output_tokens": 1}
        body["previous_response_id"] = post(client, RESPONSES, **asked)["id"]
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_conversations_are_the_keys_and_outlive_the_server(
    tmp_path: Path, serving: Serving
) -> None:
    settings: dict[str, Any] = {"journal": tmp_path, "api_keys": ["a", "b"]}
    other = {"authorization": "Bearer b"}
    keyed = {"idempotency-key": "one"}
    with serving(**settings) as client:
        client.headers["authorization"] = "Bearer a"
        name = post(client, CONVERSATIONS, items=[SUM])["id"]
        body = {"input": "And?", "conversation": name, "max_output_tokens": 3}
        for _ in range(2):  # the second one is the first one's answer
            assert client.post(RESPONSES, json=body, headers=keyed).status_code == 200
        post(client, RESPONSES, **body, background=True)
        path = f"{CONVERSATIONS}/{name}"
        for each in (path, f"{path}/items"):
            assert client.get(each, headers=other).status_code == 404
            assert client.get(each, headers={"authorization": ""}).status_code == 401
        for each in (path, f"{path}/items"):
            answer = client.post(each, json={"metadata": {}, "items": [SUM]}, headers=other)
            assert answer.status_code == 404
        assert client.post(RESPONSES, json=body, headers=other).status_code == 400
        while len(items_of(client, name)) < 5:
            pass
    with serving(**settings) as client:
        client.headers["authorization"] = "Bearer a"
        roles = [each["role"] for each in items_of(client, name)]
        assert roles == ["user", "user", "assistant", "user", "assistant"]
