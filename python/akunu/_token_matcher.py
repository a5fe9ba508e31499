"""Finding the tokens that are whole words of a text: control tokens, and those a user defined."""

from __future__ import annotations

import re
from collections.abc import Mapping


class TokenMatcher:
    """Finds whole tokens in text: leftmost first, then longest; linear in the text."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        """Prepare to find these non-empty texts."""
        self._tokens = dict(tokens)
        self._lengths = sorted({len(token) for token in tokens}, reverse=True)
        followers: dict[str, set[str]] = {}
        for token in tokens:
            followers.setdefault(token[0], set()).add(token[1:2])
        starts = [
            re.escape(first)
            if "" in seconds
            else f"{re.escape(first)}[{''.join(map(re.escape, sorted(seconds)))}]"
            for first, seconds in sorted(followers.items())
        ]
        self._start = re.compile("|".join(starts))

    def split(self, text: str) -> list[str | int]:
        """Return the text between the tokens, as str, and the tokens, as ids, in order."""
        pieces: list[str | int] = []
        done = position = 0
        while match := self._start.search(text, position):
            begin = match.start()
            position = begin + 1
            for length in self._lengths:
                token = self._tokens.get(text[begin : begin + length])
                if token is not None:
                    if begin > done:
                        pieces.append(text[done:begin])
                    pieces.append(token)
                    done = position = begin + length
                    break
        if done < len(text):
            pieces.append(text[done:])
        return pieces
