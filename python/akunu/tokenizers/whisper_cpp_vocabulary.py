"""The vocabulary of whisper.cpp's files: bytes of each word, and nothing else.

Which token is special follows from how many there are, as in whisper.cpp; how words are made of
pieces follows from their order, as in tiktoken, from which the order comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from akunu import _core
from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.pretokenizers import byte_alphabet
from akunu.tokenizers.vocabulary import CONTROL, NORMAL

_LANGUAGES: Final = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
    "ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr "
    "pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt "
    "haw ln ha ba jw su yue"
)
LANGUAGE_ORDER: Final = tuple(_LANGUAGES.split())
"""Codes in the order of their tokens; later models have more of them."""

_ENGLISH: Final = 51864
_FIRST_MULTILINGUAL: Final = 51865
_N_TIMESTAMPS: Final = 1501
_SECONDS_PER_TIMESTAMP: Final = 0.02
_BEHIND_LANGUAGES: Final = (
    *("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>"),
    *("<|nospeech|>", "<|notimestamps|>"),
)
_ENGLISH_LANGUAGES: Final = 99  # English models have tokens for them, too


def special_tokens(n_vocab: int) -> tuple[int, list[str]]:
    """Return the first special token and the names from there on, timestamps among them.

    Raises UnsupportedModelError for a number of tokens that no Whisper model has.

    >>> first, names = special_tokens(51864)
    >>> first, names[:3], names[-1]
    (50256, ['<|endoftext|>', '<|startoftranscript|>', '<|en|>'], '<|30.00|>')
    """
    n_languages = _ENGLISH_LANGUAGES
    if n_vocab != _ENGLISH:
        n_languages += n_vocab - _FIRST_MULTILINGUAL
        if not _ENGLISH_LANGUAGES <= n_languages <= len(LANGUAGE_ORDER):
            most = _FIRST_MULTILINGUAL + len(LANGUAGE_ORDER) - _ENGLISH_LANGUAGES
            raise UnsupportedModelError(
                f"n_vocab is {n_vocab}; files of whisper.cpp have {_ENGLISH} tokens (English) or "
                f"{_FIRST_MULTILINGUAL} to {most}, by which special ones are known"
            )
    names = ["<|endoftext|>", "<|startoftranscript|>"]
    names += [f"<|{code}|>" for code in LANGUAGE_ORDER[:n_languages]]
    names += _BEHIND_LANGUAGES
    names += [f"<|{i * _SECONDS_PER_TIMESTAMP:.2f}|>" for i in range(_N_TIMESTAMPS)]
    return n_vocab - len(names), names


def vocabulary_keys(words: Sequence[bytes], n_vocab: int) -> dict[str, Any]:
    """Return the keys `tokenizer.*` of a GGUF file with the same vocabulary.

    Raises ModelFormatError where words are missing, and what `special_tokens` raises.
    """
    first, names = special_tokens(n_vocab)
    # Multilingual files may leave out their last word, which is empty.
    if len(words) < first - 1 or (len(words) == first - 1 and n_vocab == _ENGLISH):
        raise ModelFormatError(
            f"there are {len(words)} words; a vocabulary of {n_vocab} tokens has {first}"
        )
    text = [*words[:first], *[b""] * (first - len(words))]
    letters = byte_alphabet()
    spelled = ["".join([letters[byte] for byte in word]) for word in text]
    for byte in {*range(256)} - {word[0] for word in text if len(word) == 1}:
        raise ModelFormatError(f"there is no word for the byte 0x{byte:02x}")
    merges = [f"{spelled[left]} {spelled[right]}" for left, right in _core.merges_by_rank(text)]
    types = np.full(n_vocab, NORMAL, np.int32)
    types[first:] = CONTROL
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [*spelled, *names],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": first,
        "tokenizer.ggml.bos_token_id": first,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
    }
