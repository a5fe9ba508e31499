"""Checks of options: each takes a name and a value, and returns the value as it is kept."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal

from akunu.common.checks import MAX_UINT32, flag, in_words, integer, number, refusal, texts
from akunu.errors import ArgumentError
from akunu.options.engine_limits import MAX_THREADS, MOST_BIASES, MOST_DRAFTED


@dataclass(frozen=True)
class Integers:
    """A check of whole numbers within a range."""

    lowest: int
    highest: int | None
    besides: str = ""

    @property
    def range(self) -> str:
        """The range in words."""
        return _range(self.lowest, self.highest)

    def __call__(self, name: str, value: object) -> int:
        """Return the value; ArgumentError for one outside the range."""
        return integer(name, value, self.lowest, self.highest, self.besides)


@dataclass(frozen=True)
class Numbers:
    """A check of numbers within a range; `above`: the lowest itself is refused as well."""

    lowest: float
    highest: float
    above: bool = False

    @property
    def range(self) -> str:
        """The range in words."""
        if self.above:
            return f"above {self.lowest:g}, up to {self.highest:g}"
        return _range(self.lowest, self.highest)

    def __call__(self, name: str, value: object) -> float:
        """Return the value; ArgumentError for one outside the range."""
        return number(name, value, self.lowest, self.highest, above=self.above)


_ENDLESS: Final = 10**6  # a limit from here on is larger than any value that makes sense


def _range(lowest: float, highest: float | None) -> str:
    least = lowest if isinstance(lowest, int) else f"{lowest:g}"
    if highest is None or highest > _ENDLESS:
        return f"{least} or more"
    return f"{least} to {highest:g}"


class Temperatures(Numbers):
    """A check of temperatures: 0, or a number that float32 logits can be divided by."""

    @property
    def range(self) -> str:
        """The range in words."""
        return f"0, or {_LEAST_TEMPERATURE:g} to {self.highest:g}"

    def __call__(self, name: str, value: object) -> float:
        """Return the value; ArgumentError for one outside the range, or almost 0."""
        lowest = _LEAST_TEMPERATURE
        temperature = super().__call__(name, value)
        if 0 < temperature < lowest:
            allowed = f"0 (the most likely token) or {lowest:g} to {self.highest:g}"
            raise refusal(name, value, allowed)
        return temperature


# Logits that are divided by less are rounding errors.
_LEAST_TEMPERATURE: Final = 1e-4


def flag_check(name: str, value: object) -> bool:
    """True or False."""
    flag(name, value)
    return bool(value)


MOST_STOPS, MOST_BREAKERS = 64, 100
_MOST_BYTES = 1024  # of a text that is looked for in what comes


@dataclass(frozen=True)
class Texts:
    """A check of texts: at most this many, each short, since all are compared at every token."""

    most: int

    @property
    def range(self) -> str:
        """The range in words."""
        return f"up to {self.most} texts of up to {_MOST_BYTES} bytes"

    def __call__(self, name: str, value: object) -> tuple[str, ...]:
        """Return the texts; ArgumentError for too many, and for one that is too long."""
        found = (value,) if isinstance(value, str) else value
        if isinstance(found, (Sequence, Set)):
            if len(found) > self.most:
                raise ArgumentError(
                    f"{name} has {len(found)} texts; at most {self.most} are allowed"
                )
            for text in found:
                if isinstance(text, str) and _n_bytes(text) > _MOST_BYTES:
                    raise ArgumentError(
                        f"{name} has a text of {_n_bytes(text)} bytes; each may have {_MOST_BYTES}"
                    )
        return texts(name, value)


def _n_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


@dataclass(frozen=True)
class Names:
    """A check of names."""

    allowed: tuple[str, ...]

    @property
    def range(self) -> str:
        """The names, as a list in words."""
        return in_words(self.allowed)

    def __call__(self, name: str, value: Any) -> str:
        """Return the name; ArgumentError for another one."""
        if not isinstance(value, str) or value not in self.allowed:
            raise refusal(name, value, " or ".join(map(repr, self.allowed)), "")
        return value


def path_of(allowed: str) -> Callable[[str, Any], Any]:
    """A check of paths, which stay as they are; `allowed`: what is expected."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
            raise refusal(name, value, allowed, "or None")
        return value

    return check


AUTO: Final = "auto"  # threads: as many as measurement says


def thread_count(name: str, value: object) -> int | Literal["auto"]:
    """Return a number of threads, or "auto"; ArgumentError for anything else."""
    if isinstance(value, str) and value == AUTO:
        return AUTO
    try:
        return integer(name, value, 1, MAX_THREADS)
    except ArgumentError:
        allowed = f'an integer from 1 to {MAX_THREADS} or "{AUTO}"'
        raise refusal(name, value, allowed, "or None") from None


def speculation_check(name: str, value: object) -> str | int:
    """ "auto", "off", or how many tokens are drafted."""
    if value in ("auto", "off"):
        return str(value)
    if isinstance(value, str) and value.isdecimal():  # from a command line
        value = int(value)
    if isinstance(value, str):
        raise refusal(name, value, f"'auto', 'off' or an integer from 1 to {MOST_DRAFTED}")
    return integer(name, value, 1, MOST_DRAFTED, "or 'auto' or 'off'")


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
        raise refusal(name, value, allowed) from None


# Actions for a full context; see context_overflow.py.
CONTEXT_OVERFLOWS = ("stop", "error", "shift", "reread")

# Samplers change logits before a token is drawn; they are numbered from 1 in a record of the
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
        raise refusal(name, value, allowed.replace(", temperature, each", ", each"))
    return names


def sampler_numbers(names: Sequence[str]) -> int:
    """Return four bits for each, the first one lowest."""
    found = 0
    for place, name in enumerate(names):
        found |= _SAMPLER_NUMBERS[name] << 4 * place
    return found


_SAMPLER_NUMBERS = {name: number for number, name in enumerate(SAMPLERS, 1)}
