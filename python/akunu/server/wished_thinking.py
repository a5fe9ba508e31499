"""Thinking as a client wishes it, fitted to what a model knows.

Agents ask every model to think, whether it can or not. Where it cannot, the wish has no effect and
its field is named, as other fields without effect are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.model import Model
from akunu.server.prompts import template_of


def with_wished_thinking(
    arguments: Mapping[str, Any], model: Model, names: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return arguments of `Model.chat` that the model can follow, and fields without effect."""
    found = dict(arguments)
    wish, budget = found.pop("thinking", None), found.pop("thinking_budget", None)
    if wish is None and budget is None:
        return found, []
    switch = template_of(model).thinking_switch
    can_think = switch.can_be_switched or switch.always_thinks
    lost = set()
    if isinstance(wish, str) and wish not in switch.levels:
        wish = True  # as much as it always does
    if isinstance(wish, str) or (wish is True and can_think):
        found["thinking"] = wish
    elif wish is False and switch.can_be_switched:
        found["thinking"] = False
    elif wish is True or (wish is False and switch.always_thinks):
        lost.add("thinking")
    if budget is not None and can_think:
        found["thinking_budget"] = budget
    elif budget is not None:
        lost.add("thinking_budget")
    return found, sorted({names.get(each, each) for each in lost})
