"""Reads and checks the vocabulary in a file's metadata; nothing after this meets a bad value.

`read_vocabulary` takes the keys `tokenizer.*` of a GGUF file, in the types that
`akunu._core.GgufFile` gives them (str, bool, int, float, list of str, numeric array), and returns
a `Vocabulary` or raises a `ModelFormatError` that names the key and, in arrays, the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu.common.metadata import TOKENS, Metadata, Reader, is_utf8
from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.added_tokens import AddedToken, read_added
from akunu.tokenizers.pretokenizers import BY_NAME, PreTokenizer
from akunu.tokenizers.unigram import steps_of_gguf

UNDEFINED: Final = 0
NORMAL: Final = 1
UNKNOWN: Final = 2
CONTROL: Final = 3
USER_DEFINED: Final = 4
UNUSED: Final = 5
BYTE: Final = 6

MODELS: Final = ("gpt2", "llama", "bert", "gemma4", "t5")

# Those of a tokenizer.json that no file of GGUF has.
WORD_MODELS: Final = ("wordlevel", "wordpiece")

SPACE: Final = "\u2581"  # how SentencePiece and WordPiece vocabularies spell a space

TOKEN_TYPE: Final = "tokenizer.ggml.token_type"
SCORES: Final = "tokenizer.ggml.scores"
MERGES: Final = "tokenizer.ggml.merges"
CHAT_TEMPLATE: Final = "tokenizer.chat_template"

# A model that has these can be spoken to without its own template.
CHATML_TOKENS: Final = ("<|im_start|>", "<|im_end|>")

# Tokens after which a model has said what it had to say, best known first: where the file names
# no end-of-turn token, the first one present is it.
_END_OF_TURN: Final = (
    "<|eot_id|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<end_of_utterance>",
)
_MORE_STOPS: Final = (
    "<|eom_id|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|tool_response>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)
# These spellings may also be ordinary text, so they stop only where the file marks them.
_STOPS_IF_MARKED: Final = ("</s>", "<eos>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "[e~[")

_CONTROL_SHAPE: Final = re.compile(r"<\|[^|<>\s]+\|>|<\uff5c[^<>\s]+\uff5c>")
_BYTE_SHAPE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """A checked vocabulary: every id is in range, every array as long as it must be."""

    model: str  # one of MODELS ("t5" is Unigram) or WORD_MODELS
    pre: PreTokenizer
    tokens: list[str]  # "" where `raw` has the token
    raw: dict[int, bytes]  # tokens that are not UTF-8: text is never tokenized to them
    types: NDArray[np.int32]  # [n_tokens], one of NORMAL .. BYTE
    scores: NDArray[np.floating[Any]] | None  # [n_tokens], of "llama" and "t5"
    merges: list[str]  # "left right", best first; of "llama" only where there are no scores
    ids: dict[str, int]  # text -> id, all tokens but empty ones
    bos_id: int | None
    eos_id: int | None
    eot_id: int | None
    pad_id: int | None
    unk_id: int | None
    sep_id: int | None
    add_bos: bool
    add_eos: bool
    add_space_prefix: bool
    lowercase: bool
    strip_accents: bool
    nfc: bool
    stop_ids: frozenset[int]
    chat_template: str | None
    chat_template_fault: str  # why the file's template cannot be used, "" where nothing is wrong
    notes: tuple[str, ...]  # what the file says and was ignored, a line each
    # With `add_space_prefix`: whether text after a special token gets no space.
    space_prefix_at_start_only: bool = False
    # Tokens between two texts that are read together; (): the file does not say.
    pair_between: tuple[int, ...] = ()
    # JSON. Model "t5": what happens to a text before pieces are looked for. WORD_MODELS: also how
    # tokens are written.
    steps: str = ""
    pair_has_types: bool = False  # whether tokens of the second text are of another type
    # With `add_space_prefix`: whether text that begins with a space gets no other one.
    space_prefix_unless_there: bool = False
    # Model "llama": whether added tokens are found before spaces are replaced by U+2581.
    spells_spaces_late: bool = False
    # By id: added tokens for which the type alone does not say how they are found in a text, in
    # the order in which they are tried. From a tokenizer.json: all added tokens.
    added: dict[int, AddedToken] = field(default_factory=dict)


def byte_of(token: str) -> int | None:
    """Return the byte that a token spelled `<0xAB>` stands for, else None.

    >>> byte_of("<0x0A>")
    10
    """
    match = _BYTE_SHAPE.fullmatch(token)
    return int(match[1], 16) if match else None


def read_vocabulary(metadata: Metadata, models: Sequence[str] = MODELS) -> Vocabulary:
    """Read and check the keys `tokenizer.*`; `models`: the tokenizer models that they may name.

    What a model can do without is ignored where it is wrong, with a note. Raises ModelFormatError
    for what contradicts itself, UnsupportedModelError for a tokenizer model or pre-tokenizer that
    akunu does not have.
    """
    reader = Reader(metadata)
    model = reader.string("tokenizer.ggml.model")
    if model is None:
        raise ModelFormatError("tokenizer.ggml.model is missing: the file has no tokenizer")
    if model not in models:
        raise UnsupportedModelError(
            f"tokenizer model {model!r} is not supported; known are {', '.join(models)}"
        )
    pre = _pre_tokenizer(reader, model)
    tokens, raw = reader.strings(TOKENS)
    if not tokens:
        raise ModelFormatError(f"{TOKENS} is empty")
    if raw:
        reader.notes.append(
            f"{_some(raw, TOKENS)} not valid UTF-8: text is never tokenized to them"
        )
    ids = _ids_by_text(tokens)
    types = _types(reader, len(tokens))
    # tokenizer.json has merges where SentencePiece has scores.
    by_rank = model == "llama" and MERGES in metadata and SCORES not in metadata
    scores = (
        _scores(reader, len(tokens), model) if model in ("llama", "t5") and not by_rank else None
    )
    merges = _merges(reader) if model in ("gpt2", "gemma4") or by_rank else []

    def special(name: str, default: int | None = None, needed: bool = False) -> int | None:
        key = f"tokenizer.ggml.{name}_token_id"
        value = reader.token_id(key, len(tokens), needed=needed)
        if value is None and default is not None and default < len(tokens):
            return default
        return value

    spm, bert = model == "llama", model == "bert"
    bos_id = special("bos", 1 if spm else None)
    eos_id = special("eos", 2 if spm else None)
    eot_id, eom_id = special("eot"), special("eom")
    if eot_id is None:
        eot_id = next((ids[text] for text in _END_OF_TURN if text in ids), None)
    stop_ids = _stop_ids(ids, types, (eos_id, eot_id, eom_id))
    # Characters without a token become bytes, or unknown where not all bytes are there.
    spells_all = model in ("gpt2", *WORD_MODELS) or int(np.count_nonzero(types == BYTE)) == 256
    unk_id = special("unknown", 0 if spm else 100 if bert else None, needed=not spells_all)
    if bert and bos_id is None:  # [CLS] opens a text
        bos_id = special("cls", 101, needed=True)
    # Spelled so in files.
    sep_id = special("seperator", 102, needed=True) if bert else special("seperator")
    if bert and (bos_id is None or sep_id is None or unk_id is None):
        raise ModelFormatError(
            "a bert vocabulary needs tokenizer.ggml.cls_token_id, seperator_token_id and "
            "unknown_token_id"
        )
    added = read_added(reader, tokens, types, (UNKNOWN, CONTROL, USER_DEFINED))
    marked = types.copy()
    _mark_control(marked, tokens, ids, stop_ids, (bos_id, eos_id) if not types.any() else ())
    marked[marked == UNDEFINED] = NORMAL
    if raw:
        indices = np.fromiter(raw, np.int64)
        marked[indices[np.isin(marked[indices], (NORMAL, USER_DEFINED, BYTE))]] = UNUSED
    if spm or model == "gemma4":
        # Spelled with U+2581, such a token is not to be found in text: it comes out of merging.
        for index in np.flatnonzero(marked == USER_DEFINED).tolist():
            if SPACE in tokens[index]:
                marked[index] = NORMAL
        _check_bytes(marked, tokens)

    add_bos = reader.flag("tokenizer.ggml.add_bos_token")
    if model == "gemma4":
        add_bos = True  # files say false by mistake; every user of them overrides it
    elif add_bos is None:
        adds = spm or bert or model == "t5" or (model == "gpt2" and pre.add_bos)
        add_bos = adds and bos_id is not None
    add_eos = reader.flag("tokenizer.ggml.add_eos_token")
    if add_eos is None:
        add_eos = model == "t5" and eos_id is not None
    if add_bos and bos_id is None:
        reader.notes.append(_nothing_to_add("bos"))
        add_bos = False
    if add_eos and eos_id is None:
        reader.notes.append(_nothing_to_add("eos"))
        add_eos = False
    space_prefix = reader.flag("tokenizer.ggml.add_space_prefix")
    lowercase = reader.flag("tokenizer.ggml.normalizer.lowercase")
    lowercase = True if lowercase is None else lowercase
    strip_accents = reader.flag("tokenizer.ggml.normalizer.strip_accents")
    nfc = reader.flag("tokenizer.ggml.normalizer.nfc")
    pad_id = special("padding")
    chatml = all(text in ids and marked[ids[text]] == CONTROL for text in CHATML_TOKENS)
    chat_template, fault = _chat_template(reader, chatml)
    between: list[int] = []
    if bert and sep_id is not None:
        between = [sep_id]
    elif add_eos and eos_id is not None:
        # RoBERTa's kind has two: what ends the first text, and one more.
        separates = reader.flag("tokenizer.ggml.add_sep_token")
        between = [eos_id]
        if (model == "t5" or pre.add_sep) if separates is None else separates:
            between.append(eos_id if sep_id is None else sep_id)
    return Vocabulary(
        pair_between=tuple(between),
        pair_has_types=bert,
        steps=_unigram_steps(reader) if model == "t5" else "",
        model=model,
        pre=pre,
        tokens=tokens,
        raw=raw,
        types=marked,
        scores=scores,
        merges=merges,
        ids=ids,
        bos_id=bos_id,
        eos_id=eos_id,
        eot_id=eot_id,
        pad_id=pad_id,
        unk_id=unk_id,
        sep_id=sep_id,
        add_bos=add_bos,
        add_eos=add_eos,
        add_space_prefix=(spm or model == "t5")
        if space_prefix is None
        else space_prefix and not bert,
        lowercase=lowercase,
        strip_accents=lowercase if strip_accents is None else strip_accents,
        nfc=bool(nfc),
        stop_ids=stop_ids,
        chat_template=chat_template,
        chat_template_fault=fault,
        notes=tuple(reader.notes),
        added=added,
    )


def _unigram_steps(reader: Reader) -> str:
    charsmap = reader.value("tokenizer.ggml.precompiled_charsmap")
    collapses = reader.flag("tokenizer.ggml.remove_extra_whitespaces")
    prefixes = reader.flag("tokenizer.ggml.add_space_prefix")
    return steps_of_gguf(
        b"" if charsmap is None else np.asarray(charsmap).astype(np.uint8).tobytes(),
        collapses=collapses is None or collapses,
        prefixes=prefixes is None or prefixes,
    )


def _some(indices: Iterable[int], key: str) -> str:
    """Say which entries of an array it is about: the first, and how many there are."""
    first, *others = sorted(indices)
    if not others:
        return f"{key}[{first}] is"
    return f"{key}[{first}] and {len(others)} more are"


def _nothing_to_add(name: str) -> str:
    key = f"tokenizer.ggml.{name}_token_id"
    return f"{key} is missing: no {name.upper()} is added to texts, although the model expects one"


def _merges(reader: Reader) -> list[str]:
    """Return the merges without those that no text can meet."""
    merges, raw = reader.strings(MERGES)
    if not raw:
        return merges
    reader.notes.append(f"{_some(raw, MERGES)} not valid UTF-8: ignored")
    return [merge for index, merge in enumerate(merges) if index not in raw]


def _chat_template(reader: Reader, chatml: bool) -> tuple[str | None, str]:
    """Return the template, None where there is none or a blank one, and what is wrong with it.

    Completing texts does without, so an unusable template is an error of who asks for a chat.
    """
    value = reader.value(CHAT_TEMPLATE)
    fault = ""
    if value is not None and not isinstance(value, str):
        fault = f"{CHAT_TEMPLATE} is {type(value).__name__}, expected a string"
    elif isinstance(value, str) and not is_utf8(value):
        before = value[: next(i for i, c in enumerate(value) if "\ud800" <= c <= "\udfff")]
        fault = f"{CHAT_TEMPLATE} is not valid UTF-8 at byte {len(before.encode())}"
    if fault:
        reader.notes.append(f"{fault}: the model cannot be used for conversations")
        return None, fault
    if isinstance(value, str) and value.strip():
        return value, ""
    if chatml:
        lack = "missing" if value is None else "blank"
        reader.notes.append(f"{CHAT_TEMPLATE} is {lack}: conversations are written as ChatML")
    elif value is not None:
        reader.notes.append(f"{CHAT_TEMPLATE} is blank: the model cannot be used for conversations")
    return None, ""


def _pre_tokenizer(reader: Reader, model: str) -> PreTokenizer:
    name = reader.string("tokenizer.ggml.pre")
    if model != "gpt2":  # the others have one way to cut text each
        return BY_NAME["default"]
    # An old file without the key is cut as "default", which may differ from its own family
    # (llama.cpp does the same).
    if not name:
        return BY_NAME["default"]
    if name not in BY_NAME:
        raise UnsupportedModelError(
            f"pre-tokenizer {name!r} (tokenizer.ggml.pre) is not supported; "
            f"known are {', '.join(sorted(BY_NAME))}"
        )
    return BY_NAME[name]


def _ids_by_text(tokens: list[str]) -> dict[str, int]:
    ids = dict(zip(tokens, range(len(tokens)), strict=True))
    n_empty = tokens.count("")
    ids.pop("", None)
    if len(ids) + n_empty != len(tokens):
        seen: dict[str, int] = {}
        for index, token in enumerate(tokens):
            if token and token in seen:
                raise ModelFormatError(
                    f"{TOKENS}[{index}] is {token!r}, and so is {TOKENS}[{seen[token]}]"
                )
            seen[token] = index
    return ids


def _types(reader: Reader, n_tokens: int) -> NDArray[np.int32]:
    """Return the types, or zeros where the file has none."""
    array = reader.numbers(TOKEN_TYPE, n_tokens, "iu")
    if array is None:
        return np.zeros(n_tokens, np.int32)
    bad = np.flatnonzero((array < UNDEFINED) | (array > BYTE))  # type: ignore[operator]
    if bad.size:
        index = int(bad[0])
        raise ModelFormatError(f"{TOKEN_TYPE}[{index}] is {array[index]}, expected 1 to 6")
    undefined = np.flatnonzero(array == UNDEFINED).tolist()
    if undefined:
        reader.notes.append(f"{_some(undefined, TOKEN_TYPE)} 0 (undefined): taken as normal")
    return array.astype(np.int32)


def _scores(reader: Reader, n_tokens: int, model: str) -> NDArray[np.floating[Any]]:
    array = reader.numbers(SCORES, n_tokens, "iuf")
    if array is None:
        raise ModelFormatError(f"{SCORES} is missing; a tokenizer of model {model!r} needs it")
    # Sums of Unigram's scores decide, as exactly as the file has them.
    scores: NDArray[np.floating[Any]]
    scores = array.astype(np.float64) if model == "t5" else array.astype(np.float32)
    bad = np.flatnonzero(np.isnan(scores))
    if bad.size:
        raise ModelFormatError(f"{SCORES}[{int(bad[0])}] is not a number")
    return scores


def _check_bytes(types: NDArray[np.int32], tokens: list[str]) -> None:
    for index in np.flatnonzero(types == BYTE).tolist():
        if byte_of(tokens[index]) is None:
            raise ModelFormatError(
                f"{TOKENS}[{index}] is {tokens[index]!r}, but its type is byte: "
                "expected <0x00> to <0xFF>"
            )


def _stop_ids(
    ids: dict[str, int], types: NDArray[np.int32], named: tuple[int | None, ...]
) -> frozenset[int]:
    stops = {value for value in named if value is not None}
    stops.update(ids[text] for text in _END_OF_TURN + _MORE_STOPS if text in ids)
    marked = (CONTROL, USER_DEFINED)
    stops.update(
        ids[text] for text in _STOPS_IF_MARKED if text in ids and types[ids[text]] in marked
    )
    # In these two families a token that ends a turn elsewhere is something else: "<|end|>" ends
    # one part of a gpt-oss answer, "</s>" is a tag for Gemma 4.
    texts = {text for text in ids.keys() & {"<|return|>", "<|call|>", "<|calls|>", "<|flush|>"}}
    if texts >= {"<|return|>", "<|call|>"} or texts >= {"<|calls|>", "<|flush|>"}:
        stops.discard(ids.get("<|end|>", -1))
    if "<|tool_response>" in ids:
        stops.discard(ids.get("</s>", -1))
    return frozenset(stops | ({named[0]} if named[0] is not None else set()))


def _mark_control(
    types: NDArray[np.int32],
    tokens: list[str],
    ids: dict[str, int],
    stop_ids: frozenset[int],
    more: tuple[int | None, ...],
) -> None:
    """Mark as control what must never come out of a user's text although the file says otherwise.

    Some converters call chat markers such as `<|im_end|>` user-defined or even normal.
    """
    for index in [*stop_ids, *(value for value in more if value is not None)]:
        if tokens[index] and types[index] != UNKNOWN:
            types[index] = CONTROL
    for index in np.flatnonzero(types == USER_DEFINED).tolist():
        if _CONTROL_SHAPE.fullmatch(tokens[index]):
            types[index] = CONTROL
