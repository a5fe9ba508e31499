"""How an option of sampling is declared, and the checks of those that take more than a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from akunu.common.checks import MAX_UINT32, flag, integer, number, refusal, texts
from akunu.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class Declared:
    """All that there is to say of an option of sampling besides its name, type and default."""

    check: Callable[[str, Any], Any]
    """Takes name and value; returns the value as it is kept, or raises ArgumentError."""
    help: str
    """One sentence, for the command line and docs/guide.md."""
    metavar: str = "NUMBER"
    """What the command line takes: NUMBER, INTEGER, a flag (""), names (NAME,NAME), or something
    that may be repeated."""
    packed: str = ""
    """Its code for `struct`, where it is a field of `Sampling` in src/core/rows.h."""
    for_chat: bool = True
    """Whether it means something where one types to a model."""
    number: Callable[[Any], float] | None = None
    """What is packed of its value; None: the value."""
    for_command_line: bool = True
    """Whether the command line has an option for it under its own name."""
    minus_one: Any = ...
    """What -1 means, as for other programs: no limit, a random seed, the whole text."""


def option(default: Any, **declared: Any) -> Any:
    """A field of a dataclass of options, with its declaration."""
    return field(default=default, metadata={"declared": Declared(**declared)})


def integer_check(lowest: int, highest: int | None, besides: str = "") -> Callable[[str, Any], int]:
    """A check of whole numbers within a range."""
    return lambda name, value: integer(name, value, lowest, highest, besides)


def number_check(
    lowest: float, highest: float, *, above: bool = False
) -> Callable[[str, Any], float]:
    """A check of numbers within a range."""
    return lambda name, value: number(name, value, lowest, highest, above=above)


def flag_check(name: str, value: object) -> bool:
    """True or False."""
    flag(name, value)
    return bool(value)


MOST_STOPS, MOST_BREAKERS = 64, 100
_MOST_BYTES = 1024  # of a text that is looked for in what comes


def texts_check(most: int) -> Callable[[str, Any], tuple[str, ...]]:
    """At most this many texts, none of them long: all are looked for at every token."""

    def check(name: str, value: object) -> tuple[str, ...]:
        found = (value,) if isinstance(value, str) else value
        if isinstance(found, (Sequence, Set)):
            if len(found) > most:
                raise ArgumentError(f"{name} has {len(found)} texts; it may have {most}")
            for text in found:
                if isinstance(text, str) and _n_bytes(text) > _MOST_BYTES:
                    raise ArgumentError(
                        f"{name} has a text of {_n_bytes(text)} bytes; each may have {_MOST_BYTES}"
                    )
        return texts(name, value)

    return check


def _n_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def temperature_check(name: str, value: object) -> float:
    """A temperature: 0, or a number that float32 logits can be divided by."""
    # Beyond these, dividing float32 logits by the temperature says nothing but rounding errors.
    lowest, highest = 1e-4, 1e4
    temperature = number(name, value, 0.0, highest)
    if 0 < temperature < lowest:
        allowed = f"0 (the most likely token) or {lowest:g} to {highest:g}"
        raise refusal(name, value, allowed, "")
    return temperature


def overflow_check(name: str, value: object) -> str:
    """One of the ways to go on where the context is full."""
    if not isinstance(value, str) or value not in CONTEXT_OVERFLOWS:
        raise refusal(name, value, " or ".join(map(repr, CONTEXT_OVERFLOWS)), "")
    return value


def speculation_check(name: str, value: object) -> str | int:
    """ "auto", "off", or how many tokens are drafted."""
    if value in ("auto", "off"):
        return str(value)
    if isinstance(value, str) and value.isdecimal():  # from a command line
        value = int(value)
    if isinstance(value, str):
        raise refusal(name, value, f"'auto', 'off' or an integer from 1 to {MOST_DRAFTED}", "")
    return integer(name, value, 1, MOST_DRAFTED, "or 'auto' or 'off'")


MOST_BIASES = 2048  # of a text: kMaxOptionWords / kWordsPerBias


def biases_check(name: str, value: Any) -> tuple[tuple[int, float], ...] | None:
    """Biases of token ids, by increasing id."""
    if isinstance(value, Mapping) and len(value) > MOST_BIASES:
        raise ArgumentError(f"{name} has {len(value)} tokens; at most {MOST_BIASES} are possible")
    try:
        taken = tuple(
            (integer("token", token, 0, MAX_UINT32), number("bias", bias, -math.inf, 1e4))
            for token, bias in dict(value).items()
        )
        return taken or None
    except (TypeError, ValueError):  # the ArgumentErrors of both, too
        allowed = f"a dict of token ids and numbers, each from -inf to {1e4:g}"
        raise refusal(name, value, allowed, "") from None


# Tokens that one text may have drafted at a time: kMostDrafted in src/inference/speculation.h.
MOST_DRAFTED = 15

# What may happen where a text comes to the end of the context; see context_overflow.py.
CONTEXT_OVERFLOWS = ("stop", "error", "shift", "reread")

# What is done to logits before a token is drawn from them, numbered from 1 in a record of the
# engine (kSampler... in src/core/rows.h), with the options that switch it on.
SAMPLERS = {
    "penalties": ("repetition_penalty", "frequency_penalty", "presence_penalty"),
    "dry": ("dry_multiplier",),
    "top_n_sigma": ("top_n_sigma",),
    "top_k": ("top_k",),
    "typical_p": ("typical_p",),
    "top_p": ("top_p",),
    "min_p": ("min_p",),
    "xtc": ("xtc_probability",),
    "temperature": (),
}


def samplers_check(name: str, value: Any) -> tuple[str, ...]:
    """The order of the filters, each at most once."""
    names = () if isinstance(value, (str, bytes, Set, Mapping)) else value
    try:
        names = tuple(names)
        known = all(each in SAMPLERS for each in names)
    except TypeError:
        known = False
    if not known or "temperature" not in names or len(set(names)) < len(names):
        allowed = f"a list with temperature in it and some of {', '.join(SAMPLERS)}, each once"
        raise refusal(name, value, allowed.replace(", temperature, each", ", each"), "")
    return names


def sampler_numbers(names: Sequence[str]) -> int:
    """Return four bits for each, the first one lowest."""
    numbers = {name: number for number, name in enumerate(SAMPLERS, 1)}
    return sum(numbers[name] << 4 * place for place, name in enumerate(names))
