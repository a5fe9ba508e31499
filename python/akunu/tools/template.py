"""What tools ask of a chat template; `akunu.templates.chat_template.ChatTemplate` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from akunu.tools.notation import Family


@dataclass(frozen=True, slots=True)
class Recognised:
    """How the models of a template write calls."""

    family: Family
    is_checked: bool
    """Whether a call that the template rendered was read back."""


class CallHabits(Protocol):
    """In what form a template wants calls."""

    @property
    def leaves_calls_out(self) -> bool:
        """Whether it shows no calls of messages."""


class ToolTemplate(Protocol):
    """A chat template, as far as tools are concerned."""

    source: str

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """Return the prompt as text."""

    @property
    def habits(self) -> CallHabits:
        """In what form the template wants calls."""

    @property
    def tool_notation(self) -> Recognised | None:
        """How the model writes calls of tools; None where that is not known."""

    @property
    def knows_tools(self) -> bool:
        """Whether the template tells the model which tools there are."""
