"""What a generator returns, and the line between training and held-out data.

A generator takes a `Draw` and returns a `Dialogue`. The draw knows on which side of the line it
stands: operands and words fall on one side by a hash of their text, and so does a fifth of the
phrasings.
"""

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
Message = dict[str, Any]  # {"role": ..., "content": ...}
HELD_OUT_SHARE = 16  # one key in so many is never seen in training


@dataclass(slots=True)
class Dialogue:
    family: str
    task: str
    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)


def is_held_out(*key: object) -> bool:
    text = "|".join(map(str, key))
    return zlib.crc32(text.encode()) % HELD_OUT_SHARE == 0


class Draw:
    """A seeded source of choices that stays on one side of the held-out line."""

    def __init__(self, seed: int | str, *, held_out: bool = False) -> None:
        self.rng = random.Random(seed)
        self.held_out = held_out
        self._divided: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}

    def operands(self, make: Callable[[random.Random], T], key: Callable[[T], object]) -> T:
        """Draw with `make` until the key lies on this side of the line."""
        while True:
            value = make(self.rng)
            if is_held_out(key(value)) == self.held_out:
                return value

    def member(self, items: Sequence[str]) -> str:
        """One of the words that lie on this side of the line."""
        return self.operands(lambda rng: rng.choice(items), lambda word: word)

    def phrasing(self, phrasings: Sequence[str]) -> str:
        """A fifth of every list of phrasings is held out: those whose hash is lowest."""
        key = tuple(phrasings)
        if key not in self._divided:
            by_hash = sorted(phrasings, key=lambda text: (zlib.crc32(text.encode()), text))
            n_held_out = max(1, len(phrasings) // 5)
            self._divided[key] = by_hash[:n_held_out], by_hash[n_held_out:]
        held_out, seen = self._divided[key]
        return self.rng.choice(held_out if self.held_out else seen)


def question_and_answer(family: str, task: str, question: str, answer: str) -> Dialogue:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return Dialogue(family, task, messages)
