"""The items of conversations as they are stored, each with an id, and pages of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import Query

from akunu.common.clock_and_ids import random_hex
from akunu.server.http.errors import ApiError, invalid

Limit = Annotated[int, Query(ge=1, le=100)]
"""How many things a page has; of routes."""
Order = Literal["asc", "desc"]
_PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
}


def as_items(given: Any) -> list[dict[str, Any]]:
    """Return an input, which was read before, as items in the form that answers have.

    >>> as_items("Hi")[0]["content"]
    [{'type': 'input_text', 'text': 'Hi'}]
    """
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    return [_item(each) for each in given]


def _item(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = given.get("type") or "message"
    item = {"id": f"{_PREFIXES[kind]}_{random_hex(16)}", "type": kind, "status": "completed"}
    item.update((key, value) for key, value in given.items() if value is not None)
    content = item.get("content")
    if kind == "message" and isinstance(content, str):
        part: dict[str, Any] = {"type": "input_text", "text": content}
        if item["role"] == "assistant":
            part = {"type": "output_text", "text": content, "annotations": []}
        item["content"] = [part]
    return item


def conversation_id(given: Any) -> str | None:
    """Return the id of a conversation that a request names, as a text or in an object."""
    name = given.get("id") if isinstance(given, dict) else given
    if name is not None and not isinstance(name, str):
        raise invalid("conversation", "conversation must be an id, or an object with an id")
    return name


def page_of(
    things: Sequence[Mapping[str, Any]], *, after: str | None, limit: int, order: str
) -> dict[str, Any]:
    """Return a page of things, which are in the order of their time, as OpenAI has lists.

    >>> page_of([{"id": "a"}, {"id": "b"}, {"id": "c"}], after="c", limit=1, order="desc")["data"]
    [{'id': 'b'}]
    """
    ordered = list(things) if order == "asc" else list(reversed(things))
    begin = 0
    if after is not None:
        places = [index for index, each in enumerate(ordered) if each["id"] == after]
        if not places:
            raise not_found("object", after, param="after")
        begin = places[0] + 1
    data = ordered[begin : begin + limit]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": begin + limit < len(ordered),
    }


class NotStoredError(ApiError):
    """An object that is not stored, or belongs to another key."""


def not_found(what: str, name: str, *, param: str | None = None) -> NotStoredError:
    """Return the error for an id."""
    return NotStoredError(
        404, f"there is no {what} with the id {name!r}", param=param, code="not_found"
    )
