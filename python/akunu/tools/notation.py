"""How a family of models writes calls of tools, as data.

A `Notation` is a few patterns: texts with fields in braces. Whitespace in a pattern stands for any
whitespace, or none. The fields are

- `{name}`: the name of a tool; `{id}`: an id; `{index}`: a number that counts calls;
- `{arguments}`: the arguments as a JSON object;
- `{call}`: a JSON object of name and arguments, by the notation's keys;
- `{keyed}`: a JSON object with the name as its only key, and the arguments as that key's value;
- `{parameters}`: the notation's `parameter`, as often as there are arguments;
- `{key}`, `{value}`, `{type}` within a parameter: its name, its value (a string as it is, anything
  else as JSON), and what says whether it is a string: "true", "false", or the name of a JSON type;
- `{python}`: a call as Python writes it, `name(key=value)`;
- `{words}`: an object whose keys are bare words and whose strings stand between `quote`;
- `{any}`: anything up to what follows;
- `{?text}`: the text, or nothing.

>>> elements("<call>{name}")
(Literal(text='<call>'), NotationField(name='name'))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

FIELDS: Final = (
    *("name", "id", "index", "arguments", "call", "keyed", "parameters"),
    *("key", "value", "type", "python", "words", "any"),
)
_FIELD: Final = re.compile(r"\{(?:(" + "|".join(FIELDS) + r")|\?([^{}]+))\}")


@dataclass(frozen=True, slots=True)
class Literal:
    """A text that stands in the pattern; whitespace in it stands for any, or none."""

    text: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A text that may be there."""

    text: str


@dataclass(frozen=True, slots=True)
class NotationField:
    """A part that differs from call to call."""

    name: str


Element = Literal | Optional | NotationField


@cache
def elements(pattern: str) -> tuple[Element, ...]:
    """Return the parts of a pattern."""
    found: list[Element] = []
    done = 0
    for match in _FIELD.finditer(pattern):
        if match.start() > done:
            found.append(Literal(pattern[done : match.start()]))
        found.append(NotationField(match[1]) if match[1] else Optional(match[2]))
        done = match.end()
    if done < len(pattern):
        found.append(Literal(pattern[done:]))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """One way to write the calls of a reply: `before call between call between call after`."""

    call: str
    """The pattern of one call."""
    before: str = ""
    """The pattern of what opens the calls of a reply."""
    between: str = ""
    """What stands between two calls; whitespace always may."""
    after: str = ""
    """What closes the calls of a reply. At the end of a text it may be missing."""
    at_start: bool = False
    """Whether calls begin only where an answer does; patterns without an opening must say so."""
    name_key: str = "name"
    arguments_keys: tuple[str, ...] = ("arguments", "parameters")
    """The keys of `{call}`; the template writes the first of these."""
    parameter: str = ""
    """The pattern of one of `{parameters}`."""
    quote: str = '"'
    """What stands around the strings of `{words}`."""
    id_form: str = ""
    """What an id must look like: "9" for nine letters and digits, or a pattern."""

    @property
    def openings(self) -> tuple[str, ...]:
        """What the first call may begin with; empty where it is known only by being a call."""
        first = [*elements(self.before), *elements(self.call)][:2]
        found = [first[0].text] if isinstance(first[0], (Literal, Optional)) else []
        if isinstance(first[0], Optional):
            found += [each.text for each in first[1:] if isinstance(each, Literal)]
        return tuple(text.split()[0] for text in found if text.strip())

    @property
    def literals(self) -> tuple[str, ...]:
        """All texts of all patterns."""
        patterns = (self.before, self.call, self.between, self.after, self.parameter)
        parts = [part for pattern in patterns for part in elements(pattern)]
        texts = [part.text for part in parts if isinstance(part, (Literal, Optional))]
        return (*texts, *([self.quote] if "{words}" in self.call else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A line of the table: what its templates have in them, and how its models write calls."""

    name: str
    signs: tuple[str, ...]
    """Texts that all stand in a template of the family."""
    ways: tuple[Notation, ...]
    """What its template writes first, then what its models write as well."""
