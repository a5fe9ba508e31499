"""`oneOf` as `anyOf`: its alternatives exclude each other, or are made to."""

from __future__ import annotations

from collections.abc import Callable

from akunu.grammar.schema.negation import negation_within
from akunu.grammar.schema.reading import TYPES, Schema
from akunu.grammar.schema.writer_parts import Inexpressible, OneOf, SchemaWriter, all_of

_PAIRS = 2000
"""Pairs of alternatives that are compared; each is compiled once."""


def exclude_each_other(
    writer: SchemaWriter, one_of: OneOf, excluded: Callable[[Schema, dict[str, Schema]], bool]
) -> None:
    """Adds to each alternative that the others do not fit, where they could.

    `excluded` says whether nothing fits a schema, given definitions. Alternatives are compared as
    they were written at first: a `oneOf` inside counts as `anyOf`, which fits more, so that what
    excludes each other then does so all the more.
    """
    written = list(one_of.written)
    n = len(written)
    if n * (n - 1) // 2 > _PAIRS:
        writer.leave_out(one_of.place.refuse(f"{n} alternatives are too many to compare", "oneOf"))
        return
    for i in range(n):
        for j in range(i):
            both = all_of(one_of.beside or True, written[i], written[j])
            if both is False or (both is not True and excluded(both, writer.definitions)):
                continue
            try:
                not_i = negation_within(writer, one_of.options[i], _types(one_of, written[j]))
                not_j = negation_within(writer, one_of.options[j], _types(one_of, written[i]))
            except Inexpressible as inexpressible:
                error = one_of.place.refuse(
                    f"alternatives {j} and {i} may both fit, and no grammar can exclude one of "
                    f"them ({inexpressible.error.pointer}: {inexpressible.error.reason})",
                    "oneOf",
                )
                one_of.written[:] = written
                if one_of.place.pointer + "/oneOf" in writer.dropped:
                    return
                _keep(one_of.holder)
                writer.unproven.append(error)
                return
            one_of.written[i] = all_of(one_of.written[i], not_j)
            one_of.written[j] = all_of(one_of.written[j], not_i)


def _types(one_of: OneOf, written: Schema) -> list[str]:
    """The types that the values of an alternative have."""
    for schema in (written, one_of.beside):
        if isinstance(schema, dict) and "type" in schema:
            types = schema["type"]
            return [types] if isinstance(types, str) else list(types)
    return [*TYPES]


def _keep(holder: dict[str, Schema]) -> None:
    """Leaves `oneOf` to llguidance, which refuses it where it does not see the same either."""
    entries = [("oneOf" if key == "anyOf" else key, value) for key, value in holder.items()]
    holder.clear()
    holder.update(entries)
