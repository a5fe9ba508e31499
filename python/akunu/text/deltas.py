"""The parts of a reply as they come: text, reasoning, calls of tools.

A stream of a chat gives them in the order in which the model writes them:

>>> import akunu
>>> from akunu.text.deltas import TextDelta
>>> with akunu.load() as model:
...     stream = model.chat([{"role": "user", "content": "Hello!"}], max_tokens=8, stream=True)
...     text = "".join(d.text for d in stream.deltas() if isinstance(d, TextDelta))
>>> text == stream.completion
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer; the pieces joined are the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of what the model thinks before it answers, without the markers around it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call begins: its name is known. Its arguments follow."""

    index: int
    """0 for the first call of a reply, 1 for the second, and so on."""
    id: str
    """Names the call in the conversation; no other call of the conversation has it."""
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """A piece of a call's arguments; the pieces joined are JSON, the text of an object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """A call is complete, and valid."""

    index: int


@dataclass(frozen=True, slots=True)
class ToolCallCut:
    """The text ended within a call, by `max_tokens` or the context: its arguments are incomplete.

    Nothing follows.
    """

    index: int


@dataclass(frozen=True, slots=True)
class ToolCallDropped:
    """What began as a call was not one: forget it. All that the model wrote follows as text.

    Where a stop string has ended the reply within a call, nothing follows.
    """

    index: int


Delta = (
    TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallArguments
    | ToolCallEnd
    | ToolCallCut
    | ToolCallDropped
)


def joined(deltas: Iterable[Delta]) -> list[Delta]:
    """Return the deltas with neighbouring pieces of the same part in one.

    >>> joined([TextDelta("Hel"), TextDelta("lo"), ReasoningDelta("?")])
    [TextDelta(text='Hello'), ReasoningDelta(text='?')]
    """
    parts: list[Delta] = []
    for delta in deltas:
        last = parts[-1] if parts else None
        if (
            (isinstance(delta, TextDelta) and isinstance(last, TextDelta))
            or (isinstance(delta, ReasoningDelta) and isinstance(last, ReasoningDelta))
            or (
                isinstance(delta, ToolCallArguments)
                and isinstance(last, ToolCallArguments)
                and delta.index == last.index
            )
        ):
            parts[-1] = replace(last, text=last.text + delta.text)
        else:
            parts.append(delta)
    return parts
