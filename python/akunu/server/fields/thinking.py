"""Thinking as a client wishes it, fitted to what a model knows: one rule for every API.

Clients ask every model to think, or how much, whether it can or not: such a request is answered.
What of the wish a model cannot follow is named, as other fields without effect are. Only a word
that no model knows is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.model import Model
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json
from akunu.server.prompts import template_of

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh", "max")
"""How much a client may ask for, the least first, by the names of all APIs."""


def with_wished_thinking(
    arguments: Mapping[str, Any], model: Model, names: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return arguments of `Model.chat` that the model can follow, and fields without effect.

    `names`: the fields of the request by the names of the arguments. Raises ApiError for a level
    that is none.
    """
    found = dict(arguments)
    wish, budget = found.pop("thinking", None), found.pop("thinking_budget", None)
    if wish is None and budget is None:
        return found, []
    switch = template_of(model).thinking_switch
    can_think = switch.can_be_switched or switch.always_thinks or bool(switch.levels)
    lost = set()
    if isinstance(wish, str) and wish not in switch.levels:
        if wish not in LEVELS:
            field = names.get("thinking", "thinking")
            known = ", ".join(dict.fromkeys(("none", *LEVELS, *switch.levels)))
            raise invalid(field, f"{field} is {as_json(wish)}; it must be one of {known}")
        lost.add("thinking")  # it thinks, but not as much as was requested
        wish = nearest(wish, switch.levels) or True
    if wish is False and not switch.can_be_switched:
        if can_think:
            lost.add("thinking")
    elif wish is True and not (switch.can_be_switched or switch.always_thinks):
        lost.add("thinking")
    elif wish is not None:
        found["thinking"] = wish
    if budget is not None and (switch.can_be_switched or switch.always_thinks):
        found["thinking_budget"] = budget
    elif budget is not None:
        lost.add("thinking_budget")
    return found, sorted({names.get(each, each) for each in lost})


def nearest(level: str, known: Sequence[str]) -> str | None:
    """Return the level of a model that is nearest to another one, None where it has none.

    >>> nearest("xhigh", ["low", "medium", "high"]), nearest("minimal", ["low", "high"])
    ('high', 'low')
    """
    place = LEVELS.index(level)
    ranked = [each for each in known if each in LEVELS]
    return min(ranked, key=lambda each: abs(LEVELS.index(each) - place), default=None)
