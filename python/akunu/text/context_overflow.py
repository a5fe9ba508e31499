"""What happens where a text comes to the end of the context: it stops, fails, or shifts.

A text that shifts is written in parts. Where the context is full, the oldest of it is dropped, and
what is kept is the prompt of the next part. The engine moves what it has of it to its new positions
(docs/decisions/attention-and-cache.md); where it cannot, or shall not, it reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu.errors import ContextOverflowError

if TYPE_CHECKING:
    from akunu import _core
    from akunu.common.prefix_end import PrefixEnd
    from akunu.options.text_options import SamplingOptions
    from akunu.tokenizers.tokenizer import Tokenizer

ERROR: Final = "error"
SHIFT: Final = "shift"
GOES_ON: Final = (SHIFT, "reread")

Shorten = Callable[[int, Sequence[int]], NDArray[np.uint32]]
"""`shorten(most, reply)`: a prompt of at most `most` tokens, the reply's at its end."""

Start = Callable[
    ["NDArray[np.uint32]", "SamplingOptions", "_core.Generation | None"], "_core.Generation"
]
"""`start(tokens, options, before)`: a part, and the one that it continues from."""

# A shift frees a quarter of a full context. It moves the kept tokens or reads them again: a few
# large shifts are cheaper than many small ones.
_KEPT: Final = 0.75
LONG: Final = 1 << 20
"""Characters whose tokens are not found in a moment."""
# Another part draws other numbers than the one before: its seed is this far away.
_BETWEEN_SEEDS: Final = 0x9E3779B97F4A7C15


def kept_tokens(context: int) -> int:
    """Return how many tokens are kept, at most, where this many no longer fit."""
    return max(1, int(context * _KEPT))


def newest_tokens(prompt: Sequence[int], bos_id: int | None) -> Shorten:
    """Return what keeps the newest tokens of a text, and the BOS token in front of them."""
    head = list(prompt[:1]) if bos_id is not None and list(prompt[:1]) == [bos_id] else []

    def shorten(most: int, reply: Sequence[int]) -> NDArray[np.uint32]:
        rest = [*prompt[len(head) :], *reply]
        n = max(0, most - len(head))
        return np.array([*head, *(rest[-n:] if n else [])], np.uint32)

    return shorten


def newest_turns(
    messages: Sequence[Any], render: Callable[[Sequence[Any]], Sequence[int]]
) -> Shorten:
    """Return what keeps the system prompt and the newest turns of a conversation.

    A turn is a user's message with all that follows it, the results of tools among them; the
    latest one always stays.
    """
    n_system = 0
    while n_system < len(messages) and messages[n_system].get("role") in ("system", "developer"):
        n_system += 1
    begins = [
        i for i in range(n_system, len(messages)) if messages[i].get("role") == "user"
    ]  # before the first of them there may be an assistant's message, which goes first

    def without(n_turns: int) -> Sequence[int]:
        first = begins[n_turns] if n_turns else n_system
        return render([*messages[:n_system], *messages[first:]])

    return without_oldest(max(0, len(begins) - 1), without)


