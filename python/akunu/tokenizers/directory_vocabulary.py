"""Reads the tokenizer of a Hugging Face or MLX directory.

`tokenizer.json` is what the `tokenizers` library runs: it has tokens, merges, and how text is cut
into words. It is translated into a `Vocabulary`, so that tokens, templates and grammars work as
with a GGUF file; a part without a translation is refused by name. `tokenizer_config.json`,
`config.json`, `generation_config.json` and `chat_template.jinja` add which tokens open and end a
text, and the chat template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.added_tokens import ADDED, added_keys, token_of
from akunu.tokenizers.library_steps import prefixes_first_only
from akunu.tokenizers.pretokenizers import FAMILIES, PreTokenizer
from akunu.tokenizers.sentencepiece_file import read_sentencepiece
from akunu.tokenizers.text_frame import TextFrame, frame_of
from akunu.tokenizers.tiktoken_file import read_tiktoken
from akunu.tokenizers.unigram import has_prefix, is_unigram, pieces_of, steps_of
from akunu.tokenizers.vocabulary import (
    BYTE,
    CONTROL,
    MODELS,
    NORMAL,
    SPACE,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    WORD_MODELS,
    Vocabulary,
    byte_of,
    read_vocabulary,
)
from akunu.tokenizers.word_models import KINDS, opens_without_space, steps_of_words
from akunu.tokenizers.wordpiece_json import is_wordpiece, read_wordpiece

_TOKENIZER: Final = "tokenizer.json"
_TOKENIZER_CONFIG: Final = "tokenizer_config.json"
_GENERATION_CONFIG: Final = "generation_config.json"
_TEMPLATE: Final = "chat_template.jinja"
_SENTENCEPIECE: Final = "tokenizer.model"
_TIKTOKEN: Final = "tiktoken.model"

_LARGEST: Final = 1 << 28  # bytes of a JSON file; tokenizers of 262,144 tokens have 33 MB

# What the library's ByteLevel cuts with, and its Punctuation.
_BYTE_LEVEL: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_PUNCTUATION: Final = r"[\p{P}\$\+<=>\^~\|`]"


def read_directory_vocabulary(directory: Path, config: Mapping[str, Any]) -> Vocabulary:
    """Read the tokenizer of a directory; `config` is its config.json.

    Raises ModelFormatError for files that are missing or contradict themselves, and
    UnsupportedModelError for a kind of tokenizer that akunu does not have; both name the file.
    """
    read = read_directory_tokenizer(directory, config)
    vocabulary = read_vocabulary(read.metadata, (*MODELS, *WORD_MODELS))
    types = vocabulary.types.copy()
    for index in read.stop_ids:
        if types[index] != UNKNOWN:
            types[index] = CONTROL
    if read.frame is not None:
        vocabulary = replace(
            vocabulary,
            pair_between=read.frame.between,
            pair_has_types=read.frame.pair_has_types,
        )
    return replace(
        vocabulary,
        pre=read.pre or vocabulary.pre,
        steps=read.steps or vocabulary.steps,
        types=types,
        stop_ids=vocabulary.stop_ids | frozenset(read.stop_ids),
        space_prefix_at_start_only=read.prefix_at_start_only,
        space_prefix_unless_there=read.prefix_unless_there,
        spells_spaces_late=read.spells_spaces_late,
        notes=(*read.notes, *map(said_of_directory, vocabulary.notes)),
    )


def read_directory_tokenizer(directory: Path, config: Mapping[str, Any]) -> ReadTokenizer:
    """Read the same as `read_directory_vocabulary`, under the keys of GGUF; raises what it does."""
    settings = _json_file(directory / _TOKENIZER_CONFIG) or {}
    generation = _json_file(directory / _GENERATION_CONFIG) or {}
    described = _json_file(directory / _TOKENIZER)
    if described is not None and config.get("model_type") == "whisper":
        described["post_processor"] = None  # what a text begins with is said for each
    if described is not None and is_wordpiece(described):
        read = _of_wordpiece(described)
    elif described is not None:
        read = _TokenizerJson(described).read()
    elif (directory / _SENTENCEPIECE).is_file():
        read = _of_sentencepiece(read_sentencepiece(directory / _SENTENCEPIECE))
    elif (directory / _TIKTOKEN).is_file():
        read = _of_tiktoken(read_tiktoken(directory / _TIKTOKEN, settings))
    else:
        raise ModelFormatError(
            f"there is no {_TOKENIZER}, {_SENTENCEPIECE} or {_TIKTOKEN}: the model has no tokenizer"
        )
    _limit(read, config)
    _add_special(read, settings, generation, config)
    template, more = _template(directory, settings)
    if template is not None:
        read.metadata["tokenizer.chat_template"] = template
    read.notes += more
    return read


@dataclass(slots=True)
class ReadTokenizer:
    """What a tokenizer's file says, under the keys that GGUF has for it."""

    metadata: dict[str, Any]
    pre: PreTokenizer | None = None
    prefix_at_start_only: bool = False
    prefix_unless_there: bool = False
    spells_spaces_late: bool = False
    adds: tuple[bool | None, bool | None] = (None, None)  # BOS, EOS
    stop_ids: list[int] = field(default_factory=list)
    frame: TextFrame | None = None
    steps: str = ""  # as `Vocabulary` has them
    not_bert: str = ""  # of WordPiece: why GGUF, which has BERT's, has none like it
    notes: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> list[str]:
        """The tokens in the order of their ids."""
        tokens: list[str] = self.metadata["tokenizer.ggml.tokens"]
        return tokens


