"""Finds the strings that end a text, however they are cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final


class StopFinder:
    """Lets text through up to the first stop string; holds back what may be the start of one.

    The first one is the one that is complete first, and of several complete at once the longest:
    this does not depend on how the text is cut. Linear in the text (Knuth, Morris, Pratt).

    >>> finder = StopFinder(["END"])
    >>> finder.push("the E"), finder.push("A"), finder.push("EN"), finder.push("D and more")
    ('the ', 'EA', '', '')
    >>> finder.found
    'END'
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Look for these non-empty strings."""
        self._stops = sorted(stops, key=len, reverse=True)  # the longest first
        self._fallbacks = [_fallbacks(stop) for stop in self._stops]
        self._matched = [0] * len(self._stops)  # characters of each that the text ends with
        self._held = ""
        self._n_after = 0  # characters that came after the stop string
        self.found: str | None = None

    @property
    def n_kept(self) -> int:
        """How many of the latest characters are not shown: held back, or the stop string and on."""
        return len(self._held) if self.found is None else len(self.found) + self._n_after

    def push(self, text: str) -> str:
        """Return what may be shown now that `text` has come; nothing after a stop string."""
        if not self._stops:
            return text
        if self.found is not None:
            self._n_after += len(text)
            return ""
        matched = self._matched
        for position, character in enumerate(text):
            for index, stop in enumerate(self._stops):
                length = matched[index]
                while length and stop[length] != character:
                    length = self._fallbacks[index][length - 1]
                length += stop[length] == character
                matched[index] = length
                if length == len(stop):
                    self.found = stop
                    seen = self._held + text[: position + 1]
                    self._held = ""
                    self._n_after = len(text) - position - 1
                    return seen[: len(seen) - length]
        seen = self._held + text
        shown = len(seen) - max(matched)
        self._held = seen[shown:]
        return seen[:shown]

    def finish(self) -> str:
        """Return the text that was held back, at the end of this part."""
        held, self._held = self._held, ""
        self._matched = [0] * len(self._stops)
        return held


NO_STOPS: Final = StopFinder(())
"""Finds nothing, and so keeps nothing: all texts without stop strings may share it."""


@lru_cache(maxsize=256)  # several answers to a request look for the same strings
def _fallbacks(stop: str) -> Sequence[int]:
    """For each prefix of `stop`: how long its longest proper prefix is that also ends it."""
    fallbacks = [0] * len(stop)
    for end in range(1, len(stop)):
        length = fallbacks[end - 1]
        while length and stop[length] != stop[end]:
            length = fallbacks[length - 1]
        fallbacks[end] = length + (stop[length] == stop[end])
    return fallbacks
