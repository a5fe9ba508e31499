"""Notices a text that repeats itself for ever, as small models do without sampling.

Not every repetition is such a loop: lists of zeros, "ha ha ha", rules of dashes and tables repeat
themselves and come to an end. What counts is how many different letters the repeated text, its
period, has, and how often it stands there.
"""

from __future__ import annotations

import re

STOPPED = (
    "stopped: the text repeats itself; "
    "--repetition-penalty 1.1 may help; --no-loop-guard lets it continue"
)
HINT = "the text repeats itself: Ctrl-C stops it; /set repetition_penalty 1.1 may help"

# A period of words has this many different letters; others ("0x00, ", "| yes | no |", "ha ha ")
# fill tables, arrays and drawings.
_LETTERS = 6
# A loop is at least this many repeats of a period of words, with at least this many characters.
_REPEATS, _LENGTH = 8, 600
_FEW_REPEATS, _FEW_LENGTH = 4, 2000  # of a long period
_OTHER_REPEATS, _OTHER_LENGTH = 100, 1200  # of a period with few letters
_WORDLESS_LENGTH = 4000  # of a period without letters

_WINDOW = 6000
_LOOKS_AFTER = 32  # characters; also how many must stand there twice before repeats are counted
_CANDIDATES = 4

_LETTER = re.compile(r"[^\W\d_]")
_NUMBER_OF_ITEM = re.compile(r"(?m)^[ \t]*\d+[.)]")  # a list of the same items is a loop, too


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
        """Take the next piece; return whether the text ends in a loop.

        It looks from time to time only, so that not every piece of a loop gives True.
        """
        self._text = (self._text + piece)[-_WINDOW:]
        self._unseen += len(piece)
        if self._unseen < _LOOKS_AFTER:
            return False
        self._unseen = 0
        return _ends_in_a_loop(_NUMBER_OF_ITEM.sub("", self._text))


def _ends_in_a_loop(text: str) -> bool:
    tail = text[-_LOOKS_AFTER:]
    at = len(text) - len(tail)
    for _ in range(_CANDIDATES):
        # Where the last characters stood before, one period ended.
        at = text.rfind(tail, 0, at + len(tail) - 1)
        if at < 0:
            return False
        length = len(text) - len(tail) - at
        if _is_loop(text[-length:], _repeats(text, length)):
            return True
    return False


def _repeats(text: str, length: int) -> int:
    """Return how many times the last `length` characters stand at a text's end."""
    count = 1
    while text[-length * (count + 1) : -length * count] == text[-length:]:
        count += 1
    return count


def _is_loop(period: str, repeats: int) -> bool:
    """Whether a text that stands there so often will hardly end by itself."""
    total = repeats * len(period)
    letters = len(set(_LETTER.findall(period)))
    if letters >= _LETTERS:
        return (repeats >= _REPEATS and total >= _LENGTH) or (
            repeats >= _FEW_REPEATS and total >= _FEW_LENGTH
        )
    least = _OTHER_LENGTH if letters else _WORDLESS_LENGTH
    return repeats >= _OTHER_REPEATS and total >= least
