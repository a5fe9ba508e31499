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
from akunu.options.declarations import SAMPLING, USUAL, Declared, check_options, declared_of, option
from akunu.options.engine_limits import MAX_LOGPROBS, MOST_DRAFTED
from akunu.options.option_checks import (
    CONTEXT_OVERFLOWS,
    MOST_BREAKERS,
    MOST_STOPS,
    SAMPLERS,
    Integers,
    Names,
    Numbers,
    Temperatures,
    Texts,
    biases_check,
    flag_check,
    sampler_numbers,
    samplers_check,
    speculation_check,
)

RECOMMENDED = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "penalty_window",
)
"""The options that a model's authors may set in its file; `akunu chat` uses their values."""

_TEXTS = {"type": ["array", "string", "null"], "items": {"type": "string"}}


@explains_typos_of_init
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """How the next token is chosen. The defaults always take the most likely one.

    `logit_bias`, and what forbids tokens, comes first, then the `samplers` in their order. For each
    option None is its default, as if it was not given. Raises ArgumentError for values that make no
    sense, NaN and infinity among them, and MisuseError for an option that does not exist.

    `min_tokens`: this many tokens are chosen at least, none of which ends the text. A text of
    `stop` ends it all the same, whenever it appears.

    >>> SamplingOptions(max_tokens=16, temperature=0.8, seed=7).seed
    7
    >>> SamplingOptions(samplers=["temperature", "top_p"], top_p=0.9, top_k=5)
    Traceback (most recent call last):
    ...
    akunu.errors.ArgumentError: top_k is 5, but samplers does not contain 'top_k', which uses it
    """

    # How one is added: docs/adding/sampling-option.md. Those that are `packed` have fields in
    # `Sampling` of src/core/rows.h, in this order.

    max_tokens: int | None = option(
        None,
        Integers(0, None, "or None"),
        "Generate at most this many tokens.",
        minus_one=None,
        minus_one_is="no limit",
        calls=("chat", "complete", "set"),
        other_names=("num_predict", "n_predict"),
        group=USUAL,
        default_is="until the model stops or the context is full",
    )
    temperature: float = option(
        0.0,
        Temperatures(0.0, 1e4),
        "Randomness of sampling. 0 always takes the most likely token; a higher value "
        "gives more varied text.",
        packed="f",
        note="0: greedy",
        group=USUAL,
    )
    top_k: int = option(
        0,
        Integers(0, MAX_UINT32),
        "Sample from this many of the most likely tokens. 0: from all.",
        packed="I",
        minus_one=0,
        minus_one_is="all tokens",
        group=SAMPLING,
    )
    top_p: float = option(
        1.0,
        Numbers(0.0, 1.0, True),
        "Sample from the most likely tokens whose probabilities add up to this. 1: from all.",
        packed="f",
        group=SAMPLING,
    )
    min_p: float = option(
        0.0,
        Numbers(0.0, 1.0),
        "Drop tokens whose probability is below this share of the highest one. 0: drop none.",
        packed="f",
        group=SAMPLING,
    )
    typical_p: float = option(
        1.0,
        Numbers(0.0, 1.0, True),
        "Locally typical sampling: keep tokens near the expected log-probability until "
        "their probabilities add up to this. 1: keep all.",
        packed="f",
        other_names=("typ_p",),
    )
    top_n_sigma: float = option(
        0.0,
        Numbers(0.0, 100.0),
        "Drop tokens whose logits are more than this many standard deviations below the "
        "highest. 0: drop none.",
        packed="f",
        minus_one=0.0,
        minus_one_is="none",
    )
    xtc_probability: float = option(
        0.0,
        Numbers(0.0, 1.0),
        "XTC: the probability with which the most likely tokens are dropped, for more "
        "varied text. 0: never.",
        packed="f",
    )
    xtc_threshold: float = option(
        0.1,
        Numbers(0.0, 1.0),
        "XTC: drop tokens with at least this probability, except the least likely of them.",
        packed="f",
    )
    repetition_penalty: float = option(
        1.0,
        Numbers(0.01, 100.0),
        "Make recent tokens less likely. 1: no penalty; a higher value: less repetition.",
        packed="f",
        other_names=("repeat_penalty",),
        note="over the last `penalty_window` tokens of the log",
        group=SAMPLING,
    )
    frequency_penalty: float = option(
        0.0,
        Numbers(-100.0, 100.0),
        "Lower a token's logit by this for each time that it is among the recent tokens. "
        "0: no penalty.",
        packed="f",
        group=SAMPLING,
    )
    presence_penalty: float = option(
        0.0,
        Numbers(-100.0, 100.0),
        "Lower a token's logit by this if it is among the recent tokens. 0: no penalty.",
        packed="f",
        group=SAMPLING,
    )
    penalty_window: int = option(
        64,
        Integers(0, 2**31 - 1),
        "The penalties look at this many of the last tokens.",
        packed="I",
        minus_one=2**31 - 1,
        minus_one_is="all tokens",
        other_names=("repeat_last_n",),
        note="tokens, the row's own included",
    )
    penalize_prompt: bool = option(
        True,
        flag_check,
        "Apply the penalties and DRY to the prompt as well as to the completion.",
        packed="I",
        opposite="no_prompt_penalties",
        note="0: penalties and DRY look at the reply alone",
    )
    dry_multiplier: float = option(
        0.0,
        Numbers(0.0, 100.0),
        "DRY: strength of the penalty for repeating a sequence of tokens. 0: no penalty.",
        packed="f",
    )
    dry_base: float = option(
        1.75,
        Numbers(1.0, 100.0),
        "DRY: each further token of a repetition multiplies the penalty by this.",
        packed="f",
    )
    dry_allowed_length: int = option(
        2,
        Integers(1, 2**31 - 1),
        "DRY: the penalty begins when this many tokens repeat.",
        packed="I",
    )
    dry_penalty_last_n: int = option(
        2**31 - 1,
        Integers(0, 2**31 - 1),
        "DRY: search this many of the last tokens for repetitions.",
        packed="I",
        minus_one=2**31 - 1,
        minus_one_is="all tokens",
        default_is="all",
    )
    dry_sequence_breakers: tuple[str, ...] = option(
        ("\n", ":", '"', "*"),
        Texts(MOST_BREAKERS),
        "DRY: a repetition does not extend across this text.",
        metavar="TEXT",
        accepts="str | Sequence[str] | Set[str] | None",
        is_list=True,
        schema=_TEXTS,
        default_is="a newline, a colon, a quote and an asterisk",
    )
    samplers: tuple[str, ...] = option(
        tuple(SAMPLERS),
        samplers_check,
        "The samplers that run, in this order.",
        metavar="NAME,NAME",
        packed="Q",
        number=sampler_numbers,
        accepts="Sequence[str] | None",
        schema={"type": ["array", "null"], "items": {"type": "string"}},
        note="kSampler... of four bits each, the first one lowest; 0: no more",
        default_is="all, in that order",
        range_is=f"{', '.join(SAMPLERS)}; temperature is always one of them",
    )
    min_tokens: int = option(
        0,
        Integers(0, MAX_UINT32),
        "Generate at least this many tokens before the model may stop.",
        packed="I",
        note="tokens before the first stop id may be chosen",
    )
    seed: int | None = option(
        None,
        Integers(0, MAX_UINT64, "or None"),
        "Seed of the random numbers. The same seed gives the same completion.",
        packed="Q",
        minus_one=None,
        minus_one_is="a random seed",
        group=SAMPLING,
        default_is="random",
    )
    stop: tuple[str, ...] = option(
        (),
        Texts(MOST_STOPS),
        "Stop string: the completion ends before this text.",
        metavar="TEXT",
        accepts="str | Sequence[str] | Set[str] | None",
        is_list=True,
        schema=_TEXTS,
        group=SAMPLING,
    )
    stop_token_ids: tuple[int, ...] = option(
        (),
        token_id_list,
        "Stop token: the completion ends before it, as it does before the model's own stop tokens.",
        metavar="ID",
        accepts="Sequence[int] | Set[int] | None",
        is_list=True,
        schema={"type": ["array", "null"], "items": {"type": "integer"}},
    )
    ignore_eos: bool = option(
        False,
        flag_check,
        "Keep generating: the model's own stop tokens are never sampled.",
    )
    context_overflow: str = option(
        "stop",
        Names(CONTEXT_OVERFLOWS),
        "What happens when the context is full: stop, raise an error, or drop the oldest tokens "
        "and continue. `shift` moves the rest of the KV cache, `reread` computes it again.",
        metavar="NAME",
        schema={"type": ["string", "null"], "enum": [*CONTEXT_OVERFLOWS, None]},
    )
    speculation: int | str = option(
        "auto",
        speculation_check,
        "Draft this many tokens from repetitions in the text and check them in one pass. "
        "The completion stays the same.",
        metavar="NAME",
        schema={"type": ["string", "integer", "null"]},
        range_is=f"auto, off, or 1 to {MOST_DRAFTED}",
        default_is="auto, by measured speed on a CPU and off on a GPU",
    )
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] | None = option(
        None,
        biases_check,
        "Add a number to the logit of a token. -inf forbids the token.",
        metavar="ID=NUMBER",
        accepts="Mapping[int, float] | None",
        is_list=True,
        schema={"type": ["object", "null"]},
        range_is="-inf to 10000",
    )
    adapters: str | Mapping[str, float] | tuple[tuple[str, float], ...] = option(
        (),
        adapter_weights,
        "The LoRA adapter to use, or several adapters with their weights.",
        metavar="NAME=NUMBER",
        calls=("set",),
        accepts="str | Mapping[str, float] | None",
        range_is="weights from -10000 to 10000",
    )
    logprobs: int | None = option(
        None,
        Integers(0, MAX_LOGPROBS, "or None"),
        "Return the log-probability of each token, and of this many of the most likely ones.",
        calls=("complete",),
    )
    prompt_logprobs: int | None = option(
        None,
        Integers(0, MAX_LOGPROBS, "or None"),
        "Return log-probabilities of the prompt's tokens, too. They are computed again for this.",
        calls=("complete",),
    )
    echo: bool = option(
        False,
        flag_check,
        "Begin the completion with the prompt.",
        calls=("complete",),
    )
    answer_index: int = option(
        0,
        Integers(0, MAX_UINT32),
        "Which of several completions with the same seed to generate; n=3 generates 0, 1 and 2.",
        calls=("complete",),
    )

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense; turn NumPy numbers into plain ones."""
        check_options(self)
        for sampler, options in SAMPLERS.items():
            for name in () if sampler in self.samplers else options:
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    raise ArgumentError(
                        f"{name} is {getattr(self, name)!r}, but samplers does not contain "
                        f"{sampler!r}, which uses it"
                    )
        if self.context_overflow in ("shift", "reread") and not self.penalize_prompt:
            raise ArgumentError(
                f"penalize_prompt is False, and context_overflow is {self.context_overflow!r}, "
                "which turns the reply into a prompt that the penalties ignore"
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
