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
import operator
import os
import struct
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypedDict, cast

from akunu._adapter_options import adapter_paths, adapter_weights
from akunu._checks import MAX_UINT32, flag, integer, number, refusal, texts, token_id_list
from akunu._typos import Function, explains_typos, explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.structure import (
    STRUCTURE_DEFAULTS,
    FormArgument,
    Structure,
    StructureArguments,
    form_argument,
)

KV_TYPES = ("f16", "f32")

MAX_OPTION_WORDS = 4096  # kMaxOptionWords in src/core/rows.h
MAX_LOGPROBS = 20  # kMaxLogprobs in src/core/rows.h
AUTO: Final = "auto"  # threads: as many as measurement says
MAX_THREADS = 256  # kMaxThreads in backend/cpu/cpu_device.cpp

_MAX_UINT64 = 2**64 - 1


class SamplingArguments(TypedDict, total=False):
    """The keyword arguments that `SamplingOptions` takes, for type checkers."""

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    top_n_sigma: float | None
    xtc_probability: float | None
    xtc_threshold: float | None
    repetition_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    penalty_window: int | None
    penalize_prompt: bool | None
    dry_multiplier: float | None
    dry_base: float | None
    dry_allowed_length: int | None
    dry_penalty_last_n: int | None
    dry_sequence_breakers: str | Sequence[str] | Set[str] | None
    samplers: Sequence[str] | None
    min_tokens: int | None
    seed: int | None
    stop: str | Sequence[str] | Set[str] | None
    stop_token_ids: Sequence[int] | Set[int] | None
    ignore_eos: bool | None
    logprobs: int | None
    prompt_logprobs: int | None
    echo: bool | None
    answer_index: int | None
    logit_bias: Mapping[int, float] | None
    adapters: str | Mapping[str, float] | None


class TextArguments(SamplingArguments, StructureArguments, total=False):
    """The keyword arguments of `generate` and `chat` that say how a text comes about."""


ToolsArgument: TypeAlias = Sequence[Mapping[str, Any] | Callable[..., Any]] | None
"""What `chat` takes as `tools`: descriptions in OpenAI's or Anthropic's form, or functions."""


class ChatArguments(TextArguments, total=False):
    """The keyword arguments that `chat` takes beside those in its signature."""

    tool_choice: str | Mapping[str, Any] | None
    parallel_tool_calls: bool
    thinking: bool | str | None
    thinking_budget: int | None
    template_variables: Mapping[str, Any] | None


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
    number: Callable[[Any], float] = lambda value: value
    """What is packed of its value."""
    for_command_line: bool = True
    """Whether the command line has an option for it under its own name."""
    minus_one: Any = ...
    """What -1 means, as for other programs: no limit, a random seed, the whole text."""


def _option(default: Any, **declared: Any) -> Any:
    return field(default=default, metadata={"declared": Declared(**declared)})


def _integer(lowest: int, highest: int | None, besides: str = "") -> Callable[[str, Any], int]:
    return lambda name, value: integer(name, value, lowest, highest, besides)


def _number(lowest: float, highest: float, *, above: bool = False) -> Callable[[str, Any], float]:
    return lambda name, value: number(name, value, lowest, highest, above=above)


def _flag(name: str, value: object) -> bool:
    flag(name, value)
    return bool(value)


def _temperature(name: str, value: object) -> float:
    # Beyond these, dividing float32 logits by the temperature says nothing but rounding errors.
    lowest, highest = 1e-4, 1e4
    temperature = number(name, value, 0.0, highest)
    if 0 < temperature < lowest:
        allowed = f"0 (the most likely token) or {lowest:g} to {highest:g}"
        raise refusal(name, value, allowed, "")
    return temperature


def _biases(name: str, value: Any) -> tuple[tuple[int, float], ...] | None:
    try:
        taken = tuple(
            (integer("token", token, 0, MAX_UINT32), number("bias", bias, -math.inf, 1e4))
            for token, bias in dict(value).items()
        )
        return taken or None
    except (TypeError, ValueError):  # the ArgumentErrors of both, too
        allowed = f"a dict of token ids and numbers, each from -inf to {1e4:g}"
        raise refusal(name, value, allowed, "") from None


