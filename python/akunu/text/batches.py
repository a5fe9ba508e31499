"""Many prompts in one call: side by side, and their completions in the order of the prompts."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from akunu import _core
from akunu.common.error_context import naming
from akunu.errors import ContextOverflowError, QueueFullError
from akunu.options.engine_limits import SIDE_BY_SIDE

if TYPE_CHECKING:
    from akunu.text.completion import Completion
    from akunu.text.encode import Prompt
    from akunu.text.reply_decoder import ReplyDecoder

Given = TypeVar("Given")

MOST_BEGUN = SIDE_BY_SIDE + 16
"""Most texts of a call under way: more than run at once, so that the next one is always ready."""
# How often Python's main thread wakes to run signal handlers (Ctrl-C): src/python/wait_until.h.
_SIGNAL_INTERVAL_MS = 50


def prompts_of(
    name: str, given: Sequence[Given], prompt_of: Callable[[Given], Prompt], context: int | None
) -> list[Prompt]:
    """Return the prompt of each; an error says which one is bad, before any work.

    `context`: tokens that one may have; None: it is shortened.
    """
    found = []
    for index, each in enumerate(given):
        with naming(f"{name}[{index}]"):
            prompt = prompt_of(each)
            if context is not None and len(prompt.tokens) > context:
                raise ContextOverflowError(
                    f"the prompt has {len(prompt.tokens)} tokens, the context holds {context}; "
                    "make it shorter, or load the model with a longer context"
                )
        found.append(prompt)
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
            while len(under_way) < MOST_BEGUN and len(done) + len(under_way) < len(prompts):
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
