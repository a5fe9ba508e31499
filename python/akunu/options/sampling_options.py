"""Which options there are for choosing the next token."""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache

from akunu.common.checks import MAX_UINT32, MAX_UINT64, token_id_list
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.adapter_options import adapter_weights
from akunu.options.declarations import (
    MOST_BREAKERS,
    MOST_STOPS,
    SAMPLERS,
    Declared,
    biases_check,
    flag_check,
    integer_check,
    number_check,
    option,
    overflow_check,
    sampler_numbers,
    samplers_check,
    speculation_check,
    temperature_check,
    texts_check,
)

MAX_OPTION_WORDS = 4096  # kMaxOptionWords in src/core/rows.h
MAX_LOGPROBS = 20  # kMaxLogprobs in src/core/rows.h


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

    max_tokens: int | None = option(
        None,
        check=integer_check(0, None, "or None"),
        help="The most tokens to generate; otherwise until the model stops or the context is full.",
        metavar="INTEGER",
        minus_one=None,
    )
    temperature: float = option(
        0.0,
        check=temperature_check,
        help="0 (the default) takes the most likely words; higher surprises more.",
        packed="f",
    )
    top_k: int = option(
        0,
        check=integer_check(0, MAX_UINT32),
        help="Choose among this many likely tokens; 0 (the default): among all.",
        metavar="INTEGER",
        packed="I",
        minus_one=0,
    )
    top_p: float = option(
        1.0,
        check=number_check(0.0, 1.0, above=True),
        help="Choose among the fewest tokens that reach this sum; default: 1, all.",
        packed="f",
    )
    min_p: float = option(
        0.0,
        check=number_check(0.0, 1.0),
        help="Drop tokens less likely than this share of the likeliest; default: 0, none.",
        packed="f",
    )
    typical_p: float = option(
        1.0,
        check=number_check(0.0, 1.0, above=True),
        help="Choose among the tokens of the most usual surprise, up to this sum; default: 1, all.",
        packed="f",
    )
    top_n_sigma: float = option(
        0.0,
        check=number_check(0.0, 100.0),
        help="Drop logits so many standard deviations below the largest; default: 0, none.",
        packed="f",
        minus_one=0.0,
    )
    xtc_probability: float = option(
        0.0,
        check=number_check(0.0, 1.0),
        help="How often the likeliest tokens are dropped, for variety; default: 0, never.",
        packed="f",
    )
    xtc_threshold: float = option(
        0.1,
        check=number_check(0.0, 1.0),
        help="Which those are: all that are this likely but the last of them; default: 0.1.",
        packed="f",
    )
    repetition_penalty: float = option(
        1.0,
        check=number_check(0.01, 100.0),
        help="Above 1 (the default): what was said lately is less likely.",
        packed="f",
    )
    frequency_penalty: float = option(
        0.0,
        check=number_check(-100.0, 100.0),
        help="Above 0 (the default): the less likely, the more often it was said.",
        packed="f",
    )
    presence_penalty: float = option(
        0.0,
        check=number_check(-100.0, 100.0),
        help="Above 0 (the default): less likely, however often it was said.",
        packed="f",
    )
    penalty_window: int = option(
        64,
        check=integer_check(0, 2**31 - 1),
        help="Penalties look at so many of the latest tokens; default: 64.",
        metavar="INTEGER",
        packed="I",
        minus_one=2**31 - 1,
    )
    penalize_prompt: bool = option(
        True,
        check=flag_check,
        help="Whether penalties and DRY look at the prompt too, or at the reply alone.",
        metavar="",
        packed="I",
    )
    dry_multiplier: float = option(
        0.0,
        check=number_check(0.0, 100.0),
        help="DRY: above 0 (the default), going on as it was said before is less likely.",
        packed="f",
    )
    dry_base: float = option(
        1.75,
        check=number_check(1.0, 100.0),
        help="DRY: each further token of a repetition costs so many times more; default: 1.75.",
        packed="f",
    )
    dry_allowed_length: int = option(
        2,
        check=integer_check(1, 2**31 - 1),
        help="DRY: so many tokens may be repeated before it costs something; default: 2.",
        metavar="INTEGER",
        packed="I",
    )
    dry_penalty_last_n: int = option(
        2**31 - 1,
        check=integer_check(0, 2**31 - 1),
        help="DRY looks at so many of the latest tokens; default: all.",
        metavar="INTEGER",
        packed="I",
        minus_one=2**31 - 1,
    )
    dry_sequence_breakers: tuple[str, ...] = option(
        ("\n", ":", '"', "*"),
        check=texts_check(MOST_BREAKERS),
        help="DRY: no repetition goes beyond one of these.",
        metavar="TEXT",
    )
    samplers: tuple[str, ...] = option(
        tuple(SAMPLERS),
        check=samplers_check,
        help="What is done to the logits, in which order; what is left out is not done.",
        metavar="NAME,NAME",
        packed="Q",
        number=sampler_numbers,
    )
    min_tokens: int = option(
        0,
        check=integer_check(0, MAX_UINT32),
        help="The least tokens to generate: the model cannot end its text before.",
        metavar="INTEGER",
        packed="I",
    )
    seed: int | None = option(
        None,
        check=integer_check(0, MAX_UINT64, "or None"),
        help="The same seed gives the same text.",
        metavar="INTEGER",
        packed="Q",
        minus_one=None,
    )
    stop: tuple[str, ...] = option(
        (),
        check=texts_check(MOST_STOPS),
        help="The text ends before the first of these that appears.",
        metavar="TEXT",
    )
    stop_token_ids: tuple[int, ...] = option(
        (),
        check=token_id_list,
        help="The text ends before the first of these tokens, as before the model's own.",
        metavar="ID",
    )
    ignore_eos: bool = option(
        False,
        check=flag_check,
        help="Whether the tokens with which the model ends its texts cannot be chosen.",
        metavar="",
    )
    context_overflow: str = option(
        "stop",
        check=overflow_check,
        help="Where the context is full: stop, error, shift: forget the oldest, go on; or reread.",
        metavar="NAME",
    )
    speculation: int | str = option(
        "auto",
        check=speculation_check,
        help="Tokens drafted as the text went before: auto, off or how many. It stays the same.",
        metavar="NAME",
    )
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] | None = option(
        None,
        check=biases_check,
        help="What is added to the logits of tokens, by their ids; -inf bans one.",
        metavar="ID=NUMBER",
    )
    adapters: str | Mapping[str, float] | tuple[tuple[str, float], ...] = option(
        (),
        check=adapter_weights,
        help="The adapter of the model that the text has, or several with a weight each.",
        metavar="NAME=NUMBER",
        for_command_line=False,
    )
    logprobs: int | None = option(
        None,
        check=integer_check(0, MAX_LOGPROBS, "or None"),
        help="Also tell how likely each token was, and so many of the most likely ones.",
        metavar="INTEGER",
        for_chat=False,
    )
    prompt_logprobs: int | None = option(
        None,
        check=integer_check(0, MAX_LOGPROBS, "or None"),
        help="Likewise of the prompt's tokens, which are computed anew for that.",
        metavar="INTEGER",
        for_chat=False,
    )
    echo: bool = option(
        False,
        check=flag_check,
        help="Whether the text begins with that of the prompt.",
        metavar="",
        for_chat=False,
    )
    answer_index: int = option(
        0,
        check=integer_check(0, MAX_UINT32),
        help="Which of several answers with one seed this is; n=3 gives 0, 1 and 2.",
        metavar="INTEGER",
        for_chat=False,
    )

    def __post_init__(self) -> None:
        """Refuse what makes no sense, and make plain numbers of NumPy's."""
        for name, declared in declared_options().items():
            value = getattr(self, name)
            default = type(self).__dataclass_fields__[name].default
            if value is default:  # which is in the form in which it is kept
                continue
            if value is None:
                value = default
            if declared.minus_one is not ...:
                with suppress(TypeError):  # where it is no integer, it is refused below
                    if operator.index(value) == -1:
                        value = declared.minus_one
            if value is not None:
                value = declared.check(name, value)
            object.__setattr__(self, name, value)
        for sampler, options in SAMPLERS.items():
            for name in () if sampler in self.samplers else options:
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    raise ArgumentError(
                        f"{name} is {getattr(self, name)!r}, and samplers does not have "
                        f"{sampler!r}, which does it"
                    )
        if self.context_overflow in ("shift", "reread") and not self.penalize_prompt:
            raise ArgumentError(
                f"penalize_prompt is False, and context_overflow is {self.context_overflow!r}, "
                "which makes a prompt of the reply: penalties would forget it"
            )
        if self.max_tokens is not None and self.max_tokens < self.min_tokens:
            raise ArgumentError(
                f"min_tokens is {self.min_tokens}; it must not be more than max_tokens, "
                f"{self.max_tokens}"
            )

    def packed(self, seed: int) -> bytes:
        """Return the struct `Sampling` of src/core/rows.h; `seed` where the options have none."""
        numbers = []
        for name, declared in _packed_options():
            value = getattr(self, name)
            if name == "seed" and value is None:
                value = seed
            numbers.append(value if declared.number is None else declared.number(value))
        return _packed_struct().pack(*numbers)


@cache
def _packed_options() -> tuple[tuple[str, Declared], ...]:
    """Return those that the engine gets in one record, in its order."""
    return tuple((name, each) for name, each in declared_options().items() if each.packed)


@cache
def _packed_struct() -> struct.Struct:
    return struct.Struct("<" + "".join(each.packed for _, each in _packed_options()))


@cache
def declared_options() -> Mapping[str, Declared]:
    """Return what is declared of each option of sampling, by its name."""
    return {each.name: each.metadata["declared"] for each in fields(SamplingOptions)}
