"""What a caller asks of a model: a text that continues from a prompt, or a reply to messages.

The first step of the pipeline: Request, Rendered (render.py), Prompt (encode.py), Submitted
(submit.py), pieces (deltas.py, made by reply_decoder.py), Completion (completion.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from akunu.common.checks import flag, integer, priority_of
from akunu.errors import ArgumentError
from akunu.grammar import Grammar
from akunu.options.text_options import SamplingOptions, TextOptions, ToolsArgument, sampling_options

_MOST_TOKENS = 2**31 - 1
_NO_OPTIONS = TextOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of one call, checked. Raises ArgumentError for bad ones."""

    prompt: Any = None
    """A text or token ids, of a request without messages."""
    messages: Sequence[Mapping[str, Any]] | None = None
    tools: ToolsArgument = None
    tool_choice: str | Mapping[str, Any] | None = "auto"
    parallel_tool_calls: bool = True
    thinking: bool | str | None = None
    template_variables: Mapping[str, Any] | None = None
    thinking_budget: int | None = None
    continue_final_message: bool = False
    options: TextOptions = _NO_OPTIONS
    priority: int = 0

    def __post_init__(self) -> None:
        """Raise ArgumentError for values of the wrong type."""
        if self.priority or type(self.priority) is not int:
            object.__setattr__(self, "priority", priority_of(self.priority))
        if self.messages is None:
            return
        if self.thinking is not None and not isinstance(self.thinking, (bool, str)):
            raise ArgumentError(
                f"thinking is {self.thinking!r}; it must be True, False, or a level such as "
                "'low', or None"
            )
        if self.continue_final_message is not False:
            self._check_continued()
        variables = self.template_variables
        if variables is not None and not isinstance(variables, Mapping):
            raise ArgumentError(
                f"template_variables must be a dict, got {type(variables).__name__}"
            )
        if self.thinking_budget is not None:
            integer("thinking_budget", self.thinking_budget, 0, _MOST_TOKENS, "or None")
            if self.thinking is False:
                raise ArgumentError("thinking_budget is set, but thinking is False")

    def _check_continued(self) -> None:
        """Refuse what a reply that continues a message cannot have."""
        flag("continue_final_message", self.continue_final_message)
        if not self.continue_final_message:  # NumPy's False
            return
        if self.thinking_budget is not None:
            raise ArgumentError(
                "thinking_budget does not work in a reply that continues a message: it counts "
                "thoughts from their beginning"
            )
        if self.options.form is not None:
            raise ArgumentError(
                "structured output does not work in a reply that continues a message: the form is "
                "that of a whole reply"
            )

    @property
    def grammar(self) -> Grammar | None:
        """What the answer may be, where the options say it and are compiled."""
        structure = self.options.structure
        return None if structure is None else structure.grammar

    def compiled(self) -> Request:
        """Return the request with the form of its text compiled, which may take long."""
        if self.options.form is None:
            return self
        return replace(self, options=self.options.compiled())


_PLAIN_KINDS = {int, float, bool, str, type(None)}
_MOST_REMEMBERED = 100  # characters of words
_OWN = frozenset(Request.__dataclass_fields__) - {"options"}


def text_request(
    prompt: object, options: SamplingOptions | None, sampling: Mapping[str, Any], priority: object
) -> Request | list[Request]:
    """Return the request of a prompt, or those of several."""
    chosen = sampling_options(options, sampling)
    each: Any = {"options": chosen, "priority": priority}
    if is_batch(prompt):
        return [Request(prompt=one, **each) for one in prompt]  # type: ignore[attr-defined]
    return Request(prompt=prompt, **each)


def chat_request(
    messages: Any,
    options: SamplingOptions | None,
    sampling: Mapping[str, Any],
    **arguments: Any,
) -> Request | list[Request]:
    """Return the request of a conversation, or those of several."""
    arguments["options"] = sampling_options(options, sampling)
    if messages is None:
        raise ArgumentError("messages must be a list of dicts, got NoneType")
    if is_batch(messages):
        return [Request(messages=each, **arguments) for each in messages]
    return Request(messages=messages, **arguments)


def request_of(arguments: Mapping[str, Any]) -> Request:
    """Return the request of the keyword arguments of `generate` or `chat`, which are known to be.

    Raises ArgumentError for values that make no sense.
    """
    own = {name: value for name, value in arguments.items() if name in _OWN}
    sampling = {name: value for name, value in arguments.items() if name not in _OWN}
    return Request(**own, options=_options_of(sampling))


def _options_of(sampling: Mapping[str, Any]) -> TextOptions:
    """Return checked options; those of numbers and words, as most requests have, are remembered."""
    kinds = tuple(map(type, sampling.values()))
    words = [value for value in sampling.values() if type(value) is str]
    if set(kinds) <= _PLAIN_KINDS and len("".join(words)) <= _MOST_REMEMBERED:
        return _remembered_options(tuple(sampling.items()), kinds)
    return sampling_options(None, sampling)


@lru_cache(maxsize=256)
def _remembered_options(sampling: tuple[tuple[str, Any], ...], kinds: object) -> TextOptions:
    """`kinds`: the types of the values: 1, 1.0 and True are equal and not the same."""
    return sampling_options(None, dict(sampling))


def is_batch(given: object) -> bool:
    """Whether these are several prompts or conversations: a sequence of sequences or texts."""
    if isinstance(given, (str, bytes, bytearray, memoryview)) or not isinstance(given, Sequence):
        return False
    first = given[0] if len(given) else None
    return isinstance(first, (str, Sequence, np.ndarray)) and not isinstance(first, Mapping)


def refuse_for_several(stream: object, n: object) -> None:
    """Raise ArgumentError for what one prompt alone can have: pieces, and several answers."""
    if stream:
        raise ArgumentError(
            "stream is True; it must be False for several prompts: make a stream for each of them"
        )
    if n is not None:
        raise ArgumentError("n works with one prompt; each of several prompts has one completion")