def without_oldest(n_turns: int, prompt_without: Callable[[int], Sequence[int]]) -> Shorten:
    """Return what drops the oldest turns of a conversation: as few as must go, at most `n_turns`.

    `prompt_without(n)` is its prompt without the oldest n. If a reply leaves no room for the rest
    of the prompt, the beginning of the reply is dropped.
    """
    prompts: dict[int, Sequence[int]] = {}

    def without(n: int) -> Sequence[int]:
        if n not in prompts:
            prompts[n] = prompt_without(n)
        return prompts[n]

    def shorten(most: int, reply: Sequence[int]) -> NDArray[np.uint32]:
        # Fewer turns have fewer tokens: the least number to drop is between these two.
        least, enough = 0, n_turns
        while least < enough:
            middle = (least + enough) // 2
            if len(without(middle)) + len(reply) <= most:
                enough = middle
            else:
                least = middle + 1
        prompt = without(least)
        room = most - len(prompt)
        if room < min(len(reply), most // 4):
            raise ContextOverflowError(
                f"the system prompt and the latest turn have {len(prompt)} tokens; with "
                f"context_overflow they may have {most - most // 4}"
            )
        return np.array([*prompt, *(reply[-room:] if room else [])], np.uint32)

    return shorten


def room(overflow: str, context: int) -> int | None:
    """Return the tokens that a prompt may have; None: a longer one is shortened."""
    return None if overflow in GOES_ON else context


def refuse_too_long(tokenizer: Tokenizer, pieces: Sequence[str | int], context: int | None) -> None:
    """Raise ContextOverflowError where a text of megabytes cannot fit, before its tokens are known.

    To find them takes most of a second for each. `context`: what it holds; None: it continues.
    """
    if context is None:
        return
    n_characters = 0
    for piece in pieces:
        if isinstance(piece, str):
            n_characters += len(piece)
    if n_characters < LONG:
        return
    n_tokens = tokenizer.fewest_tokens(pieces)
    if n_tokens > context:
        raise ContextOverflowError(
            f"the prompt has at least {n_tokens} tokens, the context holds {context}; make it "
            "shorter, or load the model with a longer context"
        )


def fitted(
    tokens: NDArray[np.uint32], context: int, options: SamplingOptions, shorten: Shorten
) -> NDArray[np.uint32]:
    """Return a prompt, shortened where it must be and may.

    Raises ContextOverflowError where overflow is an error, and the tokens to come do not fit.
    """
    wanted = options.max_tokens
    if options.context_overflow == ERROR and wanted is not None:
        n = len(tokens) + wanted
        if n > context + 1:  # the last token is chosen and never read
            raise ContextOverflowError(
                f"the prompt has {len(tokens)} tokens and max_tokens is {wanted}, the context "
                f"holds {context}"
            )
    if options.context_overflow not in GOES_ON or len(tokens) <= context:
        return tokens
    return shorten(kept_tokens(context), [])


class GoingOn:
    """A generation that continues, or fails, where the context is full.

    Otherwise it is what `_core.Generation` is to who takes its tokens.
    """

    def __init__(
        self,
        start: Start,
        tokens: NDArray[np.uint32],
        options: SamplingOptions,
        seed: int,
        context: int,
        shorten: Shorten,
    ) -> None:
        """Begin the first part; `start` begins one, with the seed that its options have."""
        self._start = start
        self._options = options
        self._seed = seed if options.seed is None else options.seed
        self._context = context
        self._shorten = shorten
        self._reply: list[int] = []
        self._parts = [start(tokens, replace(options, seed=self._seed), None)]
        self._n_before = 0  # tokens of the parts before the last
        self._has_ended = False  # cancelled or cut, or there is nothing more to drop
        self._wake: tuple[_core.Waker | None, int] | None = None

    @property
    def first(self) -> _core.Generation:
        """The part that the prompt was read for."""
        return self._parts[0]

    def next(self, timeout_ms: int | None = None) -> list[int] | None:
        """Return new tokens; [] when the time is up, None when it is over."""
        while True:
            tokens = self._parts[-1].next(timeout_ms)
            if tokens:
                self._reply += tokens
            is_full = self._is_full()
            if is_full and self._options.context_overflow == ERROR:
                if tokens is None:
                    raise ContextOverflowError(
                        f"the context of {self._context} tokens is full after "
                        f"{len(self._reply)} tokens of the reply"
                    )
                return tokens
            if is_full:
                self._go_on()
            if tokens is not None or not is_full:
                return tokens
            if timeout_ms is not None:
                return []

    def _is_full(self) -> bool:
        """Whether the context ended it, and not its caller or the model."""
        most = self._options.max_tokens
        return (
            not self._has_ended
            and self._parts[-1].finish_reason == "length"
            and (most is None or len(self._reply) < most)
        )

    def _go_on(self) -> None:
        """Begin the next part; where nothing can be dropped, this one was the last."""
        options = self._options
        n_done = len(self._reply)
        try:
            tokens = self._shorten(kept_tokens(self._context), self._reply)
        except ContextOverflowError:
            self._has_ended = True
            return
        seed = (self._seed + len(self._parts) * _BETWEEN_SEEDS) % 2**64
        part = self._start(
            tokens,
            replace(
                options,
                seed=seed,
                max_tokens=None if options.max_tokens is None else options.max_tokens - n_done,
                min_tokens=max(0, options.min_tokens - n_done),
                prompt_logprobs=None,
            ),
            self._parts[-1],
        )
        if self._wake is not None:
            self._parts[-1].wake(None)
            part.wake(*self._wake)
        self._n_before = n_done
        self._parts.append(part)
        if self._has_ended:  # by another thread meanwhile
            part.cancel()

    def wake(self, waker: _core.Waker | None, id: int = 0) -> None:
        """Have a waker hear of news; None: no more."""
        self._wake = None if waker is None else (waker, id)
        self._parts[-1].wake(waker, id)

    def cancel(self) -> None:
        """End it."""
        self._has_ended = True
        self._parts[-1].cancel()

    def cut(self, n_tokens: int) -> None:
        """End it after this many tokens."""
        self._has_ended = True
        self._parts[-1].cut(max(0, n_tokens - self._n_before))

    def logprobs(
        self, first: int, n: int
    ) -> tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.float32]]:
        """Return those of tokens from `first` on."""
        found = []
        for part in self._parts:
            is_last = part is self._parts[-1]
            most = n if is_last else min(n, part.completion_tokens - first)
            if most > 0 or is_last:
                found.append(part.logprobs(max(0, first), max(0, most)))
                n -= max(0, most)
            first = max(0, first - part.completion_tokens)
        own, tokens, likely = zip(*found, strict=True)
        return np.concatenate(own), np.concatenate(tokens), np.concatenate(likely)

    def prompt_logprobs(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.float32]]:
        """Return those of the prompt."""
        return self.first.prompt_logprobs()

    def completion_seconds(self, n_tokens: int) -> float:
        """Return the seconds from the first token to this one, those of reading again included."""
        seconds = 0.0
        for part in self._parts:
            if n_tokens <= 0:
                break
            n = min(n_tokens, part.completion_tokens)
            seconds += part.completion_seconds(n)
            seconds += part.prompt_seconds if part is not self.first else 0.0
            n_tokens -= n
        return seconds

    @property
    def finish_reason(self) -> str:
        """Why it ended; "" before that."""
        if self._options.context_overflow in GOES_ON and self._is_full():
            return ""
        return self._parts[-1].finish_reason

    @property
    def prompt_tokens(self) -> int:
        """The value of the first part."""
        return self.first.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """The values of all parts."""
        return self._n_before + self._parts[-1].completion_tokens

    @property
    def prompt_tokens_done(self) -> int:
        """The value of the first part."""
        return self.first.prompt_tokens_done

    @property
    def cached_tokens(self) -> int:
        """The value of the first part."""
        return self.first.cached_tokens

    @property
    def prefix_end(self) -> PrefixEnd:
        """The value of the first part."""
        return self.first.prefix_end

    @property
    def moved_tokens(self) -> int:
        """The values of all parts."""
        return sum(part.moved_tokens for part in self._parts)

    @property
    def drafted_tokens(self) -> int:
        """The values of all parts."""
        return sum(part.drafted_tokens for part in self._parts)

    @property
    def held_tokens(self) -> int:
        """The values of all parts."""
        return sum(part.held_tokens for part in self._parts)

    @property
    def prompt_seconds(self) -> float:
        """The value of the first part."""
        return self.first.prompt_seconds
