"""What tokenizers of directories share that the `tokenizers` library runs: Unigram and words.

`steps` are parts of a tokenizer.json, among them its pre-tokenizer.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer

from akunu.errors import UnsupportedModelError


def metaspaces(steps: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of the pre-tokenizer that write spaces as a character.

    >>> metaspaces({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first"}})
    [{'type': 'Metaspace', 'prepend_scheme': 'first'}]
    """
    given = steps.get("pre_tokenizer")
    pieces = given.get("pretokenizers", [given]) if isinstance(given, dict) else []
    return [each for each in pieces if isinstance(each, dict) and each.get("type") == "Metaspace"]


def prefixes_first_only(steps: Mapping[str, Any]) -> bool:
    """Whether a text after a special token has no space in front, as Metaspace may say."""
    return any(step.get("prepend_scheme") == "first" for step in metaspaces(steps))


def stop_prefixing(steps: Mapping[str, Any]) -> None:
    """Change the steps to those of a text after another, which gets no space in front."""
    for step in metaspaces(steps):
        if step.get("prepend_scheme") == "first":
            step["prepend_scheme"] = "never"


def library_names(tokens: Sequence[str], hidden: Iterable[bool]) -> list[str]:
    """Return what tokens are called in the library; texts cannot become those that are hidden.

    >>> names = library_names(["<s>", "a", ""], [True, False, False])
    >>> names[1], len(names[0])
    ('a', 33)
    """
    prefix = secrets.token_hex(16)  # random: no text can contain such a name
    return [
        prefix + str(index) if is_hidden or not token else token
        for index, (token, is_hidden) in enumerate(zip(tokens, hidden, strict=True))
    ]


def library_normalizer(described: object) -> Callable[[str], str]:
    """Return what a normalizer of tokenizer.json does to a text.

    Raises UnsupportedModelError for one that the library does not have.

    >>> library_normalizer({"type": "Lowercase"})("A")
    'a'
    """
    empty = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
    try:
        made = Tokenizer.from_str(json.dumps({"normalizer": described, "model": empty}))
    except Exception as error:
        told = json.dumps(described, ensure_ascii=False)[:120]
        raise UnsupportedModelError(
            f"tokenizer.json: the library tokenizers cannot use normalizer {told}: {error}"
        ) from None
    normalize: Callable[[str], str] = made.normalizer.normalize_str
    return normalize
