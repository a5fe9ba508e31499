"""A tokenizer.json of WordPiece, as BERT has it, under the keys that GGUF has for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.added_tokens import added_keys
from akunu.tokenizers.vocabulary import CONTROL, NORMAL, SPACE, UNKNOWN, USER_DEFINED

_TAIL: Final = "##"
_LONGEST_WORD: Final = 100  # characters; what transformers has where the file has none
_WHERE: Final = "tokenizer.json"


def is_wordpiece(described: Mapping[str, Any]) -> bool:
    """Whether this tokenizer.json is one."""
    model = described.get("model")
    return isinstance(model, dict) and model.get("type") == "WordPiece"


def read_wordpiece(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return its keys; ModelFormatError and UnsupportedModelError where it is another kind."""
    model = described["model"]
    prefix = model.get("continuing_subword_prefix", _TAIL)
    longest = model.get("max_input_chars_per_word", _LONGEST_WORD)
    if prefix != _TAIL:
        _refuse(f"model.continuing_subword_prefix is {prefix!r}; akunu has {_TAIL!r}")
    if longest != _LONGEST_WORD:
        _refuse(f"model.max_input_chars_per_word is {longest!r}; akunu has {_LONGEST_WORD}")
    normalizer = _normalizer(described.get("normalizer"))
    pre = described.get("pre_tokenizer")
    if not isinstance(pre, dict) or pre.get("type") != "BertPreTokenizer":
        _refuse(f"pre_tokenizer is {pre!r}; akunu has BertPreTokenizer for WordPiece")
    unknown = model.get("unk_token", "[UNK]")
    special = _special(described)
    opens, closes = _frame(described.get("post_processor"))
    tokens = _tokens(model.get("vocab"))
    ids = {token: index for index, token in enumerate(tokens)}
    for name in (unknown, opens, closes):
        if name not in ids:
            raise ModelFormatError(f"{_WHERE}: {name!r} is not in model.vocab")
    types = [UNKNOWN if token == unknown else special.get(token, NORMAL) for token in tokens]
    if more := [token for token in special if token not in ids]:
        _refuse(f"added_tokens has {more[0]!r}, which model.vocab has not")
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [
            _spelled(token) if kind == NORMAL else token
            for token, kind in zip(tokens, types, strict=True)
        ],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.bos_token_id": ids[opens],
        "tokenizer.ggml.seperator_token_id": ids[closes],
        "tokenizer.ggml.unknown_token_id": ids[unknown],
        **added_keys(
            [{**token, "id": ids[token["content"]]} for token in _added(described)],
            ids,
            described.get("normalizer"),
        ),
        **normalizer,
    }


def _tokens(vocabulary: object) -> list[str]:
    if not isinstance(vocabulary, dict) or not vocabulary:
        raise ModelFormatError(f"{_WHERE}: model.vocab is missing")
    by_id: dict[int, str] = {}
    for token, index in vocabulary.items():
        if not isinstance(index, int) or isinstance(index, bool) or index in by_id:
            raise ModelFormatError(f"{_WHERE}: the id of {token!r} in model.vocab is {index!r}")
        by_id[index] = token
    if sorted(by_id) != list(range(len(by_id))):
        raise ModelFormatError(f"{_WHERE}: the ids in model.vocab have gaps")
    return [by_id[index] for index in range(len(by_id))]


def _spelled(token: str) -> str:
    """Return a token as GGUF has it: U+2581 before what begins a word."""
    return token.removeprefix(_TAIL) if token.startswith(_TAIL) else SPACE + token


def spelled_in_json(token: str) -> str:
    """Return a token as tokenizer.json has it, of one as GGUF has it.

    >>> spelled_in_json("ing"), spelled_in_json("\u2581go")
    ('##ing', 'go')
    """
    return token.removeprefix(SPACE) if token.startswith(SPACE) else _TAIL + token


def _added(described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        token
        for token in described.get("added_tokens") or []
        if isinstance(token, dict) and isinstance(token.get("content"), str)
    ]


def _special(described: Mapping[str, Any]) -> dict[str, int]:
    return {
        token["content"]: CONTROL if token.get("special") else USER_DEFINED
        for token in _added(described)
    }


def _frame(processor: object) -> tuple[str, str]:
    """Return the tokens before and after a text."""
    if isinstance(processor, dict) and processor.get("type") == "BertProcessing":
        return str(processor["cls"][0]), str(processor["sep"][0])
    single = processor.get("single") if isinstance(processor, dict) else None
    if isinstance(single, list) and len(single) == 3 and "Sequence" in single[1]:
        ends = [single[index].get("SpecialToken", {}).get("id") for index in (0, 2)]
        if all(isinstance(end, str) for end in ends):
            return ends[0], ends[1]
    _refuse("post_processor does not put one token before a text and one after it")


def _normalizer(normalizer: object) -> dict[str, bool]:
    if not isinstance(normalizer, dict) or normalizer.get("type") != "BertNormalizer":
        _refuse(f"normalizer is {normalizer!r}; akunu has BertNormalizer for WordPiece")
    for key in ("clean_text", "handle_chinese_chars"):
        if not normalizer.get(key, True):
            _refuse(f"normalizer.{key} is false; akunu has true")
    lowercase = bool(normalizer.get("lowercase", True))
    strips = normalizer.get("strip_accents")
    return {
        "tokenizer.ggml.normalizer.lowercase": lowercase,
        "tokenizer.ggml.normalizer.strip_accents": lowercase if strips is None else bool(strips),
    }


def _refuse(what: str) -> NoReturn:
    raise UnsupportedModelError(f"{_WHERE}: {what}")
