"""How an option is declared: once, for Python, command line, server, C, Swift and the documents.

An option is a field of `SamplingOptions`, `LoadOptions` or the server's settings, all dataclasses:
`name: type = option(default, check, help, ...)`. This declaration has everything about the option.
`python -m tools.options` writes it into files that cannot read it at run time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Final

from akunu.options.option_checks import Integers, Numbers, flag_check

EVERY_CALL: Final = ("chat", "complete", "set", "server")
"""The callers of a sampling option besides Python, C and Swift: `akunu chat`, `akunu complete`,
/set in a chat, requests to the server."""

USUAL: Final = ""
SAMPLING: Final = "Sampling"
MEMORY: Final = "Memory and devices"
ADVANCED: Final = "Advanced"
"""Headings of the command line's help, in their order; `--help` leaves out the last one."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """All that there is to say of an option besides its name, type and default."""

    check: Callable[[str, Any], Any]
    """Takes name and value; returns the value as it is kept, or raises ArgumentError."""
    help: str
    """One sentence, for the command line, the server's documents and those of docs/."""
    range_is: str = ""
    """The values that it may have, in words, where its check does not say it."""
    default_is: str = ""
    """The default in words, where its value does not say it."""
    group: str = ADVANCED
    """The heading of the command line's help under which it is; "" is the first one."""
    metavar: str
    """What the command line takes: NUMBER, INTEGER, a flag (""), names (NAME,NAME), ..."""
    calls: tuple[str, ...] = EVERY_CALL
    """Which calls have it, besides those of Python."""
    accepts: str = ""
    """The type that calls take, where it is wider than that of the field."""
    is_list: bool = False
    """Whether the command line takes it several times."""
    flag: str = ""
    """What the command line calls it, where that is not its name."""
    other_names: tuple[str, ...] = ()
    """What other programs call it: requests to the server, and /set, may use these names."""
    minus_one: Any = ...
    """What -1 means, as for other programs: no limit, a random seed, the whole text."""
    minus_one_is: str = ""
    """That in words."""
    packed: str = ""
    """Its code for `struct`, where it is a number that the engine reads: a field of `Sampling` in
    src/core/rows.h, or of `LoadOptions` in src/inference/context_plan.h."""
    number: Callable[[Any], float] | None = None
    """What is packed of its value; None: the value."""
    note: str = ""
    """What stands next to it in `Sampling`."""
    opposite: str = ""
    """The name of its opposite in C and Swift, where the default is True: C's default is zero."""
    schema: Mapping[str, Any] | None = None
    """What a request may have, as JSON schema, where the metavar does not say it."""
    more: str = ""
    """What the guide says besides, in Markdown."""
    is_secret: bool = False
    """Whether it is never shown, and has no flag on the command line, where others see it."""


def option(
    default: Any, check: Callable[[str, Any], Any], help: str, metavar: str = "", **more: Any
) -> Any:
    """A field of a dataclass of options, with its declaration.

    A range of numbers and a flag have the usual metavar.
    """
    if not metavar and check is not flag_check:
        metavar = "INTEGER" if isinstance(check, Integers) else "NUMBER"
        assert isinstance(check, (Integers, Numbers)), help
    declared = Declared(check=check, help=help, metavar=metavar, **more)
    return field(default=default, metadata={"declared": declared}, repr=not declared.is_secret)


@cache
def declared_of(kind: type) -> Mapping[str, Declared]:
    """Return what is declared of each option of a dataclass, by its name."""
    found = {each.name: each.metadata.get("declared") for each in fields(kind)}
    return {name: declared for name, declared in found.items() if declared is not None}


def check_options(options: Any) -> None:
    """Put defaults in the place of None, plain numbers in that of NumPy's, and refuse bad values.

    Raises ArgumentError.
    """
    kind: type = options.__class__
    for name, declared in declared_of(kind).items():
        value = getattr(options, name)
        default = options.__dataclass_fields__[name].default
        if value is default:  # which is in the form in which it is kept
            continue
        if value is None:
            value = default
        if declared.minus_one is not ...:
            with suppress(TypeError):  # where it is not an integer, it is refused below
                if operator.index(value) == -1:
                    value = declared.minus_one
        if value is not None:
            value = declared.check(name, value)
        object.__setattr__(options, name, value)
