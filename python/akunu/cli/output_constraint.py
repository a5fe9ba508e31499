"""What form a text has, as a person says it: options of `chat` and `complete`, and /set."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from akunu.cli.terminal import console
from akunu.cli.wording import shortened
from akunu.common.files import read_text
from akunu.errors import ArgumentError
from akunu.grammar.structure import Structure, structure_of
from akunu.text.completion import Completion

FORMS: Final = ("schema", "json_object", "regex", "choice", "grammar")
"""Their names, of which a text has one."""


def say_weakened(structure: Structure | None) -> None:
    """Say what of a schema a text is not held to."""
    for one in structure.grammar.weakened if structure is not None else ():
        console.say(f"akunu: --weaken-schema: {one.pointer or '/'} is ignored: {one.reason}")


def say_mistakes(completion: Completion) -> None:
    """Say what a text does against a schema that it was not held to as a whole."""
    for mistake in completion.mistakes if completion.weakened else ():
        console.say(f"akunu: the text does not fit its schema: {mistake}")


_NOTHING: Final = ("none", "off", "default")


@dataclass(frozen=True, slots=True)
class OutputConstraint:
    """A form, and how a person wrote it."""

    name: str
    """One of FORMS."""
    shown: str
    """What was written after the name."""
    arguments: Mapping[str, Any]
    """What `generate` takes."""

    @property
    def structure(self) -> Structure | None:
        """What the engine is passed; raises ArgumentError for values that make no sense."""
        return structure_of(self.arguments)


def constraint_of_options(
    schema: str | None,
    json_object: bool,
    regex: str | None,
    choice: Sequence[str] | None,
    grammar: str | None,
    *,
    weaken: bool = False,
) -> OutputConstraint | None:
    """Return the form that the command line gave; UsageError for several.

    `weaken`: what no grammar can hold of the schema is left out.
    """
    given: dict[str, str | Sequence[str] | bool | None] = {
        "schema": schema,
        "json_object": json_object or None,
        "regex": regex,
        "choice": choice or None,
        "grammar": grammar,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in chosen)
        raise console.UsageError(f"{names} are set: use only one of them")
    if weaken and "schema" not in chosen:
        raise console.UsageError("--weaken-schema needs --schema")
    for name, value in chosen.items():
        try:
            form = _form(name, value, f"--{name.replace('_', '-')}")
        except ArgumentError as error:
            raise console.UsageError(str(error)) from None
        if weaken:
            form = replace(form, arguments={**form.arguments, "weaken_schema": True})
        return form
    return None


def constraint_of(name: str, text: str) -> OutputConstraint | None:
    """Return the form that a person wrote after /set; None: any text. Raises ArgumentError.

    >>> constraint_of("choice", '["red", "green"]').arguments
    {'choice': ['red', 'green']}
    >>> constraint_of("regex", "none") is None
    True
    """
    if text.lower() in _NOTHING:
        return None
    value: str | Sequence[str] | bool = text
    if name == "json_object":
        if text.lower() not in ("on", "true"):
            raise ArgumentError(f"{name} is {text!r}; it must be on or off")
        value = True
    elif name == "choice":
        value = [text]
        if text.startswith("["):
            try:
                value = json.loads(text)
            except ValueError as error:
                raise ArgumentError(f"{name}: {text} is not JSON: {error}") from None
    form = _form(name, value, name)
    _ = form.structure
    return form


def _form(name: str, value: Any, called: str) -> OutputConstraint:
    if name == "json_object":
        return OutputConstraint(name, "on", {"json": True})
    if name == "choice":
        return OutputConstraint(name, json.dumps(value, ensure_ascii=False), {name: value})
    if name == "regex":
        return OutputConstraint(name, str(value), {name: value})
    return OutputConstraint(name, shortened(value), {name: _read(name, value, called)})


def _read(name: str, value: str, called: str) -> str:
    """Return the schema or the rules that a value is, or that a file of its name has."""
    if not value.strip():
        raise ArgumentError(f"{called} is empty; set a text or a file with text")
    path = Path(value).expanduser()
    is_text = _IS_TEXT[name].search(value) is not None
    try:
        if is_text and not path.exists():
            return value
        return read_text(path)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if is_text:  # a name that is too long, for example
            return value
        why = getattr(error, "strerror", None) or str(error)
        raise ArgumentError(f"{called} {shortened(value)} cannot be read: {why}") from None


# What a file's name does not look like: an object of JSON, and a rule of GBNF or Lark.
_IS_TEXT: Final = {
    "schema": re.compile(r"^\s*\{"),
    "grammar": re.compile(r"(?m)::=|^\s*[?!]?[\w-]+(?:\[[^\]\n]*\])?\s*:"),
}
