"""Which options there are for choosing the next token."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from akunu.common.checks import MAX_UINT32, MAX_UINT64, token_id_list
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.adapter_options import adapter_weights
from akunu.options.declarations import Declared, check_options, declared_of, option
from akunu.options.engine_limits import MAX_LOGPROBS
from akunu.options.option_checks import (
    CONTEXT_OVERFLOWS,
    MOST_BREAKERS,
    MOST_STOPS,
    SAMPLERS,
    Integers,
    Numbers,
    Temperatures,
    biases_check,
    flag_check,
    one_of,
    sampler_numbers,
    samplers_check,
    speculation_check,
    texts_check,
)

_TEXTS = {"type": ["array", "string", "null"], "items": {"type": "string"}}


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

    # How one is added: docs/adding/sampling-option.md. Those that are `packed` have fields in
    # `Sampling` of src/core/rows.h, in this order.

    max_tokens: int | None = option(
        None,
        Integers(0, None, "or None"),
        "The most tokens to generate; otherwise until the model stops or the context is full.",
        minus_one=None,
        calls=("chat", "complete", "set"),
        other_names=("num_predict", "n_predict"),
    )
    temperature: float = option(
        0.0,
        Temperatures(0.0, 1e4),
        "0 (the default) takes the most likely words; higher surprises more.",
        packed="f",
        note="0: greedy",
    )
    top_k: int = option(
        0,
        Integers(0, MAX_UINT32),
        "Choose among this many likely tokens; 0 (the default): among all.",
        packed="I",
        minus_one=0,
    )
    top_p: float = option(
        1.0,
        Numbers(0.0, 1.0, True),
        "Choose among the fewest tokens that reach this sum; default: 1, all.",
        packed="f",
    )
    min_p: float = option(
        0.0,
        Numbers(0.0, 1.0),
        "Drop tokens less likely than this share of the likeliest; default: 0, none.",
        packed="f",
    )
    typical_p: float = option(
        1.0,
        Numbers(0.0, 1.0, True),
        "Choose among the tokens of the most usual surprise, up to this sum; default: 1, all.",
        packed="f",
        other_names=("typ_p",),
    )
    top_n_sigma: float = option(
        0.0,
        Numbers(0.0, 100.0),
        "Drop logits so many standard deviations below the largest; default: 0, none.",
        packed="f",
        minus_one=0.0,
    )
    xtc_probability: float = option(
        0.0,
        Numbers(0.0, 1.0),
        "How often the likeliest tokens are dropped, for variety; default: 0, never.",
        packed="f",
    )
    xtc_threshold: float = option(
        0.1,
        Numbers(0.0, 1.0),
        "Which those are: all that are this likely but the last of them; default: 0.1.",
        packed="f",
    )
    repetition_penalty: float = option(
        1.0,
        Numbers(0.01, 100.0),
        "Above 1 (the default): what was said lately is less likely.",
        packed="f",
        other_names=("repeat_penalty",),
        note="over the last `penalty_window` tokens of the log",
    )
    frequency_penalty: float = option(
        0.0,
        Numbers(-100.0, 100.0),
        "Above 0 (the default): the less likely, the more often it was said.",
        packed="f",
    )
    presence_penalty: float = option(
        0.0,
        Numbers(-100.0, 100.0),
        "Above 0 (the default): less likely, however often it was said.",
        packed="f",
    )
    penalty_window: int = option(
        64,
        Integers(0, 2**31 - 1),
        "Penalties look at so many of the latest tokens; default: 64.",
        packed="I",
        minus_one=2**31 - 1,
        other_names=("repeat_last_n",),
        note="tokens, the row's own included",
    )
    penalize_prompt: bool = option(
        True,
        flag_check,
        "Whether penalties and DRY look at the prompt too, or at the reply alone.",
        packed="I",
        opposite="no_prompt_penalties",
        note="0: penalties and DRY look at the reply alone",
    )
    dry_multiplier: float = option(
        0.0,
        Numbers(0.0, 100.0),
        "DRY: above 0 (the default), going on as it was said before is less likely.",
        packed="f",
    )
    dry_base: float = option(
        1.75,
        Numbers(1.0, 100.0),
        "DRY: each further token of a repetition costs so many times more; default: 1.75.",
        packed="f",
    )
    dry_allowed_length: int = option(
        2,
        Integers(1, 2**31 - 1),
        "DRY: so many tokens may be repeated before it costs something; default: 2.",
        packed="I",
    )
    dry_penalty_last_n: int = option(
        2**31 - 1,
        Integers(0, 2**31 - 1),
        "DRY looks at so many of the latest tokens; default: all.",
        packed="I",
        minus_one=2**31 - 1,
    )
    dry_sequence_breakers: tuple[str, ...] = option(
        ("\n", ":", '"', "*"),
        texts_check(MOST_BREAKERS),
        "DRY: no repetition goes beyond one of these.",
        metavar="TEXT",
        accepts="str | Sequence[str] | Set[str] | None",
        is_list=True,
        schema=_TEXTS,
    )
    samplers: tuple[str, ...] = option(
        tuple(SAMPLERS),
        samplers_check,
        "What is done to the logits, in which order; what is left out is not done.",
        metavar="NAME,NAME",
        packed="Q",
        number=sampler_numbers,
        accepts="Sequence[str] | None",
        schema={"type": ["array", "null"], "items": {"type": "string"}},
        note="kSampler... of four bits each, the first one lowest; 0: no more",
    )
    min_tokens: int = option(
        0,
        Integers(0, MAX_UINT32),
        "The least tokens to generate: the model cannot end its text before.",
        packed="I",
        note="before so many are chosen, none of the stop ids is",
    )
    seed: int | None = option(
        None,
        Integers(0, MAX_UINT64, "or None"),
        "The same seed gives the same text.",
        packed="Q",
        minus_one=None,
    )
    stop: tuple[str, ...] = option(
        (),
        texts_check(MOST_STOPS),
        "The text ends before the first of these that appears.",
        metavar="TEXT",
        accepts="str | Sequence[str] | Set[str] | None",
        is_list=True,
        schema=_TEXTS,
    )
    stop_token_ids: tuple[int, ...] = option(
        (),
        token_id_list,
        "The text ends before the first of these tokens, as before the model's own.",
        metavar="ID",
        accepts="Sequence[int] | Set[int] | None",
        is_list=True,
        schema={"type": ["array", "null"], "items": {"type": "integer"}},
    )
    ignore_eos: bool = option(
        False,
        flag_check,
        "Whether the tokens with which the model ends its texts cannot be chosen.",
    )
    context_overflow: str = option(
        "stop",
        one_of(CONTEXT_OVERFLOWS),
        "Where the context is full: stop, error, shift: forget the oldest, go on; or reread.",
        metavar="NAME",
        schema={"type": ["string", "null"], "enum": [*CONTEXT_OVERFLOWS, None]},
    )
    speculation: int | str = option(
        "auto",
        speculation_check,
        "Tokens drafted as the text went before: auto, off or how many. It stays the same.",
        metavar="NAME",
        schema={"type": ["string", "integer", "null"]},
    )
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] | None = option(
        None,
        biases_check,
        "What is added to the logits of tokens, by their ids; -inf bans one.",
        metavar="ID=NUMBER",
        accepts="Mapping[int, float] | None",
        is_list=True,
        schema={"type": ["object", "null"]},
    )
    adapters: str | Mapping[str, float] | tuple[tuple[str, float], ...] = option(
        (),
        adapter_weights,
        "The adapter of the model that the text has, or several with a weight each.",
        metavar="NAME=NUMBER",
        calls=("set",),
        accepts="str | Mapping[str, float] | None",
    )
    logprobs: int | None = option(
        None,
        Integers(0, MAX_LOGPROBS, "or None"),
        "Also tell how likely each token was, and so many of the most likely ones.",
        calls=("complete",),
    )
    prompt_logprobs: int | None = option(
        None,
        Integers(0, MAX_LOGPROBS, "or None"),
        "Likewise of the prompt's tokens, which are computed anew for that.",
        calls=("complete",),
    )
    echo: bool = option(
        False,
        flag_check,
        "Whether the text begins with that of the prompt.",
        calls=("complete",),
    )
    answer_index: int = option(
        0,
        Integers(0, MAX_UINT32),
        "Which of several answers with one seed this is; n=3 gives 0, 1 and 2.",
        calls=("complete",),
    )

    def __post_init__(self) -> None:
        """Refuse what makes no sense, and make plain numbers of NumPy's."""
        check_options(self)
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


def declared_options() -> Mapping[str, Declared]:
    """Return what is declared of each option of sampling, by its name."""
    return declared_of(SamplingOptions)
