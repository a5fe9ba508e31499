"""What form a text has, as a person says it: options of `chat` and `complete`, and /set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from akunu.cli import console
from akunu.errors import ArgumentError
from akunu.structure import Structure, structure_of

FORMS: Final = ("schema", "json_object", "regex", "choice", "grammar")
"""Their names, of which a text has one."""

_NOTHING: Final = ("none", "off", "default")


@dataclass(frozen=True, slots=True)
class Form:
    """A form, and how a person wrote it."""

    name: str
    """One of FORMS."""
    shown: str
    """What was written behind the name."""
    arguments: Mapping[str, Any]
    """What `generate` takes."""

    @property
    def structure(self) -> Structure | None:
        """What the engine is given; raises ArgumentError for what makes no sense."""
        return structure_of(self.arguments)


def given_form(
    schema: Path | None,
    json_object: bool,
    regex: str | None,
    choice: Sequence[str] | None,
    grammar: Path | None,
) -> Form | None:
    """Return the form that the command line gave; UsageError for several."""
    given: dict[str, str | Path | Sequence[str] | bool | None] = {
        "schema": schema,
        "json_object": json_object or None,
        "regex": regex,
        "choice": choice or None,
        "grammar": grammar,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in chosen)
        raise console.UsageError(f"{names} are given; a text has one form: choose one")
    for name, value in chosen.items():
        try:
            return _form(name, value, f"--{name.replace('_', '-')}")
        except ArgumentError as error:
            raise console.UsageError(str(error)) from None
    return None


def form_of(name: str, text: str) -> Form | None:
    """Return the form that a person wrote behind /set; None: any text. Raises ArgumentError.

    >>> form_of("choice", '["red", "green"]').arguments
    {'choice': ['red', 'green']}
    >>> form_of("regex", "none") is None
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


def _form(name: str, value: Any, called: str) -> Form:
    if name == "json_object":
        return Form(name, "on", {"json": True})
    if name == "choice":
        return Form(name, json.dumps(value, ensure_ascii=False), {name: value})
    if name == "regex":
        return Form(name, str(value), {name: value})
    path = Path(value).expanduser()
    try:
        return Form(name, str(value), {name: path.read_text(encoding="utf-8")})
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{called} {value} cannot be read: {error}") from None
