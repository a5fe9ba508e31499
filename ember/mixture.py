"""The training mixture: families by share, now and then a system message or a long conversation."""

from collections.abc import Callable
from itertools import accumulate

from . import (
    arithmetic,
    conversation,
    letters,
    records,
    refusals,
    small_talk,
    tables,
    time_and_units,
    tool_calls,
)
from .dialogue import Dialogue, Draw
from .word_lists import lines

Generator = Callable[[Draw], Dialogue]
FAMILIES = [  # share of the dialogues, family
    (22, arithmetic),
    (18, letters),
    (15, tables),
    (10, time_and_units),
    (6, records),
    (6, tool_calls),
    (8, conversation),
    (8, small_talk),
    (7, refusals),
]
CLOSED = [module.FAMILY for _, module in FAMILIES if module is not refusals]
_SYSTEM = lines("mixture", "system")
LONG_SHARE = 0.012  # of the dialogues; these are about a tenth of the tokens
SYSTEM_SHARE = 0.15


def _flat() -> tuple[list[Generator], list[float]]:
    generators, weights = [], []
    for share, module in FAMILIES:
        total = sum(weight for _, weight in module.TASKS)
        for generator, weight in module.TASKS:
            generators.append(generator)
            weights.append(share * weight / total)
    return generators, list(accumulate(weights))


_GENERATORS, _CUMULATIVE = _flat()


def one(draw: Draw) -> Dialogue:
    return draw.rng.choices(_GENERATORS, cum_weights=_CUMULATIVE)[0](draw)


def _long(draw: Draw) -> Dialogue:
    """Unrelated questions in one conversation, to most of the context."""
    characters = draw.rng.randint(600, 2200)
    dialogue = Dialogue("long", "long", [])
    while characters > 0:
        piece = one(draw)
        if piece.tools:
            continue
        dialogue.messages += piece.messages
        characters -= sum(len(message["content"]) + 12 for message in piece.messages)
    return dialogue


def dialogue(draw: Draw) -> Dialogue:
    made = _long(draw) if draw.rng.random() < LONG_SHARE else one(draw)
    if draw.rng.random() < SYSTEM_SHARE:
        made.messages = [{"role": "system", "content": draw.rng.choice(_SYSTEM)}, *made.messages]
    return made