class _TokenizerJson:
    """One tokenizer.json; every method refuses what it cannot translate."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._described = described
        self._model = _mapping(described.get("model"), "model")
        kind = self._model.get("type", "BPE" if "merges" in self._model else None)
        if kind not in ("BPE", "Unigram", *KINDS):
            _refuse(f"model is of type {kind!r}; akunu has BPE, Unigram, WordLevel and WordPiece")

    def read(self) -> ReadTokenizer:
        if is_unigram(self._described):
            return self._read_unigram()
        if self._model.get("type") in KINDS:
            return self._read_words()
        pieces = list(_flat(self._described.get("pre_tokenizer"), "pretokenizers"))
        byte_level = any(piece.get("type") == "ByteLevel" for piece in pieces)
        tokens, types = self._tokens(byte_level)
        metadata: dict[str, Any] = {
            "tokenizer.ggml.model": "gpt2" if byte_level else "llama",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": self._merges(),
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.ggml.add_space_prefix": False,
            **self._added_keys(),
        }
        result = ReadTokenizer(metadata)
        unknown = self._model.get("unk_token")
        if isinstance(unknown, str) and unknown in tokens:
            metadata["tokenizer.ggml.unknown_token_id"] = tokens.index(unknown)
        self._read_normalizer(result, byte_level)
        if byte_level:
            result.pre = self._cuts(pieces)
        else:
            self._read_metaspace(result, pieces)
        self._read_frame(result)
        for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
            if self._model.get(option):
                _refuse(f"model.{option} is {self._model[option]!r}; akunu has no such option")
        return result

    def _read_unigram(self) -> ReadTokenizer:
        pieces, scores = pieces_of(self._model)
        by_id = dict(enumerate(pieces))
        kinds = self._put_added(by_id)
        if sorted(by_id) != list(range(len(by_id))):
            _refuse_format("the ids of tokens have gaps")
        unknown = self._model.get("unk_id")
        if not isinstance(unknown, int) or unknown not in by_id:
            _refuse_format(f"model.unk_id is {unknown!r}, which is not a token")
        kinds[unknown] = UNKNOWN
        more = np.zeros(len(by_id) - len(pieces))
        metadata: dict[str, Any] = {
            "tokenizer.ggml.model": "t5",
            "tokenizer.ggml.tokens": [by_id[index] for index in range(len(by_id))],
            "tokenizer.ggml.token_type": [kinds.get(i, NORMAL) for i in range(len(by_id))],
            "tokenizer.ggml.scores": np.concatenate([scores, more]),
            "tokenizer.ggml.unknown_token_id": unknown,
            **self._added_keys(),
        }
        metadata["tokenizer.ggml.add_space_prefix"] = has_prefix(self._described)
        result = ReadTokenizer(metadata, steps=steps_of(self._described))
        result.prefix_at_start_only = prefixes_first_only(self._described)
        self._read_frame(result)
        return result

    def _read_words(self) -> ReadTokenizer:
        tokens, types = self._tokens(byte_level=False)
        text = steps_of_words(self._described)
        steps = json.loads(text)
        metadata: dict[str, Any] = {
            "tokenizer.ggml.model": KINDS[self._model["type"]],
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.add_space_prefix": opens_without_space(steps),
            **self._added_keys(),
        }
        if UNKNOWN in types:
            metadata["tokenizer.ggml.unknown_token_id"] = types.index(UNKNOWN)
        result = ReadTokenizer(metadata, steps=text)
        result.prefix_at_start_only = prefixes_first_only(steps)
        self._read_frame(result)
        return result

    def _added(self) -> list[dict[str, Any]]:
        added = self._described.get("added_tokens") or []
        if not isinstance(added, list) or not all(isinstance(each, dict) for each in added):
            _refuse_format("added_tokens is not a list of objects")
        return added

    def _put_added(self, by_id: dict[int, str]) -> dict[int, int]:
        """Put the added tokens among the others; return their kinds by id."""
        kinds: dict[int, int] = {}
        for each in self._added():
            content, position = each.get("content"), each.get("id")
            if not isinstance(content, str):
                _refuse_format("added_tokens has an entry without content")
            _put(by_id, position, content, "added_tokens")
            assert isinstance(position, int)
            kinds[position] = CONTROL if each.get("special") else USER_DEFINED
        return kinds

    def _added_keys(self) -> dict[str, Any]:
        vocab = self._model["vocab"]
        pieces = vocab if isinstance(vocab, dict) else {piece for piece, _ in vocab}
        return added_keys(self._added(), pieces, self._described.get("normalizer"))

    def _tokens(self, byte_level: bool) -> tuple[list[str], list[int]]:
        vocab = _mapping(self._model.get("vocab"), "model.vocab")
        by_id: dict[int, str] = {}
        for text, index in vocab.items():
            _put(by_id, index, text, "model.vocab")
        kinds = self._put_added(by_id)
        n = max(by_id, default=-1) + 1
        if n > 2 * len(by_id) + 1024:
            _refuse_format(f"the largest token id is {n - 1}, and there are {len(by_id)} tokens")
        tokens = [by_id.get(index, "") for index in range(n)]
        types = [kinds.get(i, NORMAL if i in by_id else UNUSED) for i in range(n)]
        if not byte_level and self._model.get("byte_fallback"):
            for index, text in enumerate(tokens):
                if types[index] == NORMAL and byte_of(text) is not None:
                    types[index] = BYTE
        unknown = self._model.get("unk_token")
        if not byte_level and isinstance(unknown, str) and unknown in vocab:
            types[vocab[unknown]] = UNKNOWN
        return tokens, types

    def _merges(self) -> list[str]:
        merges = self._model.get("merges")
        if not isinstance(merges, list):
            _refuse_format("model.merges is not a list")
        joined: list[str] = []
        for index, merge in enumerate(merges):
            if isinstance(merge, list) and len(merge) == 2:
                merge = f"{merge[0]} {merge[1]}"
            if not isinstance(merge, str):
                _refuse_format(f"model.merges[{index}] is neither a string nor a pair of them")
            joined.append(merge)
        return joined

    def _read_normalizer(self, result: ReadTokenizer, byte_level: bool) -> None:
        found: list[str] = []
        for piece in _flat(self._described.get("normalizer"), "normalizers"):
            kind = piece.get("type")
            if kind == "NFC":
                result.metadata["tokenizer.ggml.normalizer.nfc"] = True
            elif not byte_level and kind == "Prepend" and piece.get("prepend") == SPACE:
                if kind in found:
                    _refuse("normalizer Prepend is there twice; akunu has one space in front")
                result.metadata["tokenizer.ggml.add_space_prefix"] = True
            elif not byte_level and kind == "Replace" and _replaces_spaces(piece):
                pass  # what SentencePiece's tokenizers do here
            else:
                _refuse(f"normalizer {_as_json(piece)} is not supported")
            found.append(str(kind))
        result.spells_spaces_late = "Replace" not in found

    def _read_metaspace(self, result: ReadTokenizer, pieces: list[dict[str, Any]]) -> None:
        spells_spaces = not result.spells_spaces_late
        for piece in pieces:
            if piece.get("type") == "Metaspace" and piece.get("replacement") == SPACE:
                if piece.get("split", True):
                    _refuse("pre_tokenizer Metaspace with split is not supported for BPE")
                if result.metadata["tokenizer.ggml.add_space_prefix"]:
                    _refuse("pre_tokenizer Metaspace after another space before texts")
                scheme = piece.get("prepend_scheme", "always")
                if "prepend_scheme" not in piece and piece.get("add_prefix_space") is False:
                    scheme = "never"
                result.metadata["tokenizer.ggml.add_space_prefix"] = scheme != "never"
                result.prefix_at_start_only = scheme == "first"
                result.prefix_unless_there = spells_spaces = True
            elif not (spells_spaces and _splits_at_spaces(piece)):
                # (After what spells spaces, text has none any more: there is nothing to split.)
                _refuse(f"pre_tokenizer {_as_json(piece)} is not supported here")
        if not spells_spaces:
            _refuse(
                "nothing writes a space as U+2581, which akunu does where there is no ByteLevel"
            )

    def _cuts(self, pieces: list[dict[str, Any]]) -> PreTokenizer:
        splits: list[str] = []
        for piece in pieces:
            kind = piece.get("type")
            if kind == "ByteLevel":
                if piece.get("add_prefix_space"):
                    _refuse("pre_tokenizer ByteLevel with add_prefix_space is not supported")
                if piece.get("use_regex", True):
                    splits.append(_BYTE_LEVEL)
            elif kind == "Digits":
                splits.append(r"\p{N}" if piece.get("individual_digits") else r"\p{N}+")
            elif kind == "Punctuation" and piece.get("behavior") in ("Isolated", "Contiguous"):
                splits.append(_PUNCTUATION + ("+" if piece["behavior"] == "Contiguous" else ""))
            elif kind == "Split" and _isolates(piece):
                splits.append(_pattern(piece))
            else:
                _refuse(f"pre_tokenizer {_as_json(piece)} is not supported")
        ignores = bool(self._model.get("ignore_merges"))
        for family in FAMILIES:
            if family.splits == tuple(splits) and family.ignore_merges == ignores:
                return family
        return PreTokenizer(
            names=(_TOKENIZER,), splits=tuple(splits), ignore_merges=ignores, add_bos=False
        )

    def _read_frame(self, result: ReadTokenizer) -> None:
        """Read whether texts begin with a token and end with one, and what joins two."""
        for piece in _flat(self._described.get("post_processor"), "processors"):
            frame = frame_of(piece)
            if frame is not None:
                result.frame = frame
                result.adds = (frame.before is not None, frame.behind is not None)
                return
            if piece.get("type") != "ByteLevel":
                _refuse(f"post_processor {_as_json(piece)} is not supported")


# How messages on a vocabulary, which know GGUF's keys, are said of these files.
_SAID: Final = {
    "tokenizer.ggml.tokens": f"{_TOKENIZER}: token",
    "tokenizer.ggml.merges": f"{_TOKENIZER}: model.merges",
    "tokenizer.ggml.bos_token_id": f"{_TOKENIZER_CONFIG}: bos_token",
    "tokenizer.ggml.eos_token_id": f"{_TOKENIZER_CONFIG}: eos_token",
    "tokenizer.ggml.unknown_token_id": f"{_TOKENIZER}: unk_token",
    "tokenizer.chat_template": "the chat template",
}


def said_of_directory(message: str) -> str:
    """Return a message on a vocabulary in the words of a directory's files."""
    for key, said in _SAID.items():
        message = message.replace(key, said)
    return message


