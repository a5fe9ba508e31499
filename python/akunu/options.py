"""What a caller may choose: frozen, and refused with a sentence when it makes no sense.

>>> from akunu import SamplingOptions
>>> SamplingOptions(temperature=0.7, top_p=0.9).top_p
0.9
>>> SamplingOptions(top_p=2)
Traceback (most recent call last):
...
akunu.errors.ArgumentError: top_p is 2; it must be a number from 0 (excluded) to 1
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, TypedDict, TypeVar, cast

from akunu.errors import ArgumentError, MisuseError

Function = TypeVar("Function", bound=Callable[..., Any])
Options = TypeVar("Options")

KV_TYPES = ("f16", "f32")

MAX_THREADS = 256  # kMaxThreads in backend/cpu/cpu_device.cpp

_MAX_UINT32 = 2**32 - 1
_MAX_UINT64 = 2**64 - 1

# What -1 means for other programs as well: no limit, a random seed, the whole text.
MINUS_ONE: Mapping[str, int | None] = {
    "max_tokens": None,
    "top_k": 0,
    "penalty_window": 2**31 - 1,
    "seed": None,
}

# What other programs call our options, where the names are not alike.
_OTHER_NAMES = {
    "temp": "temperature",
    **dict.fromkeys(("max_length", "n_predict", "num_predict"), "max_tokens"),
    **dict.fromkeys(("repeat_penalty", "penalty_repeat"), "repetition_penalty"),
    **dict.fromkeys(("repeat_last_n", "penalty_last_n"), "penalty_window"),
    **dict.fromkeys(("n_ctx", "num_ctx", "ctx_size", "max_model_len"), "context"),
    **dict.fromkeys(("n_threads", "num_thread"), "threads"),
    **dict.fromkeys(("type_k", "type_v", "cache_type_k", "kv_cache_dtype"), "kv_type"),
}

# Beyond these, dividing float32 logits by the temperature says nothing but rounding errors.
_LOWEST_TEMPERATURE = 1e-4
_HIGHEST_TEMPERATURE = 1e4


class SamplingArguments(TypedDict, total=False):
    """The keyword arguments that `SamplingOptions` takes, for type checkers."""

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    penalty_window: int | None
    seed: int | None
    stop: str | Sequence[str] | Set[str] | None


def explains_typos(function: Function) -> Function:
    """Have a callable answer an option that it does not have with the one that was meant.

    >>> @explains_typos
    ... def play(*, speed: float = 1.0) -> None: ...
    >>> play(sped=2)
    Traceback (most recent call last):
    ...
    akunu.errors.MisuseError: play() has no option 'sped'; did you mean 'speed'?
    """
    signature = inspect.signature(function)
    names = [p.name for p in signature.parameters.values() if p.kind is not p.POSITIONAL_ONLY]
    called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        if not options.keys() <= set(names):
            unknown = next(name for name in options if name not in names)
            raise MisuseError(f"{called}() has no option {unknown!r}; {_advice(unknown, names)}")
        return function(*arguments, **options)

    return cast(Function, checked)


def _advice(unknown: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # for who has a typo

    meant = _OTHER_NAMES.get(unknown.lower())
    if meant not in names:
        meant = next(iter(get_close_matches(unknown.lower(), names, 1)), None)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return f"its options are {', '.join(name for name in names if name != 'self')}"


def _explains_typos_of_init(options: type[Options]) -> type[Options]:
    options.__init__ = explains_typos(options.__init__)  # type: ignore[method-assign]
    return options


@_explains_typos_of_init
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """How the next token is chosen. The defaults always take the most likely one.

    The order is: penalties, temperature, top_k, top_p, min_p. For each option None is its default,
    as if it was not given. Raises ArgumentError for values that make no sense, NaN and infinity
    among them, and MisuseError for an option that does not exist.

    >>> SamplingOptions(max_tokens=16, temperature=0.8, seed=7).seed
    7
    """

    max_tokens: int | None = None
    """The most tokens to generate; None or -1: until the model stops or the context is full."""
    temperature: float = 0.0
    """0: the most likely token. Otherwise 0.0001 to 10000; higher is more surprising."""
    top_k: int = 0
    """Choose among this many most likely tokens; 0 or -1: among all."""
    top_p: float = 1.0
    """Choose among the fewest tokens whose probabilities reach this sum; 1: among all."""
    min_p: float = 0.0
    """Drop tokens less likely than this share of the most likely one's probability; 0: none."""
    repetition_penalty: float = 1.0
    """Makes tokens seen in the window less likely (above 1) or more likely (below 1)."""
    frequency_penalty: float = 0.0
    """Subtracted from a token's logit once for every time it occurs in the window."""
    presence_penalty: float = 0.0
    """Subtracted from a token's logit if it occurs in the window."""
    penalty_window: int = 64
    """How many of the latest tokens, the prompt's included, the penalties look at; -1: at all."""
    seed: int | None = None
    """Same seed, same text. None or -1: another one each time. Without temperature it has no
    effect."""
    stop: tuple[str, ...] = ()
    """Texts that end the generation where they appear; they are not part of its text. A str alone
    is one; a list or a set are several. They are looked for in what the model writes, not in the
    prompt."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense, and make plain numbers of NumPy's."""
        for field in fields(self):
            if getattr(self, field.name) is None:
                self._store(field.name, field.default)
        for name, neutral in MINUS_ONE.items():
            with suppress(TypeError):  # where it is no integer, it is refused below
                if operator.index(getattr(self, name)) == -1:
                    self._store(name, neutral)
        if self.max_tokens is not None:
            self._store("max_tokens", integer("max_tokens", self.max_tokens, 0, None, "or None"))
        temperature = number("temperature", self.temperature, 0.0, _HIGHEST_TEMPERATURE)
        if 0 < temperature < _LOWEST_TEMPERATURE:
            allowed = f"{_LOWEST_TEMPERATURE:g} to {_HIGHEST_TEMPERATURE:g}"
            allowed = f"0 (the most likely token) or {allowed}"
            raise _refusal("temperature", self.temperature, allowed, "")
        self._store("temperature", temperature)
        self._store("top_k", integer("top_k", self.top_k, 0, _MAX_UINT32))
        self._store("top_p", number("top_p", self.top_p, 0.0, 1.0, above=True))
        self._store("min_p", number("min_p", self.min_p, 0.0, 1.0))
        for name, lowest, highest in (
            ("repetition_penalty", 0.01, 100.0),
            ("frequency_penalty", -100.0, 100.0),
            ("presence_penalty", -100.0, 100.0),
        ):
            self._store(name, number(name, getattr(self, name), lowest, highest))
        self._store("penalty_window", integer("penalty_window", self.penalty_window, 0, 2**31 - 1))
        if self.seed is not None:
            self._store("seed", integer("seed", self.seed, 0, _MAX_UINT64, "or None"))
        self._store("stop", texts("stop", self.stop))

    def _store(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@_explains_typos_of_init
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a model is loaded.

    For each option None is its default, as if it was not given. Raises ArgumentError for values
    that make no sense and MisuseError for an option that does not exist.

    >>> LoadOptions(context=2048, threads=2).kv_type
    'f16'
    """

    device: str = "auto"
    """"auto", or the name of a device as `akunu devices` lists them, for example "cpu". Models with
    the same device and threads share it, and take turns."""
    context: int | None = None
    """Positions per conversation, prompt and reply together; None: as many as the model was
    trained on, or as many as memory allows."""
    threads: int | None = None
    """Threads of the CPU device; None: one per core that this process may use."""
    kv_type: str = "f16"
    """Number format of the cache: "f16" or "f32"."""
    kv_memory: int | None = None
    """Bytes for the cache; None: one full context, or what fits."""
    prefix_cache: bool = True
    """Whether a prompt that begins like an earlier text uses what is left of it in the cache. The
    text is the same either way; it only begins sooner."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("device", "kv_type", "prefix_cache"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, type(self).__dataclass_fields__[name].default)
        if not isinstance(self.device, str) or not self.device.isprintable() or not self.device:
            raise _refusal("device", self.device, 'a name, for example "auto" or "cpu"', "")
        if not isinstance(self.kv_type, str) or self.kv_type not in KV_TYPES:
            raise _refusal("kv_type", self.kv_type, " or ".join(map(repr, KV_TYPES)), "")
        for name, highest in (
            ("context", 2**31 - 1),
            ("threads", MAX_THREADS),
            ("kv_memory", _MAX_UINT64),
        ):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, integer(name, value, 1, highest, "or None"))
        flag("prefix_cache", self.prefix_cache)


