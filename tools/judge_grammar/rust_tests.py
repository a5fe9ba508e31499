"""llguidance's own tests, read from their Rust source as data: forms, texts, what is expected.

Only literals are read: texts, numbers, `json!`, lists, `format!` of known names, and the cases of
rstest. What is computed in Rust is listed as not read, by its test's name.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILES = (
    *("json_arrays", "json_enum_const", "json_objects", "json_primitives"),
    *("json_schema_combinations", "json_string_format", "json_x_guidance", "lark", "ll"),
)


@dataclass(slots=True)
class Expectations:
    """What the tests say: of each form (a schema or Lark) what fits, what does not, or an error."""

    found: list[dict[str, Any]] = field(default_factory=list)
    not_read: dict[str, str] = field(default_factory=dict)


def expectations(checkout: Path) -> Expectations:
    """Everything that the tests in `parser/tests` of a checkout of llguidance say in literals."""
    found = Expectations()
    for name in FILES:
        file = checkout / "parser" / "tests" / f"test_{name}.rs"
        _File(name, file.read_text(encoding="utf-8"), found).read()
    return found


def as_data(checkout: Path) -> str:
    """The tests as they are committed: JSON with their source and licence, a form on each line."""
    read = expectations(checkout)
    head = {
        "source": f"https://github.com/guidance-ai/llguidance, parser/tests, {_revision(checkout)}",
        "licence": (checkout / "LICENSE").read_text(encoding="utf-8"),
        "not_read": read.not_read,
    }
    forms = ",\n".join(json.dumps(one, ensure_ascii=False) for one in read.found)
    return json.dumps(head, indent=1, ensure_ascii=False)[:-2] + f',\n "tests": [\n{forms}\n]\n}}\n'


def _revision(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Computed(Exception):  # noqa: N818, caught where a test is listed as not read
    """An expression that is no literal."""


_LEXEME = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<char>'(?:\\.|[^'\\])')
    |(?P<number>-?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?:[iuf](?:8|16|32|64|size))?
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*!?)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)

_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Lexeme:
    kind: str
    value: Any


def _lexemes(text: str) -> list[_Lexeme]:
    found = []
    for match in _LEXEME.finditer(text):
        if match["raw"] is not None:
            found.append(_Lexeme("text", match["raw"]))
        elif match["string"] is not None:
            found.append(_Lexeme("text", _text(match["string"])))
        elif match["number"] is not None:
            found.append(_Lexeme("number", json.loads(match["number"].replace("_", ""))))
        elif match.lastgroup != "skip":
            found.append(_Lexeme("mark" if match["mark"] else "name", match[0]))
    return found


def _text(literal: str) -> str:
    inside = re.sub(r"\\\n\s*", "", literal[1:-1])
    inside = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda one: chr(int(one[1], 16)), inside)
    inside = re.sub(r"\\x([0-9a-fA-F]{2})", lambda one: chr(int(one[1], 16)), inside)
    escapes = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
    return re.sub(r"\\(.)", lambda one: escapes.get(one[1], one[1]), inside)


class _File:
    """Reads one file of tests."""

    def __init__(self, name: str, text: str, into: Expectations) -> None:
        self._name = name
        self._lexemes = _lexemes(text)
        self._into = into
        self._constants: dict[str, Any] = {}
        self._counted: dict[str, int] = {}

    def read(self) -> None:
        at = 0
        attributes: list[list[_Lexeme]] = []
        while at < len(self._lexemes):
            value = self._lexemes[at].value
            kind = self._lexemes[at].kind
            if kind == "mark" and value == "#":
                end = self._closing(at + 1)
                attributes.append(self._lexemes[at + 2 : end])
                at = end + 1
            elif kind == "name" and value == "static":
                at = self._constant(at)
            elif kind == "name" and value == "fn":
                at = self._function(at, attributes)
                attributes = []
            else:
                at += 1

    def _closing(self, at: int) -> int:
        """Where the bracket at `at` is closed."""
        depth = 0
        for i in range(at, len(self._lexemes)):
            if self._lexemes[i].kind == "mark":
                depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(
                    self._lexemes[i].value, 0
                )
            if depth == 0:
                return i
        raise ValueError(f"a bracket of {self._name} is not closed")

    def _constant(self, at: int) -> int:
        """Reads `static ref NAME: Value = expression;`."""
        lexemes = self._lexemes
        name = lexemes[at + 1].value if lexemes[at + 1].value != "ref" else lexemes[at + 2].value
        equals = next(i for i in range(at, len(lexemes)) if lexemes[i].value == "=")
        try:
            self._constants[name], at = _Reader(lexemes, self._constants).value(equals + 1)
        except Computed:
            at = equals
        return at

    def _function(self, at: int, attributes: list[list[_Lexeme]]) -> int:
        lexemes = self._lexemes
        name = lexemes[at + 1].value
        opening = next(i for i in range(at, len(lexemes)) if lexemes[i].value == "(")
        closing = self._closing(opening)
        body = next(i for i in range(closing, len(lexemes)) if lexemes[i].value == "{")
        end = self._closing(body)
        is_test = any(one and one[0].value in ("test", "rstest") for one in attributes)
        if is_test:
            try:
                for values in self._cases(lexemes[opening + 1 : closing], attributes):
                    self._body(name, lexemes[body + 1 : end], {**self._constants, **values})
            except Computed as computed:
                self._into.not_read[f"{self._name}: {name}"] = str(computed)
        return end + 1

    def _cases(
        self, parameters: list[_Lexeme], attributes: list[list[_Lexeme]]
    ) -> Iterator[dict[str, Any]]:
        """What the parameters of a test are, case by case."""
        named, given = self._parameters(parameters)
        cases: list[list[Any]] = []
        for attribute in attributes:
            if attribute and str(attribute[0].value).split("::")[0] == "case":
                opening = next(i for i, one in enumerate(attribute) if one.value == "(")
                reader = _Reader([*attribute[opening:], _Lexeme("mark", ";")], self._constants)
                cases.append(reader.arguments(0)[0])
        for case in cases or [[]]:
            if len(case) != len(named):
                raise Computed("its cases are not literals")
            for values in itertools.product(*given.values()):
                yield dict(zip(named, case, strict=True)) | dict(zip(given, values, strict=True))

    def _parameters(self, lexemes: list[_Lexeme]) -> tuple[list[str], dict[str, list[Any]]]:
        """Names of parameters that cases give, and those with a list of values of their own."""
        named: list[str] = []
        given: dict[str, list[Any]] = {}
        i = 0
        values: list[Any] | None = None
        while i < len(lexemes):
            if lexemes[i].value == "#":
                values = None
                if lexemes[i + 2].value == "values":
                    reader = _Reader([*lexemes, _Lexeme("mark", ";")], self._constants)
                    values, _ = reader.arguments(i + 3)
                depth = 0
                while True:
                    i += 1
                    depth += {"[": 1, "]": -1}.get(str(lexemes[i].value), 0)
                    if depth == 0:
                        break
            elif lexemes[i].kind == "name" and lexemes[i + 1].value == ":":
                if values is None:
                    named.append(lexemes[i].value)
                else:
                    given[lexemes[i].value] = values
                while i < len(lexemes) and lexemes[i].value != ",":
                    i += 1
            i += 1
        return named, given

    def _body(self, test: str, lexemes: list[_Lexeme], names: dict[str, Any]) -> None:
        """Every expectation in the body of a test."""
        reader = _Reader([*lexemes, _Lexeme("mark", ";")], names)
        i = 0
        while i < len(lexemes):
            value = lexemes[i].value
            is_name = lexemes[i].kind == "name"
            if is_name and value in ("for", "match", "if", "while"):
                raise Computed("it is computed in Rust")
            if is_name and value == "let":
                i = self._variable(reader, lexemes, i, names)
            elif is_name and value in _CALLS and lexemes[i + 1].value == "(":
                arguments, i = reader.arguments(i + 1)
                for entry in _CALLS[value](*arguments):
                    self._add(f"{self._name}: {test}", entry)
            elif is_name and (value.startswith("check_") or value == "json_fwd_test"):
                raise Computed("it looks at tokens of one tokenizer")
            else:
                i += 1

    def _add(self, test: str, entry: dict[str, Any]) -> None:
        """Adds an expectation to the form that it is about."""
        form = {key: entry[key] for key in ("schema", "lark", "error") if key in entry}
        last = self._into.found[-1] if self._into.found else {}
        if last.get("test") != test or any(last.get(key) != each for key, each in form.items()):
            last = {"test": test, **form}
            self._into.found.append(last)
        for key in ("fits", "fails", "begins"):
            if key in entry:
                last.setdefault(key, []).append(entry[key])

    def _variable(
        self, reader: _Reader, lexemes: list[_Lexeme], i: int, names: dict[str, Any]
    ) -> int:
        name = lexemes[i + 1].value
        while lexemes[i].value not in ("=", ";"):
            i += 1
        try:
            names[name], i = reader.value(i + 1)
        except Computed:
            names.pop(name, None)
            i += 1
        return i


class _Reader:
    """Reads literals from a list of lexemes."""

    def __init__(self, lexemes: list[_Lexeme], names: dict[str, Any]) -> None:
        self._lexemes = lexemes
        self._names = names

    def arguments(self, at: int) -> tuple[list[Any], int]:
        """The values between the bracket at `at` and its end, and what comes behind it."""
        closing = _CLOSING[self._lexemes[at].value]
        at += 1
        found: list[Any] = []
        while self._lexemes[at].value != closing or self._lexemes[at].kind != "mark":
            value, at = self.value(at)
            found.append(value)
            if self._lexemes[at].value == ",":
                at += 1
        return found, at + 1

    def value(self, at: int) -> tuple[Any, int]:
        """The value at `at`, and what comes behind it."""
        first = self._lexemes[at]
        while first.kind == "mark" and first.value in "&*":
            at += 1
            first = self._lexemes[at]
        if first.kind in ("text", "number"):
            value, at = first.value, at + 1
        elif first.value == "json!":
            value, at = self._json(at + 2)
            at += 1
        elif first.value == "vec!":
            value, at = self.arguments(at + 1)
        elif first.value == "format!":
            (value, *_), at = self.arguments(at + 1)
            value = self._formatted(value)
        elif first.kind == "mark" and first.value == "[":
            value, at = self.arguments(at)
        elif first.kind == "name" and first.value in ("true", "false"):
            value, at = first.value == "true", at + 1
        elif first.kind == "name" and first.value in self._names:
            value, at = self._names[first.value], at + 1
        else:
            raise Computed("it is computed in Rust")
        if self._lexemes[at].value == ".":
            raise Computed("it is computed in Rust")
        return value, at

    def _json(self, at: int) -> tuple[Any, int]:
        first = self._lexemes[at]
        if first == _Lexeme("name", "null"):
            return None, at + 1
        if first.kind != "mark" or first.value not in "[{":
            return self.value(at)
        closing, at = _CLOSING[first.value], at + 1
        items: list[Any] = []
        members: dict[str, Any] = {}
        while self._lexemes[at].value != closing or self._lexemes[at].kind != "mark":
            value, at = self._json(at)
            if closing == "}":
                if self._lexemes[at].value != ":" or not isinstance(value, str):
                    raise Computed("it is computed in Rust")
                members[value], at = self._json(at + 1)
            else:
                items.append(value)
            if self._lexemes[at].value == ",":
                at += 1
        return (members if closing == "}" else items), at + 1

    def _formatted(self, text: str) -> str:
        def replaced(found: re.Match[str]) -> str:
            if found[0] in ("{{", "}}"):
                return found[0][0]
            if found[1] not in self._names:
                raise Computed("it is computed in Rust")
            value = self._names[found[1]]
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

        return re.sub(r"\{\{|\}\}|\{([A-Za-z_0-9]*)[^}]*\}", replaced, text)


def _schema_check(schema: Any, value: Any, fits: bool) -> Iterator[dict[str, Any]]:
    yield {"schema": schema, "fits" if fits else "fails": value}


def _schema_many(schema: Any, fitting: Any, failing: Any) -> Iterator[dict[str, Any]]:
    for value in fitting:
        yield {"schema": schema, "fits": value}
    for value in failing:
        yield {"schema": schema, "fails": value}


def _schema_error(schema: Any, reason: str) -> Iterator[dict[str, Any]]:
    yield {"schema": schema, "error": reason}


def _lark_text(lark: str, fits: bool, text: str, quiet: bool = True) -> Iterator[dict[str, Any]]:
    yield {"lark": lark, "fits" if fits else "fails": text}


def _lark_many(lark: str, fitting: Any, failing: Any) -> Iterator[dict[str, Any]]:
    for text in fitting:
        yield {"lark": lark, "fits": text}
    for text in failing:
        yield {"lark": lark, "fails": text}


def _lark_error(lark: str, reason: str) -> Iterator[dict[str, Any]]:
    yield {"lark": lark, "error": reason}


def _lark_compiles(lark: str) -> Iterator[dict[str, Any]]:
    yield {"lark": lark}


def _trace(lark: str, pieces: list[str]) -> Iterator[dict[str, Any]]:
    """A text token by token, with tokens that are not allowed (`✖`) between them."""
    text = re.sub("✖[^‧✖]*(‧|$)", "", "".join(pieces)).replace("‧", "")
    text = text.removesuffix("≺EOS≻")
    if re.search("[≺↶]|<|✖", text) or "max_tokens" in lark:
        raise Computed("it looks at tokens of one tokenizer")
    yield {"lark": lark, "begins": text}


_CALLS: dict[str, Any] = {
    "check_lark_grammar": _trace,
    "json_schema_check": _schema_check,
    "json_test_many": _schema_many,
    "json_err_test": _schema_error,
    "lark_str_test": _lark_text,
    "lark_str_test_many": _lark_many,
    "lark_str_test_many_quiet": _lark_many,
    "lark_err_test": _lark_error,
    "lark_ok": _lark_compiles,
}