def _of_wordpiece(described: dict[str, Any]) -> ReadTokenizer:
    """BERT's under GGUF's keys; any other is run by the library as it is."""
    try:
        read = ReadTokenizer(read_wordpiece(described), adds=(True, None))
    except UnsupportedModelError as error:
        read = _TokenizerJson(described).read()
        read.not_bert = str(error)
        return read
    processor = described["post_processor"]
    if processor.get("pair"):
        read.frame = frame_of(processor)
    with suppress(UnsupportedModelError):  # without the file's decoder, as GGUF's are written
        read.steps = steps_of_words(described)
    return read


def _of_sentencepiece(metadata: dict[str, Any]) -> ReadTokenizer:
    return ReadTokenizer(metadata, adds=(True, False))


def _of_tiktoken(metadata: dict[str, Any]) -> ReadTokenizer:
    name = metadata["tokenizer.ggml.pre"]
    return ReadTokenizer(metadata, pre=next(each for each in FAMILIES if name in each.names))


def _limit(read: ReadTokenizer, config: Mapping[str, Any]) -> None:
    """Leave out tokens that the model has no rows for."""
    text = config.get("text_config")
    rows = config.get("vocab_size") or (text.get("vocab_size") if isinstance(text, dict) else None)
    tokens = read.tokens
    if not isinstance(rows, int) or rows < 1 or len(tokens) <= rows:
        return
    read.notes.append(
        f"{_TOKENIZER} has {len(tokens)} tokens, config.json: vocab_size is {rows}: the last "
        f"{len(tokens) - rows} are left out, {tokens[rows]!r} for example"
    )
    for key in ("tokens", "token_type", "scores"):
        if (values := read.metadata.get(f"tokenizer.ggml.{key}")) is not None:
            read.metadata[f"tokenizer.ggml.{key}"] = values[:rows]
    if ADDED in read.metadata:
        numbers = read.metadata[ADDED]
        read.metadata[ADDED] = [number for number in numbers if token_of(number) < rows]


