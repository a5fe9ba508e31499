"""Finding the tokens that are whole words of a text: control tokens, and those a user defined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from tokenizers import AddedToken as LibraryToken
from tokenizers import Tokenizer, models

from akunu.tokenizers.added_tokens import WHITE_SPACE, AddedToken


class TokenMatcher:
    """Finds whole tokens in text: leftmost first, then longest; linear in the text."""

    def __init__(
        self, tokens: Mapping[str, int], rules: Mapping[int, AddedToken] | None = None
    ) -> None:
        """Prepare to find these non-empty texts; `rules`: by ids of the tokens that have one."""
        self._tokens = dict(tokens)
        self._rules = {
            index: rule
            for index, rule in (rules or {}).items()
            if rule.lstrip or rule.rstrip or rule.single_word
        }
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
                end = begin + length
                token = self._tokens.get(text[begin:end])
                if token is None or end > len(text):
                    continue
                position = end
                if rule := self._rules.get(token):
                    if rule.single_word and not _is_word_of_its_own(text, begin, end):
                        break
                    if rule.lstrip:
                        begin = max(spaces_begin(text, begin, done), done)
                    if rule.rstrip:
                        end = spaces_end(text, end)
                    if begin >= end:  # the token before has all of it
                        break
                if begin > done:
                    pieces.append(text[done:begin])
                pieces.append(token)
                done = end  # before `position` where a token lies in the space after another
                break
        if done < len(text):
            pieces.append(text[done:])
        return pieces


def spaces_begin(text: str, end: int, least: int = 0) -> int:
    """Return where the white space begins that ends at `end`, not before `least`."""
    while end > least and text[end - 1] in WHITE_SPACE:
        end -= 1
    return end


def spaces_end(text: str, begin: int) -> int:
    """Return where the white space ends that begins at `begin`."""
    while begin < len(text) and text[begin] in WHITE_SPACE:
        begin += 1
    return begin


def _is_word_of_its_own(text: str, begin: int, end: int) -> bool:
    return not (
        (begin > 0 and _is_word_character(text[begin - 1]))
        or (end < len(text) and _is_word_character(text[end]))
    )


@cache
def _is_word_character(character: str) -> bool:
    """Whether an expression's `\\w` matches, by the library's Unicode, which is not Python's."""
    found: list[int] = _library().encode(f"{character}.", add_special_tokens=False).ids
    return _library().token_to_id(".") not in found


@cache
def _library() -> Tokenizer:
    """Return a tokenizer that finds "." where it is its own word."""
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    tokenizer.add_tokens([LibraryToken(".", single_word=True, normalized=False)])
    return tokenizer
