"""What a reply took, in a quiet line below it."""

from __future__ import annotations

from akunu.cli.wording import counted
from akunu.common.prefix_end import explained
from akunu.text.completion import Completion


def reply_summary(completion: Completion, context: int, *, verbose: bool = False) -> str:
    """Return tokens, speed and how much of the context is used; with `verbose`, in two lines.

    >>> from akunu.text.completion import Completion
    >>> reply = Completion("Hi", token_ids=[1, 2], finish_reason="stop", stop=None,
    ...                    prompt_tokens=10, completion_tokens=2, cached_tokens=0,
    ...                    prompt_seconds=0.1, completion_seconds=0.05)
    >>> print(reply_summary(reply, 256))
    2 tokens, 20.0 tok/s \N{MIDDLE DOT} context 12 of 256
    """
    used = f"context {tokens_used(completion, context)} of {context}"
    speed = _speed(completion.completion_tokens_per_second)
    parts = [counted(completion.completion_tokens, "token") + speed]
    if not verbose:
        return " \N{MIDDLE DOT} ".join([*parts, used])
    parts[0] += seconds_text(completion.completion_seconds)
    prefilled = completion.prompt_tokens - completion.cached_tokens
    prompt = (
        f"prompt {counted(completion.prompt_tokens, 'token')}: {completion.cached_tokens} reused"
        f"{_why(completion)}, {prefilled} read{seconds_text(completion.prompt_seconds)}"
        f"{_speed(completion.prompt_tokens_per_second)}"
    )
    ended = f"ended by {ended_by(completion, cancelled_by='the loop guard')}"
    return f"{prompt}\nreply " + " \N{MIDDLE DOT} ".join([*parts, ended, used])


def tokens_used(completion: Completion, context: int) -> int:
    """Return how many positions of the context a conversation takes after this reply.

    If the limit ended the reply, its last token takes no position: nothing was computed after it.
    """
    return min(completion.prompt_tokens + completion.completion_tokens, context)


def seconds_text(seconds: float) -> str:
    """Return how long something took, "" where that was not measured."""
    return f" in {seconds:.2f} s" if seconds > 0 else ""


def ended_by(completion: Completion, *, cancelled_by: str) -> str:
    """Return what ended a reply, for people; `cancelled_by` is what may have cancelled it."""
    return {
        "stop": "the model",
        "length": "the limit of tokens",
        "cancelled": cancelled_by,
    }[completion.finish_reason]


def _why(completion: Completion) -> str:
    why = explained(completion.prefix_end)
    return f" ({why})" if why else ""


def _speed(tokens_per_second: float) -> str:
    return f", {tokens_per_second:.1f} tok/s" if tokens_per_second > 0 else ""
