"""Notices a text that goes round in circles, as small models do that never surprise.

Not every repetition is such a circle: lists of zeros, "ha ha ha", rules of dashes and tables repeat
themselves and come to an end. What counts is how much a round says and how many there were.
"""

from __future__ import annotations

import re

STOPPED = (
    "stopped: the text repeats itself; "
    "--repetition-penalty 1.1 may help, --no-loop-guard lets it go on"
)
HINT = "the text repeats itself: Ctrl-C stops it, /set repetition_penalty 1.1 may help"

# A round that says something has this many different letters; others ("0x00, ", "| yes | no |",
# "ha ha ") fill tables, arrays and drawings.
_LETTERS = 6
_ROUNDS, _LENGTH = 8, 600
_LONG_ROUNDS, _LONG_LENGTH = 4, 2000  # of so much text, fewer rounds are enough
_SHORT_ROUNDS, _SHORT_LENGTH = 100, 1200
_WORDLESS_LENGTH = 4000  # of rounds without any letter

_WINDOW = 6000
_LOOKS_AFTER = 32  # characters; also how many have to be there twice before rounds are counted
_CANDIDATES = 4

_LETTER = re.compile(r"[^\W\d_]")
_NUMBER_OF_ITEM = re.compile(r"(?m)^[ \t]*\d+[.)]")  # a list of the same items is a circle, too


class LoopGuard:
    """Takes a text in pieces.

    >>> guard = LoopGuard()
    >>> guard.push("I like the sea, as you know. " * 4)
    False
    >>> guard.push("I like the sea, as you know. " * 20)
    True
    """

    def __init__(self) -> None:
        """Nothing was repeated yet."""
        self._text = ""
        self._unseen = 0

    def push(self, piece: str) -> bool:
        """Take the next piece; return whether the text goes round in circles at its end.

        It looks from time to time only, so that not every piece of a circle gives True.
        """
        self._text = (self._text + piece)[-_WINDOW:]
        self._unseen += len(piece)
        if self._unseen < _LOOKS_AFTER:
            return False
        self._unseen = 0
        return _goes_round(_NUMBER_OF_ITEM.sub("", self._text))


def _goes_round(text: str) -> bool:
    tail = text[-_LOOKS_AFTER:]
    at = len(text) - len(tail)
    for _ in range(_CANDIDATES):
        # A text that repeats a round ends as it ended one round ago.
        at = text.rfind(tail, 0, at + len(tail) - 1)
        if at < 0:
            return False
        length = len(text) - len(tail) - at
        if _is_circle(text[-length:], _rounds(text, length)):
            return True
    return False


def _rounds(text: str, length: int) -> int:
    """Return how many times the last `length` characters stand at a text's end."""
    count = 1
    while text[-length * (count + 1) : -length * count] == text[-length:]:
        count += 1
    return count


def _is_circle(text: str, rounds: int) -> bool:
    """Whether this text, so many times over, is more than a repetition."""
    total = rounds * len(text)
    letters = len(set(_LETTER.findall(text)))
    if letters >= _LETTERS:
        return (rounds >= _ROUNDS and total >= _LENGTH) or (
            rounds >= _LONG_ROUNDS and total >= _LONG_LENGTH
        )
    least = _SHORT_LENGTH if letters else _WORDLESS_LENGTH
    return rounds >= _SHORT_ROUNDS and total >= least
