"""Added tokens that are looked for in normalised text: the `tokenizers` library does it itself."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Encoding, Tokenizer

from akunu.tokenizers.vocabulary import CONTROL, UNKNOWN, USER_DEFINED, Vocabulary


def hidden_of(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return which tokens ordinary text never becomes: control tokens, and user-defined ones that
    are not pieces of the model."""
    hidden = np.isin(vocabulary.types, (CONTROL, USER_DEFINED))
    for index, rule in vocabulary.added.items():
        if vocabulary.types[index] == USER_DEFINED:
            hidden[index] = not rule.is_piece
    return hidden


class LaterTokens:
    """The added tokens of a vocabulary that are looked for in normalised text.

    The others are cut out of a text before the library gets it (`token_matcher.py`).
    """

    def __init__(self, vocabulary: Vocabulary, with_control: bool) -> None:
        """Choose them; `with_control`: control tokens, too."""
        self._tokens = {
            vocabulary.tokens[index]: index
            for index, rule in vocabulary.added.items()
            if rule.normalized
            and (with_control or vocabulary.types[index] not in (CONTROL, UNKNOWN))
        }
        self._rules = vocabulary.added
        self._n_tokens = len(vocabulary.tokens)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._tokens)

    def without_gaps(self, ids: dict[str, int]) -> dict[str, int]:
        """Return the ids of a model and, for those between, names that no text contains.

        The library gives an added token the first id after all others by counting those.
        """
        if not self:
            return ids
        prefix = secrets.token_hex(16)
        left = set(range(self._n_tokens)).difference(ids.values())
        return {**ids, **{f"{prefix}{index}": index for index in left}}

    def added_to(
        self, tokenizer: Tokenizer, spelled: Callable[[str], str] = str
    ) -> Callable[[str], list[int]]:
        """Add them to a tokenizer that has its normalizer; return what makes ids of a text.

        `spelled`: how a token's text is passed to that normalizer.

        Other threads run meanwhile: only batches let go of the GIL. A batch without offsets also
        takes about half of the time that `Tokenizer.encode` takes.
        """
        known: dict[int, int] = {}  # the library's id -> ours
        for text, index in self._tokens.items():
            rule, content = self._rules[index], spelled(text)
            n_new = tokenizer.add_tokens(
                [
                    AddedToken(
                        content,
                        lstrip=rule.lstrip,
                        rstrip=rule.rstrip,
                        single_word=rule.single_word,
                        normalized=True,
                    )
                ]
            )
            id_there = tokenizer.token_to_id(content)
            if n_new and id_there is not None:  # else another with the same text comes first
                known[id_there] = index

        def ids(text: str) -> list[int]:
            encodings: list[Encoding] = tokenizer.encode_batch_fast(
                [text], add_special_tokens=False
            )
            found: list[int] = encodings[0].ids
            return [known.get(index, index) for index in found] if known else found

        return ids