def integer(
    name: str, value: object, lowest: int, highest: int | None = None, besides: str = ""
) -> int:
    """Return `value` as an int; ArgumentError if it is none or outside lowest..highest."""
    allowed = f"an integer from {lowest}" + (f" to {highest}" if highest is not None else " up")
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)  # type: ignore[arg-type]  # the TypeError is what we want
    except TypeError:
        raise _refusal(name, value, allowed, besides) from None
    if result < lowest or (highest is not None and result > highest):
        raise _refusal(name, value, allowed, besides)
    return result


def number(
    name: str, value: object, lowest: float, highest: float, *, above: bool = False
) -> float:
    """Return `value` as a float; ArgumentError if it is none, NaN or outside lowest..highest.

    `above`: lowest itself is refused as well.
    """
    allowed = f"a number from {lowest:g}{' (excluded)' if above else ''} to {highest:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _refusal(name, value, allowed, "")
    try:
        result = float(value)
    except OverflowError:  # an int beyond every float
        result = math.inf
    if not lowest <= result <= highest or (above and result == lowest):  # NaN is in no range
        raise _refusal(name, value, allowed, "")
    return result


def flag(name: str, value: object) -> None:
    """Raise ArgumentError for what is no bool, NumPy's included."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise _refusal(name, value, "True or False", "")


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return one str or several as a tuple; ArgumentError for empty ones and what is no text."""
    given = (value,) if isinstance(value, str) else value
    if isinstance(given, (bytes, bytearray, memoryview)) or not isinstance(given, (Sequence, Set)):
        raise _refusal(name, value, "a str or several, none of them empty", "")
    for text in given:
        # A lone surrogate is no text that a model could write.
        if not isinstance(text, str) or not text or any("\ud800" <= c <= "\udfff" for c in text):
            raise _refusal(name, value, "a str or several, none of them empty", "")
    return tuple(sorted(given) if isinstance(given, Set) else given)


