"""What a caller may ask of a text's form: a schema, JSON, an expression, one of several, rules."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from akunu.errors import ArgumentError

if TYPE_CHECKING:
    from akunu.grammar.grammar import FreeText, Grammar


class StructureArguments(TypedDict, total=False):
    """The keyword arguments that say what form a text has, of which one may be passed."""

    schema: Any
    json: bool
    regex: str | re.Pattern[str] | None
    choice: Sequence[str] | None
    grammar: str | Grammar | None
    weaken_schema: bool


STRUCTURE_DEFAULTS: Mapping[str, Any] = {
    "schema": None,
    "json": False,
    "regex": None,
    "choice": None,
    "grammar": None,
    "weaken_schema": False,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Structure:
    """The form of a text: what it may be, and how an object is made of it."""

    grammar: Grammar
    reader: Callable[[str], Any] | None = None
    """Makes the object of `Completion.parsed`; None where the text is all there is."""


@dataclasses.dataclass(frozen=True, slots=True)
class StructureArgument:
    """The argument that says what form a text has. Its grammar may take long to compile."""

    name: str
    value: Any
    weaken: bool = False

    def compiled(self) -> Structure:
        """Return the form.

        Raises ArgumentError for values that make no sense, and SchemaError with the place in a
        schema.
        """
        # Every command reads options; few have a form to compile.
        from akunu import grammar

        if self.name == "schema":
            held = grammar.from_schema(_closed_schema(self.value), weaken=self.weaken)
            return Structure(held, reader_of(self.value))
        if self.name == "json":
            return Structure(grammar.from_json(), json.loads)
        if self.name == "choice":
            return Structure(grammar.from_choice(self.value))
        if self.name == "regex":
            is_compiled = isinstance(self.value, re.Pattern)
            pattern = self.value if is_compiled else _text(self.name, self.value)
            return Structure(grammar.from_regex(pattern))
        if isinstance(self.value, grammar.Grammar):
            return Structure(self.value, json.loads if self.value.schema else None)
        return Structure(grammar.from_rules(_text(self.name, self.value)))


def structure_of(arguments: Mapping[str, Any]) -> Structure | None:
    """Return what some of StructureArguments ask for, None where nothing is.

    Raises what `structure_argument` and `StructureArgument.compiled` raise.
    """
    form = structure_argument(arguments)
    return form.compiled() if form is not None else None


def structure_argument(arguments: Mapping[str, Any]) -> StructureArgument | None:
    """Return the one of StructureArguments that is passed, None where none is.

    Raises ArgumentError where there are several.
    """
    arguments = dict(arguments)
    weaken = arguments.pop("weaken_schema", None) or False
    if weaken is not False and weaken is not True:
        raise ArgumentError(f"weaken_schema is {weaken!r}; it must be True or False")
    given = {
        name: value
        for name, value in arguments.items()
        if value is not None and not (name == "json" and value is False)
    }
    if len(given) > 1:
        raise ArgumentError(f"{' and '.join(given)} are set: use only one of them")
    if weaken and "schema" not in given:
        raise ArgumentError("weaken_schema is True, but schema is not set")
    if not given:
        return None
    ((name, value),) = given.items()
    if name == "json" and value is not True:
        raise ArgumentError(f"json is {value!r}; it must be True or False")
    return StructureArgument(name, value, weaken)


class Ruled(Protocol):
    """A text as it was rendered: what rules it already, and what it begins after."""

    @property
    def grammar(self) -> Grammar | None:
        """What the text may be."""

    @property
    def thoughts(self) -> FreeText | None:
        """What a form of the text begins after."""

    @property
    def holds_form(self) -> bool:
        """Whether `grammar` holds the text to the form as well."""


def ruled(structure: Structure | None, rendered: Ruled) -> Grammar | None:
    """Return what rules a text of this form.

    It begins after the free text of the reply's grammar, or after the thoughts.
    """
    if structure is None or rendered.holds_form:
        return rendered.grammar
    if structure.grammar.after is not None:
        return structure.grammar
    after = rendered.thoughts if rendered.grammar is None else rendered.grammar.after
    return dataclasses.replace(structure.grammar, after=after)


def _closed_schema(source: Any) -> Any:
    """Return the schema of a pydantic model, whose objects have no other members."""
    if not hasattr(source, "model_json_schema"):
        return source
    # Types are looked into where a schema is one.
    from akunu.grammar.schema.types import closed

    return closed(source.model_json_schema())


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a text, not {type(value).__name__}")
    return value


def reader_of(schema: Any) -> Callable[[str], Any]:
    """Return a function that turns a text that fits a schema into an object.

    For a pydantic model or another type, the object is one of that type, otherwise JSON data.
    """
    if hasattr(schema, "model_validate_json"):
        read: Callable[[str], Any] = schema.model_validate_json
        return read
    if isinstance(schema, (str, bool, Mapping)):
        return json.loads
    # As above.
    from akunu.grammar.schema.objects import read_object

    return partial(read_object, schema)
