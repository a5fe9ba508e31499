"""From a prompt and the options of a text to what the engine writes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.checks import integer
from akunu.errors import ArgumentError
from akunu.options.adapter_options import adapter_weights
from akunu.options.dry_breakers import breaker_words
from akunu.options.engine_limits import MAX_OPTION_WORDS, MOST_BIASES, SIDE_BY_SIDE, WORDS_PER_BIAS
from akunu.options.text_options import SamplingOptions, TextOptions
from akunu.text.context_overflow import GOES_ON, SHIFT, GoingOn, fitted, newest_tokens
from akunu.text.logprobs import LogprobReader
from akunu.text.reply_decoder import ReplyDecoder
from akunu.tokenizers.token_ids import token_ids
from akunu.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from akunu.text.encode import Prompt
    from akunu.text.render import Rendered

_NO_LIMIT = 2**32 - 1  # more tokens than any context holds


@dataclass(frozen=True, slots=True)
class Submitted:
    """A text that the engine writes."""

    generation: _core.Generation
    prompt: list[int]
    """The ids that it began with; fewer than the Prompt's where these were shortened."""
    rendered: Rendered
    options: TextOptions
    text: str | None
    """The prompt, if it is a text."""

    def decoder(self, tokenizer: Tokenizer) -> ReplyDecoder:
        """Return what makes pieces of its tokens, and a Completion at its end."""
        rendered, options = self.rendered, self.options
        decoder = ReplyDecoder(
            self.generation,
            tokenizer,
            self.prompt,
            options.stop,
            None if rendered.new_splitter is None else rendered.new_splitter(),
            rendered.functions,
            options.structure,
            self._logprob_reader(tokenizer),
            holds_calls=rendered.holds_calls and not options.stop,
        )
        if options.echo:
            prompt = self.text
            decoder.begin_with(tokenizer.decode(self.prompt) if prompt is None else prompt)
        return decoder

    def _logprob_reader(self, tokenizer: Tokenizer) -> LogprobReader | None:
        """Return what reads the logprobs of a text; None where none are requested."""
        n, n_prompt = self.options.logprobs, self.options.prompt_logprobs
        if n is None and n_prompt is None:
            return None
        return LogprobReader(self.generation, tokenizer, self.prompt, n, n_prompt)


def submit(
    native: _core.NativeModel,
    tokenizer: Tokenizer,
    prompt: Prompt,
    options: TextOptions,
    *,
    priority: int = 0,
    shares_with: _core.Generation | None = None,
    constraint: _core.Constraint | None = None,
) -> Submitted:
    """Have the engine begin a text; raises what `Model.generate` raises.

    `shares_with`: another answer to the same prompt, which is computed once for both. `constraint`:
    what rules it.
    """
    if options.echo and prompt.rendered.new_splitter is not None:
        raise ArgumentError("echo works with generate, not with chat")
    tokens = prompt.tokens
    if prompt.images and options.context_overflow != "stop":
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
            images=prompt.images,
        )
    else:
        tokens, generation = _start_beyond(
            native, tokenizer, prompt, options, priority, shares_with, constraint
        )
    return Submitted(generation, tokens.tolist(), prompt.rendered, options, prompt.text)


def _start_beyond(
    native: _core.NativeModel,
    tokenizer: Tokenizer,
    given: Prompt,
    options: SamplingOptions,
    priority: int,
    shares_with: _core.Generation | None,
    constraint: _core.Constraint | None,
) -> tuple[NDArray[np.uint32], _core.Generation]:
    """Begin a text that does not just stop where the context is full; return its prompt, too."""
    prompt = given.tokens
    shorten = given.shorten or newest_tokens(prompt.tolist(), tokenizer.bos_id)
    prompt = fitted(prompt, native.context, options, shorten)
    if isinstance(shares_with, GoingOn):
        shares_with = shares_with.first
    if constraint is not None and options.context_overflow in GOES_ON:
        # The written text decides what may follow: the grammar would have to read it again.
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
    if options.stop_token_ids:
        stops = token_ids(options.stop_token_ids, native.config["vocab_size"], "stop_token_ids")
        ends |= set(stops.tolist())
    biases = dict(options.logit_bias or {})
    if options.ignore_eos:
        biases.update(dict.fromkeys(tokenizer.stop_ids, -math.inf))
    breakers = []
    if options.dry_multiplier > 0 and options.dry_sequence_breakers:
        breakers = breaker_words(tokenizer, options.dry_sequence_breakers)
    _check_room(biases, breakers, options)
    return native.start(
        tokens,
        max_tokens=_NO_LIMIT if options.max_tokens is None else min(options.max_tokens, _NO_LIMIT),
        stop_ids=sorted(ends),
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
    if adapters is None or adapters == ():
        return {}
    wanted = adapter_weights("adapters", adapters)
    loaded = native.adapters
    shares = {}
    for name, weight in wanted:
        if name not in loaded:
            names = ", ".join(filter(None, loaded))
            there = f"the model has {names}" if names else "the model has no adapters"
            raise ArgumentError(f"adapters names {name!r}; {there}")
        shares[loaded.index(name)] = weight
    return shares


def _check_room(
    biases: Mapping[int, float], breakers: Sequence[int], options: SamplingOptions
) -> None:
    """Raise ArgumentError for biases that do not fit; breakers of DRY take a part of the room."""
    left = MAX_OPTION_WORDS - len(breakers)
    most = left // WORDS_PER_BIAS
    if left < 0 or len(biases) <= most:
        return  # breakers that are too many by themselves are the engine's to refuse
    given = len(options.logit_bias or ())
    banned = f", and ignore_eos bans {len(biases) - given} more" if len(biases) > given else ""
    shared = f"; at most {most} are possible"
    if breakers:
        shared += (
            f" with these dry_sequence_breakers, which take the room of {MOST_BIASES - most} "
            f"({MOST_BIASES} are possible without them)"
        )
    raise ArgumentError(f"logit_bias has {given} tokens{banned}{shared}")


def checked_n(n: int | None, max_waiting: int) -> int | None:
    """Return how many answers are requested; ArgumentError where it makes no sense.

    `max_waiting`: how many requests the model lets wait. More answers than those, and the ones that
    run, could never begin together.
    """
    if n is None:
        return None
    n = integer("n", n, 1, None, "or None")
    most = SIDE_BY_SIDE + max_waiting
    if n > most:
        raise ArgumentError(
            f"n is {n}; it must be at most {most}: {SIDE_BY_SIDE} completions run in one batch, "
            f"and max_waiting={max_waiting} more may wait"
        )
    return n


def answers(
    begin: Callable[[TextOptions, int, _core.Generation | None], ReplyDecoder],
    options: TextOptions,
    n: int,
) -> list[ReplyDecoder]:
    """Begin several answers to one prompt, which differ in their `answer_index`.

    `begin` starts one, by its options and number, next to the first of them. Where one cannot
    begin, none does.
    """
    seed = int.from_bytes(os.urandom(8), "little") if options.seed is None else options.seed
    begun: list[ReplyDecoder] = []
    try:
        for number in range(n):
            first = begun[0].generation if begun else None
            index = options.answer_index + number
            begun.append(begin(replace(options, seed=seed, answer_index=index), number, first))
    except BaseException:
        for decoder in begun:
            decoder.cancel()
        raise
    return begun