def _add_special(
    read: ReadTokenizer,
    settings: dict[str, Any],
    generation: dict[str, Any],
    config: Mapping[str, Any],
) -> None:
    """Add which tokens open, end and fill up texts, by all files that may say so."""
    ids = {text: index for index, text in enumerate(read.tokens) if text}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
        index = ids.get(_content(settings.get(f"{name}_token")))
        if index is None and name in ("bos", "eos") and f"{name}_token" not in settings:
            index = next(iter(_id_list(generation, config, f"{name}_token_id")), None)
        # What opens a text of WordPiece was read from its template.
        is_read = name == "bos" and f"tokenizer.ggml.{key}_token_id" in read.metadata
        if index is not None and not is_read:
            read.metadata[f"tokenizer.ggml.{key}_token_id"] = index
    ends = _id_list(generation, config, "eos_token_id")
    read.stop_ids = [index for index in ends if 0 <= index < len(read.tokens)]
    if unknown := [index for index in ends if index not in read.stop_ids]:
        read.notes.append(
            f"eos_token_id {unknown[0]} is ignored: {_TOKENIZER} has {len(read.tokens)} tokens"
        )
    # An encoder's template names other tokens.
    is_wordpiece_frame = read.metadata["tokenizer.ggml.model"] == "bert"
    if read.frame is not None and read.frame.behind is not None and not is_wordpiece_frame:
        read.metadata["tokenizer.ggml.eos_token_id"] = read.frame.behind
        if read.frame.before is not None:
            read.metadata["tokenizer.ggml.bos_token_id"] = read.frame.before
    for name, said in zip(("bos", "eos"), read.adds, strict=True):
        setting = settings.get(f"add_{name}_token")
        adds = setting if isinstance(setting, bool) else said
        read.metadata[f"tokenizer.ggml.add_{name}_token"] = bool(adds)


