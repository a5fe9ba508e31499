"""A last message of the assistant that the reply continues (prefill)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from akunu.errors import ArgumentError
from akunu.templates.messages import checked
from akunu.tokenizers.token_matcher import TokenMatcher

if TYPE_CHECKING:
    from akunu.templates.chat_template import ChatTemplate
    from akunu.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Prefill:
    """What a reply begins with."""

    content: str
    reasoning: str

    @property
    def is_thinking(self) -> bool:
        """Whether the reply continues the reasoning."""
        return bool(self.reasoning) and not self.content


def taken_prefill(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[Mapping[str, Any]], Prefill]:
    """Return a conversation without its last message, and what that message begins.

    Raises ArgumentError where it is not one of the assistant with nothing but text, or the only
    one.

    >>> question = {"role": "user", "content": "2 + 2?"}
    >>> taken_prefill([question, {"role": "assistant", "content": "It is"}])[1]
    Prefill(content='It is', reasoning='')
    """
    if not isinstance(messages, (list, tuple)) or len(messages) < 2:
        raise ArgumentError("messages needs a message before the one that the reply continues")
    where = f"messages[{len(messages) - 1}]"
    (last,) = checked([messages[-1]], first=len(messages) - 1)
    if last["role"] not in ("assistant", "model"):
        raise ArgumentError(
            f"{where} is of {last['role']!r}; a reply continues a message of 'assistant' only"
        )
    if last.get("tool_calls"):
        raise ArgumentError(f"{where} has tool calls; a reply continues text alone")
    content = last["content"]
    if not isinstance(content, str):
        content = "".join(part.get("text", "") for part in content)
    return messages[:-1], Prefill(content, str(last.get("reasoning_content", "")))


def with_prefill(
    pieces: Sequence[str | int],
    prefill: Prefill,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    *,
    in_reasoning: bool,
) -> list[str | int]:
    """Return the pieces of a prompt with a prefill after them.

    `in_reasoning`: whether the prompt opens thoughts. Marks around thoughts become tokens; the text
    of the message stays text. Raises ArgumentError for reasoning where the template has none.
    """
    found = list(pieces)
    if prefill.reasoning:
        if not in_reasoning:
            switch = template.thinking_switch
            if not switch.can_be_switched and not switch.always_thinks:
                raise ArgumentError(
                    "messages: the last one has reasoning, and this model's chat template has none"
                )
            _add(found, _written(template.thinking_ends[0], tokenizer))
        _add(found, [prefill.reasoning])
        in_reasoning = True
    if prefill.content:
        if in_reasoning:
            _add(found, _written(template.thinking_ends[1], tokenizer))
        _add(found, [prefill.content])
    return found


def _written(text: str, tokenizer: Tokenizer) -> Sequence[str | int]:
    """Return the pieces of a text that the template writes."""
    tokens = tokenizer.control_tokens()
    return TokenMatcher(tokens).split(text) if tokens else [text]


def _add(pieces: list[str | int], more: Sequence[str | int]) -> None:
    """Add pieces; texts that meet become one, as tokens may reach over both."""
    for piece in more:
        last = pieces[-1] if pieces else 0
        if isinstance(piece, str) and isinstance(last, str):
            pieces[-1] = last + piece
        else:
            pieces.append(piece)
