"""JSON schemas as grammars: compiled, or refused with the place and the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from akunu.grammar.errors import SchemaError, lone_surrogate
from akunu.grammar.grammar import Grammar, Weakened
from akunu.grammar.limits import WIDE, matcher_of, why_none_begins, why_too_wide
from akunu.grammar.schema.brief import brief as made_brief
from akunu.grammar.schema.endless import containing_itself, endless, without_endless
from akunu.grammar.schema.exact_numbers import exact, is_inexact_number
from akunu.grammar.schema.factors import clashing_factors
from akunu.grammar.schema.reading import Schema, root_place
from akunu.grammar.schema.source import schema_of
from akunu.grammar.schema.writing import Writer

if TYPE_CHECKING:
    from llguidance import LLMatcher

WHITESPACE = r"[ ]|\r?\n[ \t]{0,64}"
"""Where JSON allows whitespace: one space, or one end of line and an indentation.

Any amount, which JSON allows, is what small models never stop writing.
"""

_UNSATISFIABLE = "Unsatisfiable schema"
_WEAKENINGS = 40


def compile_schema(
    source: Any, *, weaken: bool = False, compact: bool = False, brief: bool = False
) -> Grammar:
    """Return the grammar of a JSON schema: `akunu.grammar.from_schema`.

    What llguidance refuses in the end is located, and with `weaken` left out like the rest.
    """
    try:
        return _compiled(source, weaken, compact, brief)
    except RecursionError as error:
        raise SchemaError("", "its parts are nested too deeply") from error


def _compiled(source: Any, weaken: bool, compact: bool, brief: bool) -> Grammar:
    original = schema_of(source)
    place = root_place(original)
    dropped: dict[str, str] = {}
    while True:
        writer = Writer(weaken=weaken, excluded=_excluded)
        writer.dropped = set(dropped)
        written = writer.write(place)
        if names := endless(written):
            name = containing_itself(written, names)
            if "" in names and name is not None:
                raise _never_ending(writer, name)
            written = without_endless(written, names)
        text = _grammar(written, compact)
        has_several = text.count('"multipleOf"') > 1
        if has_several and (part := clashing_factors(written)) is not None:
            why = "factors of multipleOf meet here whose common multiple is too large"
            clash = _of_part(writer, part, why)
            if not weaken or clash.pointer in ("", *dropped):
                raise clash
            dropped[clash.pointer] = clash.reason
            continue
        if lone_surrogate(text):  # no token has a part of one
            pointer = next(place for place, part in _texts(original, "") if lone_surrogate(part))
            raise SchemaError(pointer, "a text with a lone surrogate is not valid Unicode")
        matcher = matcher_of(text)
        error = _error(text) if matcher.is_error() else None
        if error is None and brief:
            text = _grammar(made_brief(written, _is_refused), compact)
            if error := _error(text):
                raise SchemaError("", f"no short texts fit it ({_plain(error)})")
            matcher = matcher_of(text)
        if error is None and (refused := _too_wide(writer, matcher)):
            raise refused
        if error is None:
            left_out = [Weakened(pointer, reason) for pointer, reason in dropped.items()]
            return Grammar(
                llguidance=text,
                schema=json.dumps(original, ensure_ascii=False),
                weakened=(*writer.weakened, *left_out),
            )
        if "oneOf" in error and writer.unproven:
            refused = writer.unproven[0]
        else:
            refused = _located(writer, written, error)
        if not weaken or len(dropped) >= _WEAKENINGS or refused.pointer in dropped:
            raise refused
        if error.startswith(_UNSATISFIABLE) or refused.pointer == "":
            raise refused
        dropped[refused.pointer] = refused.reason


def _grammar(schema: Schema, compact: bool) -> str:
    options: dict[str, Any] = {"whitespace_flexible": not compact}
    if not compact:
        options["whitespace_pattern"] = WHITESPACE
    if not isinstance(schema, dict):
        schema = {} if schema else {"enum": []}
    rules = exact(schema, None if compact else WHITESPACE, options)
    if rules is not None:
        return json.dumps({"grammars": [{"lark_grammar": rules}]}, ensure_ascii=False)
    grammar = {"json_schema": {**schema, "x-guidance": options}}
    return json.dumps({"grammars": [grammar]}, ensure_ascii=False)


def _error(grammar: str) -> str | None:
    """What llguidance says against a grammar."""
    from llguidance import LLMatcher

    return LLMatcher.validate_grammar(grammar, None) or None


def _is_refused(schema: Schema) -> bool:
    return _error(_grammar(schema, compact=False)) is not None


def _excluded(schema: Schema, definitions: dict[str, Schema]) -> bool:
    """Whether nothing fits a schema; False where that is not certain."""
    if not isinstance(schema, dict):
        return schema is False
    error = _error(_grammar({"$defs": definitions, **schema}, compact=False))
    return error is not None and error.startswith(_UNSATISFIABLE)


def _located(writer: Writer, written: Schema, error: str) -> SchemaError:
    """The error with the smallest schema that llguidance refuses for the same reason."""
    reason = _plain(error)
    if reason.startswith("Failed to generate regex"):
        inexact = (each for _, each in writer.written if _has_inexact_number(each))
        why = "numbers beyond 2^53 cannot be combined with the other keywords here"
        return _of_part(writer, next(inexact, None), why)
    sized = sorted(
        ((len(json.dumps(schema)), place) for place, schema in writer.written),
        key=lambda pair: (pair[0], -len(pair[1].pointer)),
    )
    by_pointer = {place.pointer: schema for place, schema in writer.written}
    for _, place in sized[:3000]:
        schema = writer.whole(by_pointer[place.pointer])
        found = _error(_grammar(schema, compact=False)) if isinstance(schema, dict) else None
        if found is not None and _plain(found) == reason:
            return SchemaError(place.pointer, reason)
    return SchemaError("", reason)


def _has_inexact_number(schema: Schema) -> bool:
    return isinstance(schema, dict) and is_inexact_number(schema)


def _too_wide(writer: Writer, matcher: LLMatcher) -> SchemaError | None:
    """What is wrong where a text begins, or a part of it that could continue in very many ways."""
    if reason := why_none_begins(matcher):
        return SchemaError("", reason)
    for place, schema in writer.written:
        if _width(schema) > WIDE:
            part = _grammar(writer.whole(schema), compact=False)
            if reason := why_too_wide(part, [b'{"']):
                return SchemaError(place.pointer, reason)
    return None


def _width(schema: Schema) -> int:
    if not isinstance(schema, dict):
        return 0
    parts = [schema[key] for key in ("properties", "anyOf", "oneOf", "enum") if key in schema]
    return max(map(len, parts), default=0)


def _never_ending(writer: Writer, name: str) -> SchemaError:
    reason = "no text fits it: each would contain another one like itself, without an end"
    return _of_part(writer, writer.definitions[name], reason)


def _of_part(writer: Writer, part: Schema, reason: str) -> SchemaError:
    """The error with the place that a part was written for."""
    places = [place for place, schema in writer.written if schema is part]
    return SchemaError(places[0].pointer if places else "", reason)


def _plain(error: str) -> str:
    """The first of llguidance's lines that says what is wrong."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    first = lines[0]
    if first.startswith("regex parse error"):
        return "the pattern is not a regular expression: " + lines[-1].removeprefix("error: ")
    first = re.sub(r"^Unsatisfiable schema: ", "nothing fits it: ", first)
    return first[:300]


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """All texts of a schema, names too, each with the pointer to the part that has it."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield pointer, key
            yield from _texts(each, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, f"{pointer}/{index}")
