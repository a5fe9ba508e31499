"""Stored conversations: items, to which responses add their input and output."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from akunu.common.clock_and_ids import random_hex
from akunu.server.state import entry_of, state_of
from akunu.server.stored.items import not_found
from akunu.server.stored.store import Key, ObjectStore


@dataclass(frozen=True, slots=True)
class StoredConversations:
    """The conversations of one owner."""

    store: ObjectStore
    owner: str

    @classmethod
    def of(cls, request: Request) -> StoredConversations:
        """Return those of the key that a request has."""
        return cls(state_of(request).store, entry_of(request).owner or "")

    def create(self, items: Sequence[dict[str, Any]], metadata: dict[str, Any]) -> dict[str, Any]:
        """Begin a conversation with these items."""
        told: dict[str, Any] = {
            "id": f"conv_{random_hex(16)}",
            "object": "conversation",
            "created_at": int(time.time()),
            "metadata": metadata,
        }
        self.store.add(self._key(told["id"]), {"conversation": told, "add": list(items)})
        return told

    def find(self, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return a conversation and its items, the oldest first; ApiError where there is none."""
        records = self.store.find(self._key(name))
        if not records:
            raise not_found("conversation", name)
        told: dict[str, Any] = {}
        items: list[dict[str, Any]] = []
        for each in records:
            told = each.get("conversation", told)
            items += each.get("add", ())
            items = [item for item in items if item["id"] != each.get("drop")]
        return told, items

    def update(self, name: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Give a conversation other metadata."""
        told, _ = self.find(name)
        told = {**told, "metadata": metadata}
        self.store.add(self._key(name), {"conversation": told})
        return told

    def add(self, name: str, items: Sequence[dict[str, Any]], response: str | None = None) -> None:
        """Add items, those of one response once. ApiError where there is no conversation."""
        records = self.store.find(self._key(name))
        if not records:
            raise not_found("conversation", name)
        if response is None or all(each.get("response") != response for each in records):
            self.store.add(self._key(name), {"add": list(items), "response": response})

    def drop(self, name: str, item: str) -> dict[str, Any]:
        """Delete an item; return the conversation."""
        told, _ = self.find(name)
        self.item(name, item)
        self.store.add(self._key(name), {"drop": item})
        return told

    def item(self, name: str, item: str) -> dict[str, Any]:
        """Return an item; ApiError where there is none."""
        _, items = self.find(name)
        for each in items:
            if each["id"] == item:
                return each
        raise not_found("item", item)

    def delete(self, name: str) -> None:
        """Delete a conversation; ApiError where there is none."""
        if not self.store.delete(self._key(name)):
            raise not_found("conversation", name)

    def _key(self, name: str) -> Key:
        return self.owner, "conversations", name
