"""A model's vocabulary as grammars want it, and what rules one text.

The rules themselves are followed by llguidance, whose library the engine calls: none of it is
Python while a text is generated. Nothing of it is loaded before a text has a grammar.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.errors import ArgumentError, UnsupportedModelError
from akunu.tokenizers.vocabulary import BYTE, CONTROL, UNKNOWN, UNUSED, USER_DEFINED, WORD_MODELS

if TYPE_CHECKING:
    from akunu.grammar.grammar import FreeText, Grammar
    from akunu.tokenizers.tokenizer import Tokenizer

_NOTHING, _TEXT, _WHOLE, _SPECIAL = range(4)  # as in src/python/register_grammar.cpp
_NO_RANK = 2**32 - 1
_TEXT_RULES = "the_text"


def library_path() -> str:
    """Return the file of llguidance's own library.

    Raises UnsupportedModelError where the package is not installed, or has none.
    """
    advice = "grammars need the package llguidance: pip install 'llguidance>=1.9,<1.10'"
    spec = find_spec("llguidance")
    if spec is None or spec.origin is None:
        raise UnsupportedModelError(f"llguidance is not installed; {advice}")
    folder = Path(spec.origin).parent
    for file in sorted(folder.glob("_lib*")):
        if file.suffix in (".so", ".dylib", ".pyd"):
            return str(file)
    raise UnsupportedModelError(f"{folder} has no library _lib*.so; {advice}")


def grammar_vocabulary(tokenizer: Tokenizer, n_logits: int) -> _core.GrammarVocabulary:
    """Return the vocabulary of a model whose logits have this many columns."""
    vocabulary = tokenizer.vocabulary
    types = vocabulary.types
    # Words are looked for as they are: nothing merges into them.
    are_words = vocabulary.model in ("bert", *WORD_MODELS)
    kinds = np.full(len(types), _WHOLE if are_words else _TEXT, np.uint8)
    kinds[types == USER_DEFINED] = _WHOLE
    kinds[types == CONTROL] = _SPECIAL
    kinds[(types == UNUSED) | (types == UNKNOWN)] = _NOTHING
    texts = [tokenizer.token_bytes(index) for index in range(len(types))][:n_logits]
    padding = n_logits - len(texts)  # columns without a token
    return _core.GrammarVocabulary(
        library=library_path(),
        texts=texts + [b""] * padding,
        kinds=kinds[:n_logits].tobytes() + bytes(padding),
        ranks=np.pad(_ranks(tokenizer)[:n_logits], (0, padding), constant_values=_NO_RANK),
        end_ids=sorted(id for id in tokenizer.stop_ids if id < n_logits),
        by_character=vocabulary.model != "gpt2",
    )


def _ranks(tokenizer: Tokenizer) -> NDArray[np.uint32]:
    """Return for each token how soon merging makes it: the lower, the sooner."""
    vocabulary = tokenizer.vocabulary
    n = len(vocabulary.tokens)
    ranks = np.full(n, _NO_RANK, np.uint32)
    if vocabulary.scores is not None:
        ranks[np.lexsort((np.arange(n), -vocabulary.scores))] = np.arange(n, dtype=np.uint32)
        ranks[np.isin(vocabulary.types, (UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE))] = _NO_RANK
        return ranks
    for rank, merge in reversed(list(enumerate(tokenizer.merges()))):
        space = merge.find(" ", 1)
        index = vocabulary.ids.get(merge[:space] + merge[space + 1 :])
        if index is not None:
            ranks[index] = rank
    return ranks


def constraint_of(vocabulary: _core.GrammarVocabulary | None, grammar: Grammar) -> _core.Constraint:
    """Return what rules one text; ArgumentError where llguidance cannot compile the grammar.

    `vocabulary`: None will do where `needs_vocabulary` says so.
    """
    try:
        return _core.Constraint(vocabulary, grammar.llguidance, _free(grammar.after))
    except ArgumentError as error:
        raise _plainly(error) from None


def _plainly(error: ArgumentError) -> ArgumentError:
    """Return the error, or where rules name a token that the model lacks one that says so."""
    found = re.search(r'unknown special token: "<(.*?)>"; .* available: ⟦(.*)⟧', str(error))
    if found is None:
        return error
    names = [name for name in found[2].split("‧") if name.startswith("<")]
    near = get_close_matches(f"<{found[1]}>", names, 3, 0.5) or names[:5]
    has = (
        f"; it has {', '.join(near)}{' and others' if len(names) > len(near) else ''}"
        if near
        else ""
    )
    return ArgumentError(
        f"grammar: <{found[1]}> is a token by its name, and this model has no control token of "
        f'that name{has}. A text is written "<{found[1]}>", and a token by its number <[123]>'
    )


def ruling_words(grammar: Grammar) -> Grammar:
    """Return the grammar for a vocabulary of words, see `Tokenizer.opens_with_space`.

    A text may have a space before it, which the first word brings along. Such a vocabulary does not
    spell every text, so llguidance must not write bytes ahead which no token begins with.
    """
    if not grammar.llguidance:
        return grammar
    described = json.loads(grammar.llguidance)
    first, *others = described["grammars"]
    opening = f'%llguidance {{"no_forcing": true}}\nstart: " "? @{_TEXT_RULES}'
    described["grammars"] = [
        {"lark_grammar": opening},
        {**first, "name": _TEXT_RULES},
        *others,
    ]
    return replace(grammar, llguidance=json.dumps(described))


def needs_vocabulary(grammar: Grammar) -> bool:
    """Whether texts are looked for, or rules followed: ids alone do not show it."""
    until = grammar.after.until if grammar.after else ()
    return bool(grammar.llguidance) or any(isinstance(each, str) for each in until)


def _free(
    after: FreeText | None,
) -> tuple[list[bytes], list[tuple[int, ...]], int | None, tuple[int, ...]] | None:
    if after is None:
        return None
    texts = [each.encode() for each in after.until if isinstance(each, str)]
    tokens = [each for each in after.until if not isinstance(each, str)]
    return texts, tokens, after.most_tokens, after.then
