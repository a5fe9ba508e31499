"""Reads a `tiktoken.model`, as Kimi's models have: a line for each token, its bytes and its rank.

The result has the keys that a GGUF file has for the same tokenizer (`tokenizer.ggml.*`). The file
says neither how text is cut into words nor which tokens are special: the first is code next to it,
known here by the class that `tokenizer_config.json` names, the second is in that file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn

from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.vocabulary import CONTROL, NORMAL, USER_DEFINED

_LARGEST: Final = 1 << 28  # bytes; real ones have 3 MB
_FAMILY: Final = {"TikTokenTokenizer": "kimi-k2"}
"""Classes of tokenizers, and the families of their expressions."""
_RESERVED: Final = 256
"""Special tokens after those of the file; those without a name have one with their number."""


def read_tiktoken(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tokenizer's numbers under the keys of GGUF; `settings`: tokenizer_config.json.

    Raises ModelFormatError for any other file, and UnsupportedModelError if akunu does not know how
    it splits text into words.
    """
    family = _FAMILY.get(str(settings.get("tokenizer_class")))
    if family is None:
        raise UnsupportedModelError(
            f"{path.name} does not have the rule that splits text into words; akunu knows it for "
            f"the tokenizer_class {', '.join(_FAMILY)}, and tokenizer_config.json has "
            f"{settings.get('tokenizer_class')!r}"
        )
    ranks = _ranks(path)
    letters = _letters()
    spelled = ["".join(letters[byte] for byte in token) for token in ranks]
    tokens, types = list(spelled), [NORMAL] * len(spelled)
    added = settings.get("added_tokens_decoder")
    named = added if isinstance(added, dict) else {}
    for index in range(len(spelled), len(spelled) + _RESERVED):
        token = named.get(str(index))
        content = token.get("content") if isinstance(token, dict) else None
        tokens.append(content if isinstance(content, str) else f"<|reserved_token_{index}|>")
        is_special = not isinstance(token, dict) or token.get("special", True)
        types.append(CONTROL if is_special else USER_DEFINED)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": family,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": _merges(ranks, spelled),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
    }


def _ranks(path: Path) -> dict[bytes, int]:
    """Return the rank of each token, in order of ranks, which are their ids."""
    try:
        if path.stat().st_size > _LARGEST:
            _refuse(path, f"it has more than {_LARGEST} bytes")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ModelFormatError(f"{path.name} cannot be read: {error}") from None
    found: dict[int, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            text, rank = line.split()
            found[int(rank)] = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            _refuse(path, f"line {number} is not a token in base64 with its rank")
    if not found or sorted(found) != list(range(len(found))):
        _refuse(path, "the ranks of its tokens are not 0, 1, 2, ...")
    ranks = {found[rank]: rank for rank in range(len(found))}
    if len(ranks) != len(found):
        _refuse(path, "a token occurs twice")
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        _refuse(path, f"the byte {missing[0]} is not a token")
    return ranks


def _merges(ranks: Mapping[bytes, int], spelled: list[str]) -> list[str]:
    """Return pairs that become a token, in the order of what they become: the lowest is first.

    tiktoken joins whatever two neighbours make the token of the lowest rank, however it is cut.
    """
    merges = []
    for token, rank in ranks.items():
        cuts = (
            (ranks.get(token[:at], rank), ranks.get(token[at:], rank))
            for at in range(1, len(token))
        )
        merges += [
            f"{spelled[left]} {spelled[right]}"
            for left, right in sorted(cuts)
            if left < rank and right < rank
        ]
    return merges


def _letters() -> list[str]:
    """Return the letter that stands for each byte in vocabularies on bytes."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = count(256)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def _refuse(path: Path, why: str) -> NoReturn:
    raise ModelFormatError(f"{path.name} is not a tiktoken file: {why}")
