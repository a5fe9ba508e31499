"""DRY's sequence breakers: texts, as the tokens that hold, end or begin them.

A breaker ends a repetition wherever it stands, inside a token or across several. So a table says,
for every way in which one can continue after a token, which tokens it may continue after.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from akunu.options.engine_limits import MAX_OPTION_WORDS
from akunu.tokenizers.tokenizer import Tokenizer


@lru_cache(maxsize=8)
def breaker_words(tokenizer: Tokenizer, breakers: Sequence[str]) -> list[int]:
    """Return the table as the engine takes it (`dry_breakers` in src/core/rows.h).

    If the breakers need a larger table than the engine takes, it stops soon after that size.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     words = breaker_words(model.tokenizer, ("\\n",))
    >>> words[0], words[1] == len(words[2:])  # nothing has to follow
    (0, True)
    """
    heads: dict[tuple[int, ...], set[int]] = {}
    spelled = [tokenizer.token_bytes(token) for token in range(tokenizer.vocab_size)]
    longest = max(map(len, spelled), default=0)  # of a longer beginning, no token has the end
    for breaker in breakers:
        whole = breaker.encode()
        heads.setdefault((), set()).update(
            token for token, spelling in enumerate(spelled) if whole in spelling
        )
        for cut in range(1, min(len(breaker), longest + 1)):
            begin, tail = breaker[:cut].encode(), breaker[cut:]
            ends = {token for token, spelling in enumerate(spelled) if spelling.endswith(begin)}
            if ends:
                following = tuple(tokenizer.encode(tail, add_special=False))
                heads.setdefault(following, set()).update(ends)
        if sum(map(len, heads.values())) > MAX_OPTION_WORDS:
            break
    words: list[int] = []
    for following in sorted(heads, key=len, reverse=True):
        if heads[following]:
            words += [len(following), len(heads[following]), *following, *sorted(heads[following])]
    return words
