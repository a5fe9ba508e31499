"""A call of a tool, as a model asked for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from akunu.errors import AkunuError
from akunu.text.deltas import (
    Delta,
    ToolCallArguments,
    ToolCallCut,
    ToolCallDropped,
    ToolCallEnd,
    ToolCallStart,
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants called. Nothing is called by akunu itself.

    >>> call = ToolCall("call_1", "add", '{"a": 1, "b": 2}')
    >>> call.arguments["a"], call.message["function"]["name"]
    (1, 'add')
    """

    id: str
    """Unique in the conversation; the message with the result names it as `tool_call_id`."""
    name: str
    """The name of one of the tools."""
    arguments_text: str
    """The arguments as JSON, in the model's own spelling."""
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    """The Python function, where the tool was passed as one: `call.function(**call.arguments)`."""

    is_cut: bool = False
    """Whether `max_tokens` or the context ended the reply within it: do not call anything then.

    `arguments_text` is the part of the arguments that was generated, not complete JSON.
    """

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by their names; AkunuError where the call is cut."""
        if self.is_cut:
            raise AkunuError(
                f"the call of {self.name} is cut: the reply ended within it (finish_reason "
                '"length"); `arguments_text` has the part that was generated. Allow more '
                "max_tokens, or a longer context"
            )
        found: dict[str, Any] = json.loads(self.arguments_text)
        return found

    @property
    def message(self) -> Mapping[str, Any]:
        """The call as a message has it: an element of `tool_calls`."""
        function = {"name": self.name, "arguments": self.arguments_text}
        return {"type": "function", "id": self.id, "function": function}

    def __reduce__(self) -> tuple[type[ToolCall], tuple[str, str, str, None, bool]]:
        """Copy and pickle the call without the function."""
        return type(self), (self.id, self.name, self.arguments_text, None, self.is_cut)


class CallCollector:
    """Makes calls of deltas.

    >>> collector = CallCollector({})
    >>> for delta in (ToolCallStart(0, "1", "f"), ToolCallArguments(0, "{}"), ToolCallEnd(0)):
    ...     collector.add(delta)
    >>> collector.calls
    [ToolCall(id='1', name='f', arguments_text='{}', is_cut=False)]
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        """`functions`: the tools that are Python functions, by name."""
        self._functions = functions
        self._begun: ToolCallStart | None = None
        self._pieces: list[str] = []
        self.calls: list[ToolCall] = []

    def add(self, delta: Delta) -> None:
        """Take the next delta of a reply."""
        if isinstance(delta, ToolCallStart):
            self._begun, self._pieces = delta, []
        elif isinstance(delta, ToolCallArguments):
            self._pieces.append(delta.text)
        elif isinstance(delta, ToolCallDropped):
            self._begun = None
        elif isinstance(delta, (ToolCallEnd, ToolCallCut)) and self._begun is not None:
            name = self._begun.name
            arguments = "".join(self._pieces)
            function = self._functions.get(name)
            is_cut = isinstance(delta, ToolCallCut)
            self.calls.append(ToolCall(self._begun.id, name, arguments, function, is_cut))
            self._begun = None


def calls_of(deltas: Iterable[Delta]) -> list[ToolCall]:
    """Return the calls among the deltas of a reply."""
    collector = CallCollector({})
    for delta in deltas:
        collector.add(delta)
    return collector.calls