# What is done to logits before a token is drawn from them, numbered from 1 in a record of the
# engine (kSampler... in src/core/rows.h), with the options that switch it on.
_SAMPLERS = {
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


def _samplers(name: str, value: Any) -> tuple[str, ...]:
    names = () if isinstance(value, (str, bytes, Set, Mapping)) else value
    try:
        names = tuple(names)
        known = all(each in _SAMPLERS for each in names)
    except TypeError:
        known = False
    if not known or "temperature" not in names or len(set(names)) < len(names):
        allowed = f"a list with temperature in it and some of {', '.join(_SAMPLERS)}, each once"
        raise refusal(name, value, allowed.replace(", temperature, each", ", each"), "")
    return names


def _sampler_numbers(names: Sequence[str]) -> int:
    """Return four bits for each, the first one lowest."""
    numbers = {name: number for number, name in enumerate(_SAMPLERS, 1)}
    return sum(numbers[name] << 4 * place for place, name in enumerate(names))


@explains_typos_of_init
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """How the next token is chosen. The defaults always take the most likely one.

    `logit_bias`, and what forbids tokens, comes first, then the `samplers` in their order. For each
    option None is its default, as if it was not given. Raises ArgumentError for values that make no
    sense, NaN and infinity among them, and MisuseError for an option that does not exist.

    `min_tokens`: so many tokens are chosen at least, none of which ends the text. A text of `stop`
    ends it all the same, whenever it appears.

    >>> SamplingOptions(max_tokens=16, temperature=0.8, seed=7).seed
    7
    >>> SamplingOptions(samplers=["temperature", "top_p"], top_p=0.9, top_k=5)
    Traceback (most recent call last):
    ...
    akunu.errors.ArgumentError: top_k is 5, and samplers does not have 'top_k', which does it
    """

    # An option is declared here, and for type checkers in SamplingArguments; one of a single
    # number has a field in `Sampling` of src/core/rows.h, in this order. The command line, what is
    # packed for the engine and the tests of both and of docs/guide.md follow.

    max_tokens: int | None = _option(
        None,
        check=_integer(0, None, "or None"),
        help="The most tokens to generate; otherwise until the model stops or the context is full.",
        metavar="INTEGER",
        minus_one=None,
    )
    temperature: float = _option(
        0.0,
        check=_temperature,
        help="0 (the default) takes the most likely words; higher surprises more.",
        packed="f",
    )
    top_k: int = _option(
        0,
        check=_integer(0, MAX_UINT32),
        help="Choose among this many likely tokens; 0 (the default): among all.",
        metavar="INTEGER",
        packed="I",
        minus_one=0,
    )
    top_p: float = _option(
        1.0,
        check=_number(0.0, 1.0, above=True),
        help="Choose among the fewest tokens that reach this sum; default: 1, all.",
        packed="f",
    )
    min_p: float = _option(
        0.0,
        check=_number(0.0, 1.0),
        help="Drop tokens less likely than this share of the likeliest; default: 0, none.",
        packed="f",
    )
    typical_p: float = _option(
        1.0,
        check=_number(0.0, 1.0, above=True),
        help="Choose among the tokens of the most usual surprise, up to this sum; default: 1, all.",
        packed="f",
    )
    top_n_sigma: float = _option(
        0.0,
        check=_number(0.0, 100.0),
        help="Drop logits so many standard deviations below the largest; default: 0, none.",
        packed="f",
        minus_one=0.0,
    )
    xtc_probability: float = _option(
        0.0,
        check=_number(0.0, 1.0),
        help="How often the likeliest tokens are dropped, for variety; default: 0, never.",
        packed="f",
    )
    xtc_threshold: float = _option(
        0.1,
        check=_number(0.0, 1.0),
        help="Which those are: all that are this likely but the last of them; default: 0.1.",
        packed="f",
    )
    repetition_penalty: float = _option(
        1.0,
        check=_number(0.01, 100.0),
        help="Above 1 (the default): what was said lately is less likely.",
        packed="f",
    )
    frequency_penalty: float = _option(
        0.0,
        check=_number(-100.0, 100.0),
        help="Above 0 (the default): the less likely, the more often it was said.",
        packed="f",
    )
    presence_penalty: float = _option(
        0.0,
        check=_number(-100.0, 100.0),
        help="Above 0 (the default): less likely, however often it was said.",
        packed="f",
    )
    penalty_window: int = _option(
        64,
        check=_integer(0, 2**31 - 1),
        help="Penalties look at so many of the latest tokens; default: 64.",
        metavar="INTEGER",
        packed="I",
        minus_one=2**31 - 1,
    )
    penalize_prompt: bool = _option(
        True,
        check=_flag,
        help="Whether penalties and DRY look at the prompt too, or at the reply alone.",
        metavar="",
        packed="I",
    )
    dry_multiplier: float = _option(
        0.0,
        check=_number(0.0, 100.0),
        help="DRY: above 0 (the default), going on as it was said before is less likely.",
        packed="f",
    )
    dry_base: float = _option(
        1.75,
        check=_number(1.0, 100.0),
        help="DRY: each further token of a repetition costs so many times more; default: 1.75.",
        packed="f",
    )
    dry_allowed_length: int = _option(
        2,
        check=_integer(1, 2**31 - 1),
        help="DRY: so many tokens may be repeated before it costs something; default: 2.",
        metavar="INTEGER",
        packed="I",
    )
    dry_penalty_last_n: int = _option(
        2**31 - 1,
        check=_integer(0, 2**31 - 1),
        help="DRY looks at so many of the latest tokens; default: all.",
        metavar="INTEGER",
        packed="I",
        minus_one=2**31 - 1,
    )
    dry_sequence_breakers: tuple[str, ...] = _option(
        ("\n", ":", '"', "*"),
        check=texts,
        help="DRY: no repetition goes beyond one of these.",
        metavar="TEXT",
    )
    samplers: tuple[str, ...] = _option(
        tuple(_SAMPLERS),
        check=_samplers,
        help="What is done to the logits, in which order; what is left out is not done.",
        metavar="NAME,NAME",
        packed="Q",
        number=_sampler_numbers,
    )
    min_tokens: int = _option(
        0,
        check=_integer(0, MAX_UINT32),
        help="The least tokens to generate: the model cannot end its text before.",
        metavar="INTEGER",
        packed="I",
    )
    seed: int | None = _option(
        None,
        check=_integer(0, _MAX_UINT64, "or None"),
        help="The same seed gives the same text.",
        metavar="INTEGER",
        packed="Q",
        minus_one=None,
    )
    stop: tuple[str, ...] = _option(
        (),
        check=texts,
        help="The text ends before the first of these that appears.",
        metavar="TEXT",
    )
    stop_token_ids: tuple[int, ...] = _option(
        (),
        check=token_id_list,
        help="The text ends before the first of these tokens, as before the model's own.",
        metavar="ID",
    )
    ignore_eos: bool = _option(
        False,
        check=_flag,
        help="Whether the tokens with which the model ends its texts cannot be chosen.",
        metavar="",
    )
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] | None = _option(
        None,
        check=_biases,
        help="What is added to the logits of tokens, by their ids; -inf bans one.",
        metavar="ID=NUMBER",
    )
    adapters: str | Mapping[str, float] | tuple[tuple[str, float], ...] = _option(
        (),
        check=adapter_weights,
        help="The adapter of the model that the text has, or several with a weight each.",
        metavar="NAME=NUMBER",
        for_command_line=False,
    )
    logprobs: int | None = _option(
        None,
        check=_integer(0, MAX_LOGPROBS, "or None"),
        help="Also tell how likely each token was, and so many of the most likely ones.",
        metavar="INTEGER",
        for_chat=False,
    )
    prompt_logprobs: int | None = _option(
        None,
        check=_integer(0, MAX_LOGPROBS, "or None"),
        help="Likewise of the prompt's tokens, which are computed anew for that.",
        metavar="INTEGER",
        for_chat=False,
    )
    echo: bool = _option(
        False,
        check=_flag,
        help="Whether the text begins with that of the prompt.",
        metavar="",
        for_chat=False,
    )
    answer_index: int = _option(
        0,
        check=_integer(0, MAX_UINT32),
        help="Which of several answers with one seed this is; n=3 gives 0, 1 and 2.",
        metavar="INTEGER",
        for_chat=False,
    )

    def __post_init__(self) -> None:
        """Refuse what makes no sense, and make plain numbers of NumPy's."""
        for name, declared in declared_options().items():
            value = getattr(self, name)
            if value is None:
                value = type(self).__dataclass_fields__[name].default
            if declared.minus_one is not ...:
                with suppress(TypeError):  # where it is no integer, it is refused below
                    if operator.index(value) == -1:
                        value = declared.minus_one
            if value is not None:
                value = declared.check(name, value)
            object.__setattr__(self, name, value)
        for sampler, options in _SAMPLERS.items():
            for name in () if sampler in self.samplers else options:
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    raise ArgumentError(
                        f"{name} is {getattr(self, name)!r}, and samplers does not have "
                        f"{sampler!r}, which does it"
                    )
        if self.max_tokens is not None and self.max_tokens < self.min_tokens:
            raise ArgumentError(
                f"min_tokens is {self.min_tokens}; it must not be more than max_tokens, "
                f"{self.max_tokens}"
            )

    def packed(self, seed: int) -> bytes:
        """Return the struct `Sampling` of src/core/rows.h; `seed` where the options have none."""
        values = {
            name: getattr(self, name) for name, each in declared_options().items() if each.packed
        }
        values["seed"] = seed if self.seed is None else self.seed
        values = {name: declared_options()[name].number(each) for name, each in values.items()}
        codes = "".join(each.packed for each in declared_options().values())
        return struct.pack("<" + codes, *values.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(SamplingOptions):
    """How the next token is chosen, and what form the text has; made by `sampling_options`."""

    structure: Structure | None = None
    form: FormArgument | None = None
    """The form before it is compiled; None where there is none, or it is."""

    def compiled(self) -> TextOptions:
        """Return the options with their form compiled; raises what `FormArgument.compiled` does."""
        if self.form is None:
            return self
        return replace(self, structure=self.form.compiled(), form=None)


@cache
def declared_options() -> Mapping[str, Declared]:
    """Return what is declared of each option of sampling, by its name."""
    return {each.name: each.metadata["declared"] for each in fields(SamplingOptions)}


@explains_typos_of_init
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
    threads: int | Literal["auto"] | None = None
    """Threads of the CPU device; None: one per core that this process may use. "auto": reads and
    writes a little with several numbers of threads and takes the best; see `Model.thread_choice`.
    The text does not depend on it."""
    kv_type: str = "f16"
    """Number format of the cache: "f16" or "f32"."""
    kv_memory: int | None = None
    """Bytes for the cache; None: one full context, or what fits."""
    prefix_cache: bool = True
    """Whether a prompt that begins like an earlier text uses what is left of it in the cache, and
    begins sooner; the text is the same. Replies are read as a prompt for that when the engine is
    idle."""
    max_waiting: int = 1024
    """Requests that may wait for their turn; one more is a QueueFullError."""
    adapters: Mapping[str, str | os.PathLike[str]] | tuple[tuple[str, Path], ...] | None = None
    """Low-rank adapters (LoRA), by the names that requests have: GGUF files, or directories that
    `peft` saved. A request without one is computed as if there were none."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("device", "kv_type", "prefix_cache", "max_waiting"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, type(self).__dataclass_fields__[name].default)
        if not isinstance(self.device, str) or not self.device.isprintable() or not self.device:
            raise refusal("device", self.device, 'a name, for example "auto" or "cpu"', "")
        if not isinstance(self.kv_type, str) or self.kv_type not in KV_TYPES:
            raise refusal("kv_type", self.kv_type, " or ".join(map(repr, KV_TYPES)), "")
        for name, highest in (
            ("context", 2**31 - 1),
            ("kv_memory", _MAX_UINT64),
        ):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, integer(name, value, 1, highest, "or None"))
        if self.threads is not None:
            object.__setattr__(self, "threads", thread_count("threads", self.threads, "or None"))
        object.__setattr__(self, "adapters", adapter_paths("adapters", self.adapters))
        flag("prefix_cache", self.prefix_cache)
        waiting = integer("max_waiting", self.max_waiting, 1, MAX_UINT32)
        object.__setattr__(self, "max_waiting", waiting)


def thread_count(name: str, value: object, besides: str = "") -> int | Literal["auto"]:
    """Return a number of threads, or "auto"; ArgumentError for what is neither."""
    if isinstance(value, str) and value == AUTO:
        return AUTO
    try:
        return integer(name, value, 1, MAX_THREADS)
    except ArgumentError:
        allowed = f'an integer from 1 to {MAX_THREADS} or "{AUTO}"'
        raise refusal(name, value, allowed, besides) from None


def sampling_options(
    options: SamplingOptions | None, arguments: Mapping[str, object]
) -> TextOptions:
    """Return the options that a call gave, as an object, as keyword arguments, or as both.

    Among the arguments may be one that says what form the text has; it is not compiled yet. Raises
    ArgumentError where the two speak of the same field, and for several forms.
    """
    given = {name: each for name, each in arguments.items() if name in STRUCTURE_DEFAULTS}
    others = {name: each for name, each in arguments.items() if name not in STRUCTURE_DEFAULTS}
    chosen = {}
    if options is not None:
        if not isinstance(options, SamplingOptions):
            raise refusal("options", options, "a SamplingOptions", "or None")
        chosen = {
            each.name: getattr(options, each.name)
            for each in fields(options)
            if getattr(options, each.name) != each.default
        }
    for name, value in others.items():
        if name in chosen:
            raise ArgumentError(
                f"{name} is given twice: {chosen[name]!r} in options and {value!r} beside them"
            )
    sampling = cast("dict[str, Any]", {**chosen, **others})
    if given:
        sampling["form"] = form_argument(given)
    return TextOptions(**sampling)


def lists_sampling_options(function: Function) -> Function:
    """Have `help` show the fields of SamplingOptions, and forms, instead of `**sampling`.

    What is none of them is answered as `explains_typos` does.
    """
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    listed = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=each.type,
        )
        for each in fields(SamplingOptions)
    ]
    kinds = StructureArguments.__annotations__
    listed += [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name]
        )
        for name, default in STRUCTURE_DEFAULTS.items()
    ]
    shown = signature.replace(parameters=[*kept, *listed])
    function.__signature__ = shown  # type: ignore[attr-defined]  # what inspect.signature reads
    return explains_typos(function)
