"""How tokens that were added to a vocabulary are found in a text, as the `tokenizers` library does.

A tokenizer.json says it of each token; the numbers are kept under a key of our own, which a GGUF
file made of such a directory has too. Other GGUF files say nothing: there the names of some models
tell, as in llama.cpp.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu.common.metadata import Reader
from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.library_steps import library_normalizer

ADDED: Final = "akunu.tokenizer.added_tokens"
"""A number for each, in the order of the library: id * 32 + `AddedToken.number`."""

# Unicode's White_Space; str.isspace() takes U+001C to U+001F for spaces, too.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_OPTIONS: Final = ("lstrip", "rstrip", "single_word", "normalized", "is_piece")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedToken:
    """What the library knows of an added token next to its text."""

    lstrip: bool = False  # takes the white space before it
    rstrip: bool = False  # takes the white space after it
    single_word: bool = False  # only where neither neighbour is a letter, mark, digit or "_"
    normalized: bool = False  # looked for in the normalised text, by its own normalised text
    is_piece: bool = False  # the model's own vocabulary has it: ordinary text may become it

    @property
    def changes_text(self) -> bool:
        """Whether more than its own text matters."""
        return self.lstrip or self.rstrip or self.single_word or self.normalized

    @property
    def number(self) -> int:
        """All of it, as a file has it: a bit each."""
        return sum(getattr(self, name) << bit for bit, name in enumerate(_OPTIONS))

    @classmethod
    def of_number(cls, number: int) -> AddedToken:
        """Return what `number` stands for.

        >>> AddedToken.of_number(2).rstrip
        True
        """
        return cls(**{name: bool(number >> bit & 1) for bit, name in enumerate(_OPTIONS)})


def added_keys(
    tokens: Iterable[Mapping[str, Any]], pieces: Container[str], normalizer: object
) -> dict[str, Any]:
    """Return the key with a tokenizer.json's added tokens; `pieces`: the model's own vocabulary.

    Special tokens come first: where the normalised texts of two are the same, the first is found.
    Raises UnsupportedModelError for one whose normalised text is empty: the library finds it
    between all characters.
    """
    numbers: list[int] = []
    normalized: list[str] = []
    for each in sorted(tokens, key=lambda each: not each.get("special")):
        content = each["content"]
        if not content:
            continue
        options = {name: bool(each.get(name)) for name in _OPTIONS[:-1]}
        token = AddedToken(**options, is_piece=content in pieces)
        numbers.append(int(each["id"]) << len(_OPTIONS) | token.number)
        if token.normalized:
            normalized.append(content)
    if normalizer is not None and normalized:
        normalize = library_normalizer(normalizer)
        if empty := [text for text in normalized if not normalize(text)]:
            raise UnsupportedModelError(
                f"tokenizer.json: the normalizer leaves nothing of the added token {empty[0]!r}"
            )
    return {ADDED: numbers} if numbers else {}


def token_of(number: int) -> int:
    """Return the token that a number under the key `ADDED` is about."""
    return number >> len(_OPTIONS)


def read_added(
    reader: Reader, tokens: Sequence[str], types: NDArray[np.int32], special: Sequence[int]
) -> dict[int, AddedToken]:
    """Return the added tokens by id; `special`: the types of tokens that are names.

    A GGUF file that another program made has only those that differ from what is usual.
    """
    numbers = reader.numbers(ADDED, None, "iu")
    if numbers is None:
        return _by_name(reader, tokens, np.flatnonzero(np.isin(types, special)).tolist())
    added: dict[int, AddedToken] = {}
    for at, number in enumerate(numbers.tolist()):
        index = token_of(number)
        if not 0 <= index < len(tokens):
            raise ModelFormatError(
                f"{ADDED}[{at}] is about token {index}, but there are {len(tokens)} tokens"
            )
        added[index] = AddedToken.of_number(number)
    return added


def _by_name(reader: Reader, tokens: Sequence[str], special: list[int]) -> dict[int, AddedToken]:
    """Return what llama.cpp knows of a GGUF file by the names in it.

    Beyond that, a Phi-3 that was passed another name: the architecture with this tokenizer.
    """
    name, architecture, model, pre = (
        value.lower() if isinstance(value := reader.value(key), str) else ""
        for key in (
            "general.name",
            "general.architecture",
            "tokenizer.ggml.model",
            "tokenizer.ggml.pre",
        )
    )
    mask = ""
    if any(kind in pre for kind in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or any(
        kind in architecture for kind in ("nomic-bert-moe", "jina-bert-v3")
    ):
        mask = "<mask>"
    elif "phi-3" in name or "phi3" in name or (architecture, model) == ("phi3", "llama"):
        rule = AddedToken(rstrip=True)
        others = ("<unk>", "<s>", "<|endoftext|>")
        ends = [index for index, token in enumerate(tokens) if token == "</s>"]
        return {i: rule for i in (*special, *ends) if tokens[i] and tokens[i] not in others}
    elif "modern-bert" in name:
        mask = "[MASK]"
    if not mask or mask not in tokens:
        return {}
    return {tokens.index(mask): AddedToken(lstrip=True)}
