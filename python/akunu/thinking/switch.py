"""How a model's thinking is switched, and how much of it: found by rendering its chat template.

Templates read the switch under several names, and some read it in the system message. A name counts
if it is in the template and its two values give different prompts.

>>> from akunu.templates.chat_template import ChatTemplate
>>> template = ChatTemplate("{% if enable_thinking %}<think>{% endif %}")
>>> template.thinking_switch.setting(True)
Setting(variables={'enable_thinking': True}, system='')
>>> template.thinking_switch.setting("low")
Traceback (most recent call last):
...
akunu.errors.ArgumentError: thinking is 'low'; this model's chat template knows True and False
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from akunu.common.checks import in_words
from akunu.errors import ArgumentError
from akunu.thinking.markers import FAMILIES, markers_of

Render = Callable[[list[dict[str, Any]], Mapping[str, Any]], str | None]

LEVELS: Final = ("minimal", "low", "medium", "high", "max")

_TEXT: Final = "akunu text"
_QUESTION: Final = [{"role": "user", "content": _TEXT}]


@dataclass(frozen=True, slots=True)
class Setting:
    """What makes a prompt think, or not."""

    variables: Mapping[str, Any] = field(default_factory=dict)
    """For the template."""
    system: str = ""
    """For the system message."""


@dataclass(frozen=True, slots=True)
class _Switch:
    """A way to say on and off; `quoted`: what the template must have between quotes for it."""

    on: Setting
    off: Setting
    needs: tuple[str, ...]


def _variable(name: str, on: object, off: object) -> _Switch:
    words = [rf"\b{name}\b"]
    if isinstance(off, str):  # where any value is just written down, it is not a switch
        words.append(rf"""["']{off}["']""")
    return _Switch(Setting({name: on}), Setting({name: off}), tuple(words))


def _in_system(on: str, off: str) -> _Switch:
    return _Switch(Setting(system=on), Setting(system=off), (re.escape(off),))


_SWITCHES: Final = (
    _variable("enable_thinking", True, False),  # Qwen3 and most after it
    _variable("thinking", True, False),  # DeepSeek V3.1, Granite, Kimi K3
    _variable("reasoning", True, False),  # Command A
    _variable("thinking_mode", "enabled", "disabled"),  # MiniMax M3
    _variable("thinking_budget", -1, 0),  # Seed-OSS
    _variable("reasoning_effort", "high", "no_think"),  # Hy3
    _variable("reasoning_effort", "high", "none"),
    _variable("reasoning_effort", "high", "minimal"),  # Solar Open
    _in_system("/think", "/no_think"),  # Nemotron Nano v2
)
_EFFORTS: Final = ("reasoning_effort", "thinking_effort", "reasoning_strength")


class ThinkingSwitch:
    """What one template knows about thinking; asked for as it is needed, and remembered."""

    def __init__(self, source: str, render: Render) -> None:
        """`render` renders messages and variables, and returns None where the template raises."""
        self._source = source
        self._render = render

    def setting(self, thinking: bool | str) -> Setting:
        """Return what makes a prompt think (True), not think (False), or so much ("low").

        Raises ArgumentError, which says what the template knows, for what it does not.
        """
        if isinstance(thinking, str):
            if thinking in self.levels:
                on = self._switch.on.variables if self._switch else {}
                return Setting({**on, self._effort: thinking})
        elif self._switch is not None:
            return self._switch.on if thinking else self._switch.off
        elif thinking and self.always_thinks:
            return Setting()
        raise ArgumentError(f"thinking is {thinking!r}; this model's chat template {self._known}")

    @property
    def can_be_switched(self) -> bool:
        """Whether thinking can be switched on and off."""
        return self._switch is not None

    @cached_property
    def always_thinks(self) -> bool:
        """Whether the template knows thoughts, and no way to have none."""
        if self._switch is not None:
            return False
        markers = markers_of(self._source)
        known = any(markers is family.markers for family in FAMILIES)
        return known or markers.opening in self._source or markers.closing in self._source

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """How much a prompt can ask for, by name, the least first."""
        name = self._effort
        if not name:
            return ()
        on = dict(self._switch.on.variables) if self._switch else {}
        off = dict(self._switch.off.variables) if self._switch else {}
        on.pop(name, None)
        usual = self._rendered(on)
        free = self._rendered({**on, name: "akunu level"})
        if free is not None and "akunu level" in free:  # it writes down whatever value it gets
            return ("low", "medium", "high")
        found = []
        for level in LEVELS:
            shown = self._rendered({**on, name: level})
            quoted = re.search(rf"""["']{level}["']""", self._source) is not None
            if shown is not None and (quoted or shown != usual) and off.get(name) != level:
                found.append(level)
        return tuple(found)

    @cached_property
    def _effort(self) -> str:
        """The variable that says how much, "" where there is none."""
        return next((name for name in _EFFORTS if self._has(rf"\b{name}\b")), "")

    @cached_property
    def _switch(self) -> _Switch | None:
        for switch in _SWITCHES:
            if all(map(self._has, switch.needs)):
                on, off, usual = map(self._prompt, (switch.on, switch.off, Setting()))
                if on is not None and off is not None and on != off:
                    return switch
                if usual is not None and off is not None and usual != off:
                    return replace(switch, on=Setting())  # it is only looked at whether it is set
        return None

    @property
    def _known(self) -> str:
        """What the template knows, for a sentence."""
        words = ["True"] if self.always_thinks else []
        words += ["True", "False"] if self.can_be_switched else []
        words += map(repr, self.levels)
        if not words:
            return "has no switch for it"
        if words == ["True"]:
            return "knows True only: it has no switch"
        return f"knows {in_words(words, 'and')}"

    def _has(self, pattern: str) -> bool:
        return re.search(pattern, self._source) is not None

    def _rendered(self, variables: Mapping[str, Any]) -> str | None:
        return self._render(_QUESTION, variables)

    def _prompt(self, setting: Setting) -> str | None:
        """Return the prompt with a setting, from where the texts are the same."""
        if not setting.system:
            return self._rendered(setting.variables)
        shown = self._render(with_system(_QUESTION, setting.system), {})
        return None if shown is None else shown.rpartition(_TEXT)[2]


def with_system(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return messages whose system message has another line.

    >>> with_system([{"role": "user", "content": "Hi"}], "/think")
    [{'role': 'system', 'content': '/think'}, {'role': 'user', 'content': 'Hi'}]
    """
    first = messages[0]
    if first["role"] not in ("system", "developer"):
        return [{"role": "system", "content": text}, *messages]
    content = first["content"]
    if isinstance(content, list):
        content = [*content, {"type": "text", "text": text}]
    else:
        content = f"{content}\n{text}"
    return [{**first, "content": content}, *messages[1:]]
