"""What `tools`, `tool_choice` and `parallel_tool_calls` mean for one chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from akunu.errors import ArgumentError, UnsupportedModelError
from akunu.templates.messages import checked
from akunu.tools.definitions import checked_tools
from akunu.tools.families import HERMES
from akunu.tools.notation import Family
from akunu.tools.parser import NotationParser
from akunu.tools.template import ToolTemplate
from akunu.tools.tools_in_messages import messages_with_tools

CHOICES: Final = ("auto", "none", "required")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTools:
    """How a chat has tools."""

    messages: Sequence[Mapping[str, Any]]
    """The conversation as the template gets it."""
    definitions: Sequence[Mapping[str, Any]] | None
    """The tools as the template gets them; None: none."""
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """The tools that are Python functions."""
    family: Family | None = None
    """How the reply writes calls."""
    wanted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The schemas of the tools that may be called, by name."""
    most: int | None = None
    """Calls that a reply may have; None: any number."""
    must_call: bool = False

    @property
    def parser(self) -> NotationParser | None:
        """What reads the calls of one reply, made anew each time; None: it may have none."""
        if self.family is None:
            return None
        return NotationParser(self.family.ways, self.wanted, most=self.most)


NO_TOOLS: Final = ChatTools(messages=(), definitions=None)


def chat_tools(
    template: ToolTemplate,
    messages: Sequence[Mapping[str, Any]],
    tools: object,
    choice: object,
    parallel: object,
) -> ChatTools:
    """Check a chat's arguments about tools, and return how they are used.

    Raises ArgumentError for values that make no sense, and UnsupportedModelError if a call is
    required and the model's notation is not known.
    """
    if not isinstance(parallel, bool):
        raise ArgumentError(f"parallel_tool_calls is {parallel!r}; it must be True or False")
    given = checked_tools(tools if tools is not None else ())
    schemas = given.schemas
    if choice is None:
        choice = "auto"
    if isinstance(choice, Mapping):  # as OpenAI names a function
        function = choice.get("function")
        choice = function.get("name") if isinstance(function, Mapping) else choice
    if not isinstance(choice, str) or (choice not in CHOICES and choice not in schemas):
        known = ", ".join(map(repr, (*CHOICES, *schemas)))
        raise ArgumentError(f"tool_choice is {choice!r}; it must be one of {known}")
    if not given.definitions:
        if choice not in ("auto", "none"):
            raise ArgumentError(f"tool_choice is {choice!r}, but there are no tools")
        return ChatTools(messages=messages, definitions=None, functions={})
    knows = template.knows_tools
    definitions = None if choice == "none" else given.definitions
    if not knows:
        messages = messages_with_tools(checked(messages), definitions or ())
    if choice == "none":
        return ChatTools(messages=messages, definitions=None, functions={})
    recognised = template.tool_notation if knows else None
    family = recognised.family if recognised else None if knows else HERMES
    wanted = schemas if choice in CHOICES else {choice: schemas[choice]}
    must_call = choice != "auto"
    if family is None and must_call:
        raise UnsupportedModelError(
            f"tool_choice is {choice!r}, but the notation of tool calls in this model's "
            "chat template is not in akunu.tools.families"
        )
    return ChatTools(
        messages=messages,
        definitions=definitions if knows else None,
        functions=given.functions,
        family=family,
        wanted=wanted,
        most=None if parallel else 1,
        must_call=must_call,
    )
