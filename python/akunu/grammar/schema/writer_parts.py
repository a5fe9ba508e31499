"""What the modules that write a schema share: what cannot be said, and how schemas combine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from akunu.grammar.errors import SchemaError
from akunu.grammar.schema.reading import Node, Schema, SchemaPlace


class Inexpressible(Exception):  # noqa: N818, the caller weakens the schema or raises SchemaError
    """There is no grammar for an assertion."""

    def __init__(self, place: SchemaPlace, reason: str, *keys: str) -> None:
        """Say where and why."""
        self.error = place.refuse(reason, *keys)
        super().__init__(str(self.error))


@dataclass(slots=True)
class OneOf:
    """A `oneOf` written as `anyOf`, whose alternatives may still have to exclude each other."""

    place: SchemaPlace
    options: list[SchemaPlace]
    written: list[Schema]
    """What stands in the result: changed in place."""
    beside: Schema
    holder: dict[str, Schema]
    """What has them as its `anyOf`."""


class SchemaWriter(Protocol):
    """What writes the places of one schema (`writing.Writer`)."""

    definitions: dict[str, Schema]
    dropped: set[str]
    unproven: list[SchemaError]

    def schema(self, place: SchemaPlace) -> Schema:
        """What is written for that place."""

    def reference(self, place: SchemaPlace, *, negated: bool = False) -> Schema:
        """A reference to the definition of that place, which is written once."""

    def leave_out(self, error: SchemaError) -> None:
        """Notes an assertion as left out; raises where the caller does not allow it."""


def most_items(node: Node) -> int | None:
    """How many items a list may have; None: any number."""
    most: list[int] = [node["maxItems"]] if "maxItems" in node else []
    if "items" in node and node["items"].schema is False:
        most.append(len(node.get("prefixItems", ())))
    return min(most, default=None)


def any_of(*schemas: Schema) -> Schema:
    """One of them; the simplest way to say so."""
    kept = [schema for schema in schemas if schema is not False]
    if any(schema is True for schema in kept):
        return True
    if not kept:
        return False
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def all_of(*schemas: Schema) -> Schema:
    """All of them; the simplest way to say so."""
    kept = [schema for schema in schemas if schema is not True]
    if any(schema is False for schema in kept):
        return False
    if not kept:
        return True
    return kept[0] if len(kept) == 1 else {"allOf": kept}


def without(name: str) -> Schema:
    """Anything but an object that has this property."""
    return {"properties": {name: False}}
