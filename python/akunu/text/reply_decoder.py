"""From the tokens of a generation to pieces of text: the one place, for every kind of stream."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from akunu.errors import AkunuError
from akunu.text.completion import Completion, FinishReason, answered
from akunu.text.deltas import Delta, ReasoningDelta, TextDelta, joined
from akunu.text.stop_strings import NO_STOPS, StopFinder
from akunu.tools.calls import CallCollector

if TYPE_CHECKING:
    from akunu import _core
    from akunu.grammar.structure import Structure
    from akunu.text.logprobs import LogprobReader, TokenLogprob
    from akunu.text.reply_splitter import ReplySplitter
    from akunu.tokenizers.tokenizer import Tokenizer


class ReplyDecoder:
    """Takes what a generation brings, says what may be shown of it, and makes the completion.

    It never waits: a driver (TextStream, AsyncTextStream) gets the tokens and hands them to `take`
    until `reason` is set. One thread at a time may call `take`; any may call `cancel`.
    """

    def __init__(
        self,
        generation: _core.Generation,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        stop: Sequence[str] = (),
        splitter: ReplySplitter | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        structure: Structure | None = None,
        logprobs: LogprobReader | None = None,
        *,
        holds_calls: bool = False,
    ) -> None:
        """Decode what follows these tokens, up to the first of the strings.

        `splitter`: tells the parts of the text apart; without one, all of it is text. `functions`:
        the tools that are Python functions, by name. `structure`: the form of the text, and what
        makes an object of it. `logprobs`: reads those of the tokens. `holds_calls`: whether what
        begins as a call is one.
        """
        self.holds_calls = holds_calls
        self.generation = generation
        self.prompt = np.asarray(prompt, np.uint32)
        self.reason: FinishReason | None = None  # why it is over; None before that
        self._vocab_size = tokenizer.vocab_size
        before = [token for token in prompt[-1:] if token < self._vocab_size]
        kept = splitter.markers if splitter else ()
        self._decoder = tokenizer.stream(skip_special=True, keep=kept, prompt=before)
        self._splitter = splitter
        self._structure = structure
        self.pending: deque[Delta] = deque()  # for the driver, which takes them away
        self._has_stops = bool(stop)
        self._stops = StopFinder(stop) if stop else NO_STOPS
        if splitter is not None and stop:
            splitter.end_answers_at(self._stops)
        self._tokens: list[int] = []
        self._ends: list[int] = []  # for each token, the characters of text that it is part of
        self._length = 0  # characters of text so far, those held back included
        self._shown = 0  # characters before a stop string, or what may become one
        self._texts: list[str] = []
        self._n_echoed = 0  # characters of the prompt, before all others
        self._reasoning: list[str] = []
        self._functions = functions or {}
        self._calls: CallCollector | None = None  # before the first call begins
        self._n_reasoning = 0  # tokens, those of the markers included
        self._n_undecided = 0  # latest tokens that may be the beginning of a marker
        self._unanswered: list[int] = []  # places of tokens that are not part of the answer
        self._has_answer = False  # whether something of the answer has come
        self._logprobs = logprobs
        self._completion: Completion | None = None

    def taken(self, first: int) -> list[int]:
        """Return the tokens taken so far, from this place on."""
        return self._tokens[first:]

    def begin_with(self, text: str) -> None:
        """Have the text begin with this one, which nothing is looked for in."""
        if text:
            self._n_echoed = len(text)
            self._texts.append(text)
            self.pending.append(TextDelta(text))

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Those of the tokens whose text has been shown."""
        return tuple(self._tokens[: self._whole_tokens(self._shown)])

    @property
    def logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """Those of the tokens whose text has been shown; None where no one asked."""
        if self._logprobs is None:
            return None
        return self._logprobs.of(self._tokens[: self._whole_tokens(self._shown)])

    @property
    def answer_logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """Likewise, without tokens of the reasoning, and those that may yet be some."""
        known = self.logprobs
        if known is None or self._splitter is None:
            return known
        n_decided = len(self._tokens) - (self._n_undecided if self.reason is None else 0)
        return answered(known[:n_decided], self._unanswered)

    @property
    def prompt_logprobs(self) -> tuple[TokenLogprob | None, ...] | None:
        """Those of the prompt's tokens; None where no one asked."""
        return None if self._logprobs is None else self._logprobs.of_prompt()

    @property
    def n_tokens(self) -> int:
        """Number of tokens taken so far."""
        return len(self._tokens)

    @property
    def completion(self) -> Completion:
        """The whole text with the facts about it; AkunuError before it is over."""
        if self.reason is None:
            raise AkunuError("the text is not complete yet: read the whole stream, or close it")
        if self._completion is None:
            n_kept = len(self._tokens)
            if self.reason == "cancelled" or self._stops.found is not None:
                n_kept = self._whole_tokens(self._shown)
            reader, structure = self._logprobs, self._structure
            self._completion = Completion(
                "".join(self._texts),
                reasoning="".join(self._reasoning),
                tool_calls=self._calls.calls if self._calls else (),
                reader=structure.reader if structure else None,
                n_echoed=self._n_echoed,
                schema=structure.grammar.schema if structure else "",
                weakened=structure.grammar.weakened if structure else (),
                reasoning_tokens=self._n_reasoning,
                unanswered=self._unanswered,
                token_ids=self._tokens[:n_kept],
                finish_reason=self.reason,
                stop=self._stops.found,
                prompt_tokens=self.generation.prompt_tokens,
                completion_tokens=len(self._tokens),
                cached_tokens=self.generation.cached_tokens,
                prefix_end=self.generation.prefix_end,
                drafted_tokens=self.generation.drafted_tokens,
                accepted_tokens=self.generation.held_tokens,
                prompt_seconds=self.generation.prompt_seconds,
                completion_seconds=self.generation.completion_seconds(len(self._tokens)),
                logprobs=reader.of(self._tokens[:n_kept]) if reader else None,
                prompt_logprobs=reader.of_prompt() if reader else None,
            )
        return self._completion

    def take(self, tokens: Sequence[int] | None) -> str:
        """Return the text that may be shown now that these tokens have come; None: it was all.

        The text may be empty. Where it is the last, `reason` is set. `pending` gets all parts.
        """
        deltas: list[Delta] = []
        if tokens is None:
            deltas = self._finished()
        else:
            for token in tokens:  # one by one, so that those of the reasoning can be counted
                deltas += self._next(token)
                if self.reason is not None:
                    break
        if len(deltas) > 1 and {*map(type, deltas)} == {TextDelta}:
            deltas = [TextDelta("".join([each.text for each in deltas]))]  # type: ignore[union-attr]
        elif len(deltas) > 1:
            deltas = joined(deltas)
        texts = []
        for delta in deltas:
            if isinstance(delta, TextDelta):
                texts.append(delta.text)
            elif isinstance(delta, ReasoningDelta):
                self._reasoning.append(delta.text)
            else:
                if self._calls is None:
                    self._calls = CallCollector(self._functions)
                self._calls.add(delta)
        self._texts += texts
        has_calls = self._calls is not None and bool(self._calls.calls)
        if self.reason == "stop" and has_calls and self._stops.found is None:
            self.reason = "tool_calls"
        self.pending += deltas
        return "".join(texts)

    def _next(self, token: int) -> list[Delta]:
        """Return what may be shown now that this token has come."""
        # A model may have more rows than its vocabulary has tokens: those have no text.
        text = self._decoder.push(token) if token < self._vocab_size else ""
        self._length += len(text)
        self._tokens.append(token)
        self._ends.append(self._length + self._decoder.is_within_character)
        splitter = self._splitter
        if splitter is None:
            deltas = self._parts(text)
        else:
            was_in_reasoning = splitter.in_reasoning
            deltas = splitter.push(text)
            if was_in_reasoning or splitter.in_reasoning or not self._has_answer:
                self._count(splitter, text, deltas, was_in_reasoning=was_in_reasoning)
            else:
                self._n_undecided = 0 if deltas else self._n_undecided + 1
        if not self._has_stops:
            self._shown = self._length
        elif splitter is not None:
            self._shown = self._length - self._stops.n_kept
        if self._stops.found is not None:
            self.reason = "stop"
            self.generation.cut(self._whole_tokens(self._shown))
        elif splitter is not None and splitter.is_complete:
            self.reason = "stop"  # as many calls as it may have
            self.generation.cut(len(self._tokens))
        if splitter is not None and self.reason is not None and self.reason != "cancelled":
            deltas += splitter.finish()
        return deltas

    def _parts(self, text: str) -> list[Delta]:
        """Return the parts that a text has, and note how much of all is shown."""
        if self._splitter is not None:
            deltas = self._splitter.push(text)
        else:
            shown = self._stops.push(text) if self._has_stops else text
            deltas = [TextDelta(shown)] if shown else []
        self._shown = self._length - self._stops.n_kept if self._has_stops else self._length
        return deltas

    def _count(
        self, splitter: ReplySplitter, text: str, deltas: Sequence[Delta], *, was_in_reasoning: bool
    ) -> None:
        """Note whether the latest token is part of the reasoning, of the answer, or of neither."""
        for each in deltas:
            self._has_answer |= not isinstance(each, ReasoningDelta)
        n = len(self._tokens)
        if was_in_reasoning:
            self._n_reasoning += 1
            self._unanswered.append(n - 1)
        elif splitter.in_reasoning:  # this one, and those that began its opening
            self._n_reasoning += 1 + self._n_undecided
            self._unanswered += range(n - 1 - self._n_undecided, n)
        elif self._n_reasoning and not self._has_answer and text.isspace():
            self._unanswered.append(n - 1)  # between the reasoning and the answer
        self._n_undecided = 0 if deltas else self._n_undecided + 1

    def cancel(self) -> None:
        """End it here, unless it is over."""
        if self.reason is None:
            self.reason = "cancelled"
            self.generation.cancel()

    def _finished(self) -> list[Delta]:
        """Return the last of the text, now that no more tokens come."""
        if self.reason is not None:  # closed by another thread meanwhile
            return []
        text = self._decoder.finish()
        self._length += len(text)
        deltas = self._parts(text)
        if self._splitter is not None:
            deltas += self._splitter.finish(is_cut=self.generation.finish_reason == "length")
        elif self._has_stops and (last := self._stops.finish()):
            deltas.append(TextDelta(last))
        if self._has_stops:
            self._shown = self._length - self._stops.n_kept
        is_cut = self._stops.found is not None
        self.reason = "stop" if is_cut else cast(FinishReason, self.generation.finish_reason)
        return deltas

    def _whole_tokens(self, n_characters: int) -> int:
        """Return how many tokens have all of their text within the first characters."""
        return bisect_right(self._ends, n_characters)
