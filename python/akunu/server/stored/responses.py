"""Stored responses: each has its own input, its output, and the response that it continues."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from akunu.server.http.errors import ApiError, invalid
from akunu.server.state import entry_of, state_of
from akunu.server.stored.conversations import StoredConversations
from akunu.server.stored.items import NotStoredError, not_found
from akunu.server.stored.store import Key, ObjectStore, merged

_CONTINUED: Final = ("completed", "incomplete")


@dataclass(frozen=True, slots=True)
class StoredResponses:
    """The responses of one owner."""

    store: ObjectStore
    owner: str

    @classmethod
    def of(cls, request: Request) -> StoredResponses:
        """Return those of the key that a request has."""
        return cls(state_of(request).store, entry_of(request).owner or "")

    def find(self, name: str) -> dict[str, Any]:
        """Return a response with its input; ApiError where there is none."""
        found = merged(self.store.find(self._key(name)))
        if not found:
            raise not_found("response", name)
        return found

    def keep(self, items: Sequence[dict[str, Any]], response: dict[str, Any]) -> None:
        """Store a response, and have it in its conversation. ApiError where there is no room.

        `items`: its input, without what was before.
        """
        record = {"response": response, "input": list(items)}
        self.store.add(self._key(response["id"]), record)
        if response.get("conversation") is not None and response["status"] in _CONTINUED:
            with suppress(NotStoredError):  # the conversation was deleted meanwhile
                self.conversations.add(
                    response["conversation"]["id"], [*items, *response["output"]], response["id"]
                )

    def delete(self, name: str) -> None:
        """Delete a response; ApiError where there is none."""
        if not self.store.delete(self._key(name)):
            raise not_found("response", name)

    @property
    def conversations(self) -> StoredConversations:
        """The conversations of the same owner."""
        return StoredConversations(self.store, self.owner)

    def before(self, previous: str | None, conversation: str | None) -> list[dict[str, Any]]:
        """Return the items that a request comes after; ApiError where they are not stored."""
        if previous is not None and conversation is not None:
            raise invalid(
                "conversation", "previous_response_id and conversation exclude each other"
            )
        if conversation is not None:
            try:
                return self.conversations.find(conversation)[1]
            except NotStoredError as error:
                raise invalid("conversation", error.message, "conversation_not_found") from None
        return [] if previous is None else self._up_to(previous)

    def _up_to(self, name: str) -> list[dict[str, Any]]:
        """Return all items up to the end of a response, those that it continues first."""
        turns: list[list[dict[str, Any]]] = []
        previous: str | None = name
        while previous is not None:
            found = merged(self.store.find(self._key(previous)))
            if not found:
                raise _not_stored(name, previous)
            response = found["response"]
            if response.get("conversation") is not None:
                conversation = response["conversation"]["id"]
                raise _wrong_previous(
                    f"{previous!r} belongs to {conversation!r}: send conversation"
                )
            if response["status"] not in _CONTINUED:
                raise _wrong_previous(f"response {previous!r} is {response['status']}")
            turns.append([*found["input"], *response["output"]])
            previous = response["previous_response_id"]
        return [item for turn in reversed(turns) for item in turn]

    def _key(self, name: str) -> Key:
        return self.owner, "responses", name


def _not_stored(name: str, missing: str) -> ApiError:
    why = f"response {missing!r} is not stored"
    if missing != name:
        why = f"the conversation of response {name!r} began with {missing!r}, which is not stored"
    return _wrong_previous(f"{why} (it may be deleted, too old, or of a server that has ended)")


def _wrong_previous(why: str) -> ApiError:
    return ApiError(400, why, param="previous_response_id", code="previous_response_not_found")