def sampling_options(
    options: SamplingOptions | None, arguments: Mapping[str, object]
) -> SamplingOptions:
    """Return the options that a call gave, as an object, as keyword arguments, or as both.

    Raises ArgumentError where the two speak of the same field.
    """
    if options is None:
        return SamplingOptions(**cast("dict[str, Any]", arguments))
    if not isinstance(options, SamplingOptions):
        raise _refusal("options", options, "a SamplingOptions", "or None")
    chosen = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if getattr(options, field.name) != field.default
    }
    for name, value in arguments.items():
        if name in chosen:
            raise ArgumentError(
                f"{name} is given twice: {chosen[name]!r} in options and {value!r} beside them"
            )
    return SamplingOptions(**chosen, **cast("dict[str, Any]", arguments))


def lists_sampling_options(function: Function) -> Function:
    """Have `help` show the fields of SamplingOptions instead of `**sampling`.

    What is none of them is answered as `explains_typos` does.
    """
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    listed = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=field.type,
        )
        for field in fields(SamplingOptions)
    ]
    shown = signature.replace(parameters=[*kept, *listed])
    function.__signature__ = shown  # type: ignore[attr-defined]  # what inspect.signature reads
    return explains_typos(function)


def _refusal(name: str, value: object, allowed: str, besides: str) -> ArgumentError:
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    error = ArgumentError(f"{name} is {shown}; it must be {f'{allowed} {besides}'.rstrip()}")
    error.refused = (name, value, allowed)
    return error
