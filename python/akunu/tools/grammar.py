"""Grammars that hold a reply to a notation: names of tools, arguments by their schemas.

They are made of the same patterns that calls are read by, in llguidance's variant of Lark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.grammar import FreeText, Grammar, from_schema
from akunu.grammar.errors import SchemaError
from akunu.thinking.markers import ThinkingMarkers
from akunu.tokenizers.token_matcher import TokenMatcher
from akunu.tools.notation import Element, Literal, Notation, NotationField, Optional, elements
from akunu.tools.text_reader import MARKING
from akunu.tools.values import first_word, json_types

_SPACE: Final = "WS?"
_FORM: Final = "form"  # the name of the grammar of a form, next to the one of calls


def required_calls(
    way: Notation,
    tools: Mapping[str, Mapping[str, Any]],
    control_tokens: Mapping[str, int],
    *,
    most: int | None,
    thinking: ThinkingMarkers | None = None,
    in_reasoning: bool = False,
    after: FreeText | None = None,
    form: Grammar | None = None,
) -> Grammar:
    """Return what a reply may be that consists of calls, after its reasoning if it has some.

    `thinking`: how it may think before; None: not at all. `in_reasoning`: it does already.
    `after`: the free text with which that ends, where it is not the closing marker alone. `form`:
    what the reply may be instead of calls.
    """
    rules = _Rules(way, tools, control_tokens)
    start = rules.calls(most)
    if form is not None:
        start = f"({start} | @{_FORM})"
    if after is not None:
        start = f"{_SPACE} {start}"
    elif thinking is not None and in_reasoning:
        after = FreeText(until=(_trigger(thinking.closing, control_tokens)[0],))
        start = f"{rules.literal(_trigger(thinking.closing, control_tokens)[1])} {_SPACE} {start}"
    elif thinking is not None:
        start = f"({rules.thoughts(thinking)})? {start}"
    return Grammar(llguidance=rules.grammar(start, form), after=after)


def optional_calls(
    way: Notation,
    tools: Mapping[str, Mapping[str, Any]],
    control_tokens: Mapping[str, int],
    *,
    most: int | None,
) -> Grammar | None:
    """Return free text up to the opening of a call, then calls; None: the opening is not a
    marker."""
    opening = next(iter(_trigger_openings(way)), "")
    if way.at_start or not MARKING & set(opening):
        return None
    trigger, rest = _trigger(opening, control_tokens)
    rules = _Rules(way, tools, control_tokens)
    calls = rules.calls(most, without=opening)
    start = f"{rules.literal(rest)} {calls}"
    return Grammar(llguidance=rules.grammar(start), after=FreeText(until=(trigger,)))


def _trigger_openings(way: Notation) -> list[str]:
    parts = [*elements(way.before), *elements(way.call)]
    return [first_word(part.text) for part in parts if isinstance(part, Literal)][:1]


def _trigger(text: str, control_tokens: Mapping[str, int]) -> tuple[str | tuple[int, ...], str]:
    """Return what free text ends with, and what of `text` is left after it."""
    first = next(iter(_pieces(text, control_tokens)))
    if isinstance(first, int):
        name = next(name for name, token in control_tokens.items() if token == first)
        return (first,), text[len(name) :]
    return text, ""


def _pieces(text: str, control_tokens: Mapping[str, int]) -> list[str | int]:
    return TokenMatcher(control_tokens).split(text) if control_tokens else [text]


class _Rules:
    """Writes the rules of one grammar."""

    def __init__(
        self,
        way: Notation,
        tools: Mapping[str, Mapping[str, Any]],
        control_tokens: Mapping[str, int],
    ) -> None:
        self._way = way
        self._tools = tools
        self._control_tokens = control_tokens
        self._rules: dict[str, str] = {}
        self._parts: list[dict[str, str]] = []  # grammars that rules name
        self._names: dict[tuple[str, str], str] = {}  # of rules, by what they say

    def grammar(self, start: str, form: Grammar | None = None) -> str:
        """Return llguidance's grammar with these rules, and with a form that they name."""
        rules = {"start": start, **self._rules, "WS": "/[ \\t\\r\\n]{1,16}/"}
        lark = "".join(f"{name}: {body}\n" for name, body in rules.items())
        grammars: list[dict[str, Any]] = [{"lark_grammar": lark}, *self._parts]
        if form is not None:
            parts = json.loads(form.llguidance)["grammars"]
            if form.after is not None or len(parts) != 1:
                raise ArgumentError(
                    "grammar has free text or several parts; with tools it may have neither"
                )
            grammars.append({**parts[0], "name": _FORM})
        return json.dumps({"grammars": grammars})

    def calls(self, most: int | None, without: str = "") -> str:
        """Return the calls of a reply; `without`: the opening, which is there already."""
        way = self._way
        before = self._elements(elements(way.before))
        first = call = self._call(elements(way.call))
        if without:
            begin = [*elements(way.before), *elements(way.call)]
            place = next(i for i, part in enumerate(begin) if isinstance(part, Literal))
            head = begin[place]
            assert isinstance(head, Literal)
            begin = [Literal(head.text.lstrip()[len(without) :]), *begin[place + 1 :]]
            n_before = max(0, len(elements(way.before)) - place)
            before = self._elements(begin[:n_before])
            first = self._call(tuple(begin[n_before:]))
        between = self.literal(way.between)
        more = "" if most == 1 else f"({_SPACE} {between} {call})*"
        if most is not None and most > 1:
            more = f"({_SPACE} {between} {call}){{0,{most - 1}}}"
        after = self._elements(elements(way.after))
        return f"{before} {first} {more} {_SPACE if after else ''} {after}"

    def thoughts(self, thinking: ThinkingMarkers) -> str:
        """Return reasoning with its markers."""
        text = self._text_with(thinking.closing)
        return f"{self.literal(thinking.opening)} {text} {_SPACE}"

    def literal(self, text: str) -> str:
        """Return a text of a pattern, in which whitespace stands for any."""
        found = []
        for piece in _pieces(text, self._control_tokens):
            if isinstance(piece, int):
                found.append(f"<[{piece}]>")
                continue
            for word in re.split(r"(\s+)", piece):
                if word:
                    found.append(_SPACE if word.isspace() else _quoted(word))
        return " ".join(found)

    def _rule(self, name: str, body: str) -> str:
        """Add a rule, or find the one that says the same; return its name."""
        name, bracket, attributes = name.partition("[")
        key = (bracket + attributes, body)
        if key not in self._names:
            self._names[key] = f"{name}_{len(self._names)}"
            self._rules[self._names[key] + bracket + attributes] = body
        return self._names[key]

    def _elements(self, parts: Sequence[Element]) -> str:
        found = [
            f"({self.literal(part.text)})?"
            if isinstance(part, Optional)
            else self.literal(part.text)
            for part in parts
            if not isinstance(part, NotationField)
        ]
        return " ".join(found)

    def _call(self, parts: tuple[Element, ...]) -> str:
        bodies = [self._one_tool(parts, name) for name in self._tools]
        return self._rule("call", "\n  | ".join(bodies))

    def _one_tool(self, parts: tuple[Element, ...], name: str) -> str:
        schema = self._tools[name]
        found = []
        for place, part in enumerate(parts):
            if not isinstance(part, NotationField):
                found.append(self._elements([part]))
            else:
                following = next((p for p in parts[place + 1 :] if isinstance(p, Literal)), None)
                try:
                    found.append(self._field(part.name, name, schema, following))
                except SchemaError as error:
                    raise ArgumentError(f"parameters of the tool {name!r}: {error}") from error
        return " ".join(found)

    def _field(
        self, field: str, name: str, schema: Mapping[str, Any], following: Literal | None
    ) -> str:
        if field in ("name", "any"):
            return _quoted(name)
        if field == "id":
            form = "[A-Za-z0-9]{9}" if self._way.id_form == "9" else "[A-Za-z0-9_-]{1,40}"
            return self._rule("ID", f"/{form}/")
        if field == "index":
            return self._rule("INDEX", "/[0-9]{1,4}/")
        if field == "arguments":
            return self._arguments(schema)
        if field == "call":
            keys = (self._way.name_key, self._way.arguments_keys[0])
            return (
                f"{_quoted('{')} {self._key(keys[0])} {_quoted(json.dumps(name))} {_SPACE} "
                f"{_quoted(',')} {self._key(keys[1])} {self._arguments(schema)} {_SPACE} "
                f"{_quoted('}')}"
            )
        if field == "keyed":
            return (
                f"{_quoted('{')} {self._key(name)} {self._arguments(schema)} {_SPACE} "
                f"{_quoted('}')}"
            )
        if field == "parameters":
            return self._parameters(schema)
        if field == "python":
            items = self._listed(
                schema, lambda key: f"{_quoted(key + '=')} {self._json_of(schema, key)}"
            )
            return f"{_quoted(name + '(')} {items} {_quoted(')')}"
        items = self._listed(
            schema, lambda key: f"{_quoted(key + ':')} {self._word_value(_property(schema, key))}"
        )
        return f"{_quoted('{')} {items} {_quoted('}')}"

    @staticmethod
    def _key(key: str) -> str:
        return f"{_SPACE} {_quoted(json.dumps(key))} {_SPACE} {_quoted(':')} {_SPACE}"

    def _arguments(self, schema: Mapping[str, Any]) -> str:
        return self._json({"type": "object", **schema})

    def _json(self, schema: Any) -> str:
        # Some keywords have no grammar (uniqueItems): the code that runs the call checks them.
        compiled = json.loads(from_schema(schema, weaken=True).llguidance)["grammars"][0]
        if "lark_grammar" in compiled:  # of numbers that a schema does not hold exactly
            name = f"part_{len(self._parts)}"
            self._parts.append({**compiled, "name": name})
            return self._rule("json", f"@{name}")
        return self._rule(
            "json", f"%json {json.dumps(compiled['json_schema'], ensure_ascii=False)}"
        )

    def _json_of(self, schema: Mapping[str, Any], key: str) -> str:
        """Return the JSON of one property; what it refers to comes with it."""
        found = dict(_property(schema, key))
        found.update({name: schema[name] for name in ("$defs", "definitions") if name in schema})
        return self._json(found)

    def _parameters(self, schema: Mapping[str, Any]) -> str:
        found = []
        parts = elements(self._way.parameter)
        for key in _keys(schema):
            written = []
            is_closed = False  # by the text before it
            for place, part in enumerate(parts):
                if not isinstance(part, NotationField):
                    written.append("" if is_closed else self._elements([part]))
                    is_closed = False
                elif part.name == "key":
                    written.append(_quoted(key))
                elif part.name == "type":
                    written.append(self._type(schema, key))
                else:
                    following = parts[place + 1]
                    assert isinstance(following, Literal)
                    values = _property(schema, key).get("enum")
                    if isinstance(values, (list, tuple)) and _are_texts(values):
                        written.append(f"({' | '.join(map(_quoted, values))})")
                    elif self._is_text(schema, key):
                        written.append(self._text_with(following.text))
                        is_closed = True
                    else:
                        written.append(self._json_of(schema, key))
            body = f"{' '.join(written)} {_SPACE}"
            found.append(body if key in schema.get("required", ()) else f"({body})?")
        return f"{_SPACE} {' '.join(found)}"

    def _is_text(self, schema: Mapping[str, Any], key: str) -> bool:
        types = json_types(_property(schema, key))
        return not types or "string" in types

    def _type(self, schema: Mapping[str, Any], key: str) -> str:
        if "string=" in self._way.parameter:
            return _quoted("true" if self._is_text(schema, key) else "false")
        if self._is_text(schema, key):
            return _quoted("string")
        types = sorted(json_types(_property(schema, key)))
        return _quoted({"integer": "number"}.get(types[0], types[0]))

    def _text_with(self, closing: str) -> str:
        """Return any text up to a text of a pattern, and that."""
        first = first_word(closing)
        if isinstance(next(iter(_pieces(first, self._control_tokens))), int):
            return f"{self._rule('TEXT', '/(?s:.*)/')} {self.literal(closing)}"
        # The text ends with the first such one: a lexer would continue otherwise.
        name = self._rule(f"text[suffix={_quoted(first)}]", "/(?s:.*)/")
        return f"{name} {self.literal(closing.lstrip()[len(first) :])}"

    def _listed(self, schema: Mapping[str, Any], write: Any) -> str:
        """Return properties between commas; those that may be missing come after the others."""
        keys = _keys(schema)
        needed = [key for key in keys if key in schema.get("required", ())]
        others = [key for key in keys if key not in needed]
        comma = f"{_quoted(',')} {_SPACE}"

        def optional(keys: Sequence[str]) -> str:
            return " ".join(f"({comma} {write(key)})?" for key in keys)

        if needed:
            return f"{f' {comma} '.join(map(write, needed))} {optional(others)}"
        if not others:
            return ""
        ways = [f"{write(key)} {optional(others[i + 1 :])}" for i, key in enumerate(others)]
        return f"({' | '.join(ways)})?"

    def _word_value(self, schema: Mapping[str, Any]) -> str:
        text = f"{self.literal(self._way.quote)} {self._text_with(self._way.quote)}"
        types = json_types(schema)
        if types == {"string"}:
            return text
        if types and not types & {"string", "object", "array"}:
            return self._json({"type": sorted(types)})
        plain = self._json({"type": ["number", "boolean", "null"]})
        key = self._rule("KEY", "/[A-Za-z0-9_.\\/-]{1,64}/")
        self._rules["words"] = (
            f"{text} | {plain} "
            f"| {_quoted('[')} (words ({_quoted(',')} {_SPACE} words)*)? {_quoted(']')} "
            f"| {_quoted('{')} ({key} {_quoted(':')} words "
            f"({_quoted(',')} {_SPACE} {key} {_quoted(':')} words)*)? {_quoted('}')}"
        )
        return "words"


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(each, str) for each in values)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _keys(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _property(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = schema["properties"][key]
    return found if isinstance(found, Mapping) else {}
