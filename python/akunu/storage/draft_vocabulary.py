"""Whether a model's tokens are those of the model that it drafts for."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import numpy as np

from akunu.errors import UnsupportedModelError
from akunu.storage.model_files import open_model_files, read_tokenizer
from akunu.tokenizers.tokenizer import Tokenizer
from akunu.tokenizers.vocabulary import UNUSED, Vocabulary


def check_draft_vocabulary(tokenizer: Tokenizer, path: Path, draft_path: Path) -> None:
    """Compare the tokens of a draft model with those of its target, id by id.

    Raises UnsupportedModelError, with both paths and the first token that differs, for another
    vocabulary; and what reading the draft's tokenizer raises.
    """
    draft = read_tokenizer(open_model_files(draft_path)).vocabulary
    target = tokenizer.vocabulary
    fault = first_difference(target, draft)
    if fault is not None:
        raise UnsupportedModelError(
            f"{draft_path} cannot draft for {path}: {fault}; a draft model needs the same "
            f"vocabulary as the model"
        )


def first_difference(target: Vocabulary, draft: Vocabulary) -> str | None:
    """Say where two vocabularies differ; None where every id is the same token.

    What merges text, and how it is split, may differ: only ids are handed over. So may how many
    unused tokens fill the end up.
    """
    pairs = zip_longest(_spelled(target), _spelled(draft))
    for token, (of_target, of_draft) in enumerate(pairs):
        if of_target != of_draft:
            return f"token {token} is {_described(of_draft)} there and {_described(of_target)} here"
    return None


def _spelled(vocabulary: Vocabulary) -> list[str | bytes]:
    """Return what every token is: its text, or its bytes where they are not text."""
    n_used = int(np.flatnonzero(vocabulary.types != UNUSED).max(initial=-1)) + 1
    return [vocabulary.raw.get(i, token) for i, token in enumerate(vocabulary.tokens[:n_used])]


def _described(token: str | bytes | None) -> str:
    return "nothing" if token is None else repr(token)
