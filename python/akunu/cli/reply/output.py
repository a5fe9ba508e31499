"""Where a reply goes: as it is into a file or pipe, rendered to a terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from akunu.cli.terminal import console
from akunu.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """How a person wants replies shown at a terminal."""

    markdown: bool = True
    """Whether Markdown is rendered."""
    show_thinking: bool = False
    """Whether thoughts stay, instead of being folded into a line; a file or pipe gets them, too."""
    verbose: bool = False
    """Whether more than a line says what a reply took."""
    loop_guard: bool = True
    """Whether a reply that goes round in circles is noticed: then a hint is shown."""
    stops_loops: bool = False
    """Whether it is stopped as well: where no one can press Ctrl-C."""


SWITCHES: Final = ("markdown", "show_thinking", "verbose", "loop_guard")
"""What of ReplyOptions a person switches during a chat."""


def switched(options: ReplyOptions, name: str, text: str) -> ReplyOptions:
    """Return options of which one is "on" or "off", as a person wrote it; raises ArgumentError.

    >>> switched(ReplyOptions(), "markdown", "off").markdown
    False
    >>> switched(ReplyOptions(), "verbose", "loud")
    Traceback (most recent call last):
    ...
    akunu.errors.ArgumentError: verbose is 'loud'; it must be on, off or default
    """
    values = {"on": True, "off": False, "default": getattr(ReplyOptions(), name)}
    if text.lower() not in values:
        raise ArgumentError(f"{name} is {text!r}; it must be on, off or default")
    changes: dict[str, bool] = {name: values[text.lower()]}
    return replace(options, **changes)


def switch(options: ReplyOptions, name: str) -> str:
    """Return whether an option is "on" or "off"."""
    return "on" if getattr(options, name) else "off"


class ReplyOutput(Protocol):
    """Takes the parts of a reply as they come."""

    def push(self, text: str, *, is_thought: bool, tokens: int, seconds: float) -> None:
        """Take a part; `tokens` and `seconds` are those of the reply so far."""

    def finish(self) -> None:
        """Show what was held back; the cursor stays at the end."""

    def end_line(self) -> None:
        """Write a newline where the reply has not ended with one."""

    def hint(self, text: str) -> None:
        """Say something while the reply continues."""

    def break_off(self) -> None:
        """An error ends the reply: finish, so that its message begins on a new line."""


OPEN: Final = "<think>\n"
CLOSE: Final = "\n</think>\n\n"
"""Around thoughts that are shown as text, whatever the model's own marks are."""


class PlainOutput:
    """Writes the model's text, and nothing else."""

    def __init__(self, *, show_thinking: bool = False) -> None:
        """Write to stdout; `show_thinking`: thoughts, too, between tags."""
        self._last = ""
        self._shows_thinking = show_thinking
        self._is_thinking = False

    def push(self, text: str, *, is_thought: bool, tokens: int, seconds: float) -> None:
        """Write a part."""
        if is_thought and not self._shows_thinking:
            return
        if is_thought != self._is_thinking:
            text = (OPEN if is_thought else CLOSE) + text
        self._is_thinking = is_thought
        console.write(text)
        self._last = text[-1:] or self._last

    def finish(self) -> None:
        """Nothing was held back."""

    def end_line(self) -> None:
        """End the last line."""
        if self._last != "\n":
            console.write("\n")

    def hint(self, text: str) -> None:
        """Write it to stderr."""
        console.say(f"akunu: {text}")

    def break_off(self) -> None:
        """The message goes elsewhere."""