def _id_list(generation: dict[str, Any], config: Mapping[str, Any], key: str) -> list[int]:
    ids: list[int] = []
    for source in (generation, config):
        value = source.get(key)
        for index in value if isinstance(value, list) else [value]:
            if isinstance(index, int) and not isinstance(index, bool) and index not in ids:
                ids.append(index)
    return ids


def _content(token: object) -> str:
    """Return the text of a token that a config writes as a string or as an object."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _template(directory: Path, settings: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Return the chat template and notes, from chat_template.jinja or the tokenizer's settings."""
    path = directory / _TEMPLATE
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8"), []
        except (OSError, UnicodeDecodeError) as error:
            return None, [f"{_TEMPLATE} is ignored: {error}"]
    given = settings.get("chat_template")
    if isinstance(given, list):
        named = {
            str(each.get("name")): each.get("template") for each in given if isinstance(each, dict)
        }
        others = [name for name in named if name != "default"]
        notes = (
            [f"{_TOKENIZER_CONFIG}: chat_template has {', '.join(others)} besides: ignored"]
            if others
            else []
        )
        given = named.get("default")
        return (given if isinstance(given, str) else None), notes
    if given is not None and not isinstance(given, str):
        return None, [f"{_TOKENIZER_CONFIG}: chat_template is ignored: it is not a string"]
    return given, []


