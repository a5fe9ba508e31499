"""From the options of a text to what the engine takes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.checks import integer
from akunu.errors import ArgumentError
from akunu.options.text_options import MAX_OPTION_WORDS, SamplingOptions
from akunu.text.batches import Given, Prepared
from akunu.text.reply_decoder import ReplyDecoder
from akunu.tokenizers.token_ids import token_ids
from akunu.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from akunu.grammar.structure import Structure
    from akunu.text.logprobs import LogprobReader

_NO_LIMIT = 2**32 - 1  # more tokens than any context holds
_WORDS_PER_BIAS = 2  # a token and a number
SIDE_BY_SIDE = 64  # texts that the engine runs at a time, at most


def begin_text(
    native: _core.NativeModel,
    tokenizer: Tokenizer,
    prepared: Prepared,
    options: SamplingOptions,
    *,
    priority: int = 0,
    shares_with: _core.Generation | None = None,
    constraint: _core.Constraint | None = None,
    structure: Structure | None = None,
) -> ReplyDecoder:
    """Have the engine begin a text; raises what `Model.generate` raises.

    `shares_with`: another answer to the same prompt, which is computed once for both. `constraint`:
    what rules it. `structure`: the form that it has then, and how an object is made of it.
    """
    if options.echo and prepared.splitter is not None:
        raise ArgumentError("echo is True; what comes before a reply is no text: use generate")
    tokens = prepared.tokens
    if prepared.images and options.context_overflow != "stop":
        raise ArgumentError(
            f"context_overflow is {options.context_overflow!r}; with images it must be 'stop'"
        )
    if options.context_overflow == "stop":
        generation = _start(
            native,
            tokenizer,
            tokens,
            options,
            priority,
            shares_with,
            constraint,
            images=prepared.images,
        )
    else:
        tokens, generation = _start_beyond(
            native, tokenizer, prepared, options, priority, shares_with, constraint
        )
    prompt = tokens.tolist()
    logprobs = _reader_of(generation, tokenizer, prompt, options)
    decoder = ReplyDecoder(
        generation,
        tokenizer,
        prompt,
        options.stop,
        prepared.splitter,
        prepared.functions,
        structure,
        logprobs,
        holds_calls=prepared.holds_calls and not options.stop,
    )
    if options.echo:
        decoder.begin_with(tokenizer.decode(prompt) if prepared.text is None else prepared.text)
    return decoder


def _start_beyond(
    native: _core.NativeModel,
    tokenizer: Tokenizer,
    prepared: Prepared,
    options: SamplingOptions,
    priority: int,
    shares_with: _core.Generation | None,
    constraint: _core.Constraint | None,
) -> tuple[NDArray[np.uint32], _core.Generation]:
    """Begin a text that does not just stop where the context is full; return its prompt, too."""
    from akunu.text.context_overflow import GOES_ON, SHIFT, GoingOn, fitted, newest_tokens

    prompt = prepared.tokens
    shorten = prepared.shorten or newest_tokens(prompt.tolist(), tokenizer.bos_id)
    prompt = fitted(prompt, native.context, options, shorten)
    if isinstance(shares_with, GoingOn):
        shares_with = shares_with.first
    if constraint is not None and options.context_overflow in GOES_ON:
        # What is written decides what may follow: the grammar would have to read it again.
        return prompt, _start(native, tokenizer, prompt, options, priority, shares_with, constraint)

    def start(
        tokens: NDArray[np.uint32], options: SamplingOptions, before: _core.Generation | None
    ) -> _core.Generation:
        first = shares_with if before is None else None
        most = options.max_tokens
        may_go_on = most is None or len(tokens) + most > native.context + 1
        return _start(
            native,
            tokenizer,
            tokens,
            options,
            priority,
            first,
            constraint,
            before if options.context_overflow == SHIFT else None,
            keeps_positions=options.context_overflow == SHIFT and may_go_on,
        )

    seed = int.from_bytes(os.urandom(8), "little")
    going_on = GoingOn(start, prompt, options, seed, native.context, shorten)
    return prompt, cast("_core.Generation", going_on)  # it answers as one


def _start(
    native: _core.NativeModel,
    tokenizer: Tokenizer,
    tokens: NDArray[np.uint32],
    options: SamplingOptions,
    priority: int,
    shares_with: _core.Generation | None,
    constraint: _core.Constraint | None,
    before: _core.Generation | None = None,
    *,
    keeps_positions: bool = False,
    images: Sequence[tuple[int, _core.Image]] = (),
) -> _core.Generation:
    ends = set() if options.ignore_eos else set(tokenizer.stop_ids)
    stops = token_ids(options.stop_token_ids, native.config["vocab_size"], "stop_token_ids")
    biases = dict(options.logit_bias or {})
    if options.ignore_eos:
        biases.update(dict.fromkeys(tokenizer.stop_ids, -math.inf))
    breakers = []
    if options.dry_multiplier > 0 and options.dry_sequence_breakers:
        from akunu.options.dry_breakers import breaker_words

        breakers = breaker_words(tokenizer, options.dry_sequence_breakers)
    _check_room(biases, breakers, options)
    return native.start(
        tokens,
        max_tokens=_NO_LIMIT if options.max_tokens is None else min(options.max_tokens, _NO_LIMIT),
        stop_ids=sorted(ends | set(stops.tolist())),
        sampling=options.packed(seed=int.from_bytes(os.urandom(8), "little")),
        logit_bias=biases,
        dry_breakers=breakers,
        logprobs=options.logprobs,
        prompt_logprobs=options.prompt_logprobs,
        shares_with=shares_with,
        choice=options.answer_index,
        priority=priority,
        constraint=constraint,
        adapters=adapter_shares(native, options.adapters),
        speculation=_drafted(options.speculation),
        keeps_positions=keeps_positions,
        goes_on_from=before,
        images=images,
    )


def _drafted(speculation: int | str) -> int:
    """Return kSpeculationAuto, kSpeculationOff (src/inference/speculation.h) or the number."""
    if speculation == "off":
        return 0
    return 2**32 - 1 if speculation == "auto" else int(speculation)


def adapter_shares(native: _core.NativeModel, adapters: object) -> dict[int, float]:
    """Return weights by the engine's numbers of adapters; ArgumentError for names without one."""
    wanted = cast(
        "tuple[tuple[str, float], ...]",
        SamplingOptions(adapters=adapters).adapters,  # type: ignore[arg-type]
    )
    if not wanted:
        return {}
    loaded = native.adapters
    shares = {}
    for name, weight in wanted:
        if name not in loaded:
            there = f"there is {', '.join(loaded)}" if loaded else "the model was loaded without"
            raise ArgumentError(f"adapters names {name!r}; {there}")
        shares[loaded.index(name)] = weight
    return shares


