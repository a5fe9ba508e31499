"""Whether a grammar accepts a text, token by token, without a model."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from llguidance import LLMatcher, LLTokenizer

import akunu
from akunu.grammar import Grammar
from akunu.grammar.limits import engine_limits


class _Wrapped:
    """What llguidance asks of a tokenizer."""

    def __init__(self, tokenizer: akunu.Tokenizer) -> None:
        self.eos_token_id = tokenizer.eos_id
        self.bos_token_id = tokenizer.bos_id
        self.tokens = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
        self.special_token_ids = sorted(tokenizer.control_ids)
        self.is_tokenizer_wrapper = True
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special=False)


def accepts_bytes(grammar: Grammar, text: str) -> bool:
    """Whether the whole text fits, byte by byte."""
    tokenizer = LLTokenizer("byte")
    tokens = tokenizer.tokenize_bytes(text.encode())
    matcher = LLMatcher(tokenizer, grammar.llguidance, limits=engine_limits())
    return matcher.try_consume_tokens(tokens) == len(tokens) and bool(matcher.is_accepting())


class Judge:
    """Texts against grammars, with the tokens of one model."""

    def __init__(self, tokenizer: akunu.Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._tokens = LLTokenizer(_Wrapped(tokenizer))  # type: ignore[arg-type]
        self._bytes = LLTokenizer("byte")
        self.mask_seconds: list[float] = []
        """Time of this thread for each mask, where `accepts` was asked to measure."""
        self.compile_seconds: list[float] = []

    def accepts(
        self, grammar: Grammar, text: str, *, masks: bool = False, whole: bool = True
    ) -> bool:
        """Whether the text fits; with `masks` every token must be in the mask before it.

        `whole`: it may end there, too.
        """
        matcher = LLMatcher(self._tokens, grammar.llguidance, limits=engine_limits())
        for token in self.tokenizer.encode(text, add_special=False):
            if masks:
                started = time.thread_time()
                mask = matcher.compute_bitmask()
                self.mask_seconds.append(time.thread_time() - started)
                if not mask[token // 8] >> token % 8 & 1:
                    return False
            if matcher.try_consume_tokens([token]) != 1:
                return False
        return bool(matcher.is_accepting()) or not whole

    def text_in_order(self, grammar: Grammar, value: Any) -> str | None:
        """A JSON text of the value that fits, its properties in any order; None: there is none."""
        matcher = LLMatcher(self._bytes, grammar.llguidance, limits=engine_limits())
        search = _Search(matcher, self._bytes, grammar.schema)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(40_000)  # a call for each piece of the text
        try:
            return "".join(search.written) if search.value(value, search.accepting) else None
        finally:
            sys.setrecursionlimit(limit)


class _Search:
    """Writes a value piece by piece, and takes back what the grammar refuses."""

    def __init__(self, matcher: LLMatcher, tokenizer: LLTokenizer, schema: str) -> None:
        self.written: list[str] = []
        self._matcher = matcher
        self._tokenizer = tokenizer
        self._rank: dict[str, int] = {}
        self._rank_names(json.loads(schema))
        self._steps = 1000

    def _rank_names(self, schema: Any) -> None:
        """Names in the order in which the schema has them: most often the right one."""
        if isinstance(schema, dict):
            for key, value in schema.items():
                if key == "properties" and isinstance(value, dict):
                    for name in value:
                        self._rank.setdefault(name, len(self._rank))
                self._rank_names(value)
        elif isinstance(schema, list):
            for value in schema:
                self._rank_names(value)

    def accepting(self) -> bool:
        return bool(self._matcher.is_accepting())

    def value(self, value: Any, then: Callable[[], bool]) -> bool:
        """Writes a value and what comes `then`; False where that fails: nothing is written."""
        if isinstance(value, dict):
            names = sorted(value, key=lambda name: self._rank.get(name, len(self._rank)))
            return self._piece("{", lambda: self._properties(value, names, "", then))
        if isinstance(value, list):
            return self._piece("[", lambda: self._items(value, 0, then))
        return self._piece(json.dumps(value, ensure_ascii=False), then)

    def _properties(
        self, value: dict[str, Any], names: Sequence[str], comma: str, then: Callable[[], bool]
    ) -> bool:
        if not names:
            return self._piece("}", then)
        for name in names:
            rest = [other for other in names if other != name]

            def behind(name: str = name, rest: Sequence[str] = rest) -> bool:
                return self.value(value[name], lambda: self._properties(value, rest, ", ", then))

            if self._piece(f"{comma}{json.dumps(name, ensure_ascii=False)}: ", behind):
                return True
        return False

    def _items(self, items: list[Any], i: int, then: Callable[[], bool]) -> bool:
        if i == len(items):
            return self._piece("]", then)
        if i == 0:
            return self.value(items[0], lambda: self._items(items, 1, then))
        return self._piece(
            ", ", lambda: self.value(items[i], lambda: self._items(items, i + 1, then))
        )

    def _piece(self, piece: str, then: Callable[[], bool]) -> bool:
        self._steps -= 1
        if self._steps < 0:
            return False
        tokens = self._tokenizer.tokenize_str(piece)
        fitting = self._matcher.try_consume_tokens(tokens)
        if fitting == len(tokens):
            self.written.append(piece)
            if then():
                return True
            self.written.pop()
        if fitting:
            self._matcher.rollback(fitting)
        return False