def _json_file(path: Path) -> dict[str, Any] | None:
    """Return the object in a file, None where there is no such file."""
    if not path.is_file():
        return None
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise ModelFormatError(f"{path.name} has {size} bytes, at most {_LARGEST} are read")
        given = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path.name} cannot be read as JSON: {error}") from None
    if not isinstance(given, dict):
        raise ModelFormatError(f"{path.name} is not a JSON object")
    return given


def _flat(piece: object, key: str) -> Iterator[dict[str, Any]]:
    """Yield the steps of a part of tokenizer.json, those of a Sequence one by one."""
    if piece is None:
        return
    step = _mapping(piece, key.removesuffix("s"))
    if step.get("type") != "Sequence":
        yield step
        return
    steps = step.get(key)
    if not isinstance(steps, list):
        _refuse_format(f"a Sequence without {key}")
    for each in steps:
        yield from _flat(each, key)


def _replaces_spaces(piece: dict[str, Any]) -> bool:
    return piece.get("pattern") == {"String": " "} and piece.get("content") == SPACE


def _splits_at_spaces(piece: dict[str, Any]) -> bool:
    return piece.get("type") == "Split" and piece.get("pattern") == {"String": " "}


def _isolates(piece: dict[str, Any]) -> bool:
    """Whether a Split keeps matches as their own words, and what is between them.

    Published expressions of the second form match all of a text, so nothing is removed.
    """
    behaviour = (piece.get("behavior"), bool(piece.get("invert")))
    return behaviour in (("Isolated", False), ("Removed", True)) and _pattern(piece) != ""


def _pattern(piece: dict[str, Any]) -> str:
    pattern = piece.get("pattern")
    regex = pattern.get("Regex") if isinstance(pattern, dict) else None
    return regex if isinstance(regex, str) else ""


def _put(by_id: dict[int, str], index: object, text: str, where: str) -> None:
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        _refuse_format(f"{where} has {index!r} as the id of {text!r}")
    if by_id.get(index, text) != text:
        _refuse_format(f"{where}: id {index} is {text!r}, and {by_id[index]!r} too")
    by_id[index] = text


def _mapping(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse_format(f"{key} is {'missing' if value is None else 'not an object'}")
    return value


def _as_json(piece: dict[str, Any]) -> str:
    text = json.dumps(piece, ensure_ascii=False)
    return text if len(text) <= 120 else text[:120] + "..."


def _refuse(what: str) -> NoReturn:
    raise UnsupportedModelError(f"{_TOKENIZER}: {what}")


def _refuse_format(what: str) -> NoReturn:
    raise ModelFormatError(f"{_TOKENIZER}: {what}")
