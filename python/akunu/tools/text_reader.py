"""Text that arrives in pieces, for parsers that are generators: they wait where it ends."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final, TypeVar

Result = TypeVar("Result")
MARKING: Final = frozenset("<[|")
"""What markers have in them that prose has not."""
Waiting = Generator[None, None, Result]
"""A parser: it yields where it needs more text, and returns its result."""


class TextReader:
    """The text so far and a place in it. `at` may be set back: nothing is forgotten before that."""

    def __init__(self) -> None:
        """Start without text."""
        self.text = ""
        self.at = 0
        self.is_over = False
        self.is_cut = False  # it is over, and more would have followed
        self.lacked_text = False  # a parser needed more text than there is; the caller resets it

    @property
    def rest(self) -> str:
        """The text that has come and was not read."""
        return self.text[self.at :]

    def forget(self) -> None:
        """Drop what was read."""
        self.text = self.text[self.at :]
        self.at = 0

    def more(self) -> Waiting[bool]:
        """Wait for more text; return whether there is some."""
        length = len(self.text)
        while len(self.text) == length:
            if self.is_over:
                self.lacked_text = True
                return False
            yield
        return True

    def peek(self) -> Waiting[str]:
        """Return the next character, and stay before it; "" at the end."""
        while self.at >= len(self.text):
            if not (yield from self.more()):
                return ""
        return self.text[self.at]

    def skip_space(self) -> Waiting[None]:
        """Go to the next character that is not whitespace."""
        while (yield from self.peek()).isspace():
            self.at += 1


def read_literal(reader: TextReader, text: str, *, word_follows: bool = False) -> Waiting[bool]:
    """Read a text of a pattern; whitespace in it stands for any. False leaves the place anywhere.

    `word_follows`: also the whitespace at the end is read.
    """
    for character in text if word_follows else text.rstrip():
        if character.isspace():
            yield from reader.skip_space()
        elif (yield from reader.peek()) == character:
            reader.at += 1
        else:
            return False
    return True


class Markers:
    """Finds the first of several strings in a text, and what may yet become one of them."""

    def __init__(self, markers: Iterable[str]) -> None:
        """Look for these non-empty strings; where one begins like another, the longer one wins."""
        self._markers = sorted(set(markers), key=len, reverse=True)
        self._starts = {marker[:end] for marker in self._markers for end in range(1, len(marker))}
        self._longest = max(map(len, self._markers), default=0)

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._markers)

    def begun(self, text: str) -> int:
        """Return where a marker has begun that the text does not complete; its length: nowhere.

        One letter is not a beginning, nor are letters that may as well begin a word.
        """
        place, found = self.find(text, 0, is_over=False)
        if found is None and len(text) - place > 1 and MARKING & set(text[place:]):
            return place
        return len(text)

    def find(self, text: str, begin: int, *, is_over: bool) -> tuple[int, str | None]:
        """Return where the first marker is, and which; or None and up to where there is none.

        After that place, the text may go on to be a marker, unless it is over.
        """
        place, found = len(text), None
        for marker in self._markers:
            at = text.find(marker, begin, place + len(marker) - 1)
            if at >= 0 and at < place:
                place, found = at, marker
        if not is_over:
            for length in range(min(self._longest - 1, len(text) - begin), 0, -1):
                if text[len(text) - length :] in self._starts:
                    if len(text) - length <= place:
                        return len(text) - length, None
                    break
        return place, found
