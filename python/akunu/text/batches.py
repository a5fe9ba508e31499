"""Many prompts in one call: side by side, and their completions in the order of the prompts."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.error_context import naming
from akunu.common.side_by_side import SIDE_BY_SIDE
from akunu.errors import ArgumentError, ContextOverflowError, QueueFullError

if TYPE_CHECKING:
    from akunu.grammar import FreeText, Grammar
    from akunu.text.completion import Completion
    from akunu.text.context_overflow import Shorten
    from akunu.text.reply_decoder import ReplyDecoder
    from akunu.text.reply_splitter import ReplySplitter

Given = TypeVar("Given")

# How often Python's main thread wakes to run signal handlers (Ctrl-C): src/python/wait_until.h.
_SIGNAL_INTERVAL_MS = 50


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a text begins with, and what reads it."""

    tokens: NDArray[np.uint32]
    splitter: ReplySplitter | None = None
    grammar: Grammar | None = None
    """What the text may be."""
    functions: Mapping[str, Callable[..., Any]] | None = None
    """The tools that are Python functions, by name."""
    thoughts: FreeText | None = None
    """What a form of the text begins behind."""
    holds_form: bool = False
    """Whether `grammar` holds the text to the form as well."""
    text: str | None = None  # of a prompt that is one
    holds_calls: bool = False  # whether what begins as a call is one
    shorten: Shorten | None = None
    """How it is shortened where the context is full; None: its oldest tokens go."""
    images: Sequence[tuple[int, _core.Image]] = ()
    """Each with the index of its first token."""


def refuse_for_several(stream: object, n: object) -> None:
    """Raise ArgumentError for what one prompt alone can have: pieces, and several answers."""
    if stream:
        raise ArgumentError(
            "stream is True; it must be False for several prompts: make a stream for each of them"
        )
    if n is not None:
        raise ArgumentError("n is for one prompt; of several, each has one answer")


def prepared_all(
    name: str, given: Sequence[Given], prepare: Callable[[Given], Prepared], context: int | None
) -> list[Prepared]:
    """Prepare each; an error says which one is bad, before any work.

    `context`: tokens that one may have; None: it is shortened.
    """
    found = []
    for index, each in enumerate(given):
        with naming(f"{name}[{index}]"):
            prepared = prepare(each)
            if context is not None and len(prepared.tokens) > context:
                raise ContextOverflowError(
                    f"the prompt has {len(prepared.tokens)} tokens, the context holds {context}; "
                    "make it shorter, or load the model with a longer context"
                )
        found.append(prepared)
    return found


def generate_all(
    name: str, prompts: Sequence[Given], begin: Callable[[Given], ReplyDecoder]
) -> list[Completion]:
    """Generate a text for each prompt; the first error cancels all that `begin` began."""
    waker = _core.Waker()
    poll = select.poll()
    poll.register(waker.fileno(), select.POLLIN)
    is_main = threading.current_thread() is threading.main_thread()
    under_way: dict[int, ReplyDecoder] = {}
    done: dict[int, Completion] = {}
    try:
        while len(done) < len(prompts):
            while len(under_way) < SIDE_BY_SIDE and len(done) + len(under_way) < len(prompts):
                index = len(done) + len(under_way)
                try:
                    with naming(f"{name}[{index}]"):
                        decoder = begin(prompts[index])
                except QueueFullError:
                    if not under_way:
                        raise
                    break  # it has its turn when one of these is over
                under_way[index] = decoder
                decoder.generation.wake(waker, index)
            poll.poll(_SIGNAL_INTERVAL_MS if is_main else None)
            for index in waker.take():
                if index not in under_way:
                    continue
                with naming(f"{name}[{index}]"):
                    _take_all(under_way[index])
                if under_way[index].reason is not None:
                    done[index] = under_way.pop(index).completion
    finally:
        for decoder in under_way.values():
            decoder.cancel()
    return [done[index] for index in range(len(prompts))]


def _take_all(decoder: ReplyDecoder) -> None:
    """Take what can be had without waiting."""
    while decoder.reason is None and (tokens := decoder.generation.next(timeout_ms=0)) != []:
        decoder.take(tokens)