def _check_room(
    biases: Mapping[int, float], breakers: Sequence[int], options: SamplingOptions
) -> None:
    """Raise ArgumentError for biases that do not fit; breakers of DRY take a part of the room."""
    left = MAX_OPTION_WORDS - len(breakers)
    most = left // _WORDS_PER_BIAS
    if left < 0 or len(biases) <= most:
        return  # breakers that are too many by themselves are the engine's to refuse
    given = len(options.logit_bias or ())
    banned = f", and ignore_eos bans {len(biases) - given} more" if len(biases) > given else ""
    shared = f"; at most {most} are possible"
    if breakers:
        alone = MAX_OPTION_WORDS // _WORDS_PER_BIAS
        shared += (
            f" beside these dry_sequence_breakers, which take room of {alone - most} "
            f"({alone} are possible without them)"
        )
    raise ArgumentError(f"logit_bias has {given} tokens{banned}{shared}")


def _reader_of(
    generation: _core.Generation,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    options: SamplingOptions,
) -> LogprobReader | None:
    """Return what reads the logprobs of a text; None where none are asked for."""
    if options.logprobs is None and options.prompt_logprobs is None:
        return None
    from akunu.text.logprobs import LogprobReader

    return LogprobReader(generation, tokenizer, prompt, options.logprobs, options.prompt_logprobs)


def checked_n(n: int | None, max_waiting: int) -> int | None:
    """Return how many answers are asked for; ArgumentError where it makes no sense.

    `max_waiting`: how many requests the model lets wait. More answers than those, and the ones that
    run, could never begin together.
    """
    if n is None:
        return None
    n = integer("n", n, 1, None, "or None")
    most = SIDE_BY_SIDE + max_waiting
    if n > most:
        raise ArgumentError(
            f"n is {n}; it must be at most {most}: {SIDE_BY_SIDE} answers run side by side, and "
            f"max_waiting={max_waiting} of load lets so many more wait"
        )
    return n


def prepared_answers(prepare: Callable[[], Prepared], n: int) -> list[Prepared]:
    """Prepare so many answers to one prompt."""
    first = prepare()
    if first.splitter is None:
        return [first] * n
    return [first, *(prepare() for _ in range(n - 1))]  # what reads a reply reads one alone


def answers(
    begin: Callable[[SamplingOptions, Given, _core.Generation | None], ReplyDecoder],
    options: SamplingOptions,
    prepared: Sequence[Given],
) -> list[ReplyDecoder]:
    """Begin several answers to one prompt, which differ in their `answer_index`.

    `begin` starts one, beside the first of them. Where one cannot begin, none does.
    """
    seed = int.from_bytes(os.urandom(8), "little") if options.seed is None else options.seed
    begun: list[ReplyDecoder] = []
    try:
        for index, each in enumerate(prepared, options.answer_index):
            first = begun[0].generation if begun else None
            begun.append(begin(replace(options, seed=seed, answer_index=index), each, first))
    except BaseException:
        for decoder in begun:
            decoder.cancel()
        raise
    return begun
