"""Tokenizers of directories in C, beside the library `tokenizers` and the Python package."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_library import FILE, UNSUPPORTED, CError, Handle, Library, LoadOptions
from charsmap import precompiled
from random_texts import random_texts
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

import akunu
from lines import each_line

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(*cuts: Any, normalizer: Any = None, **options: Any) -> Tokenizer:
    """A tokenizer on bytes with a few merges."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("a", "t"), ("Ġ", "the"), ("1", "2"), ("12", "3")]
    tokens = [*letters, *(a + b for a, b in merges)]
    model = models.BPE({token: i for i, token in enumerate(tokens)}, merges, **options)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not cuts)]
    )
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("</s>")])
    return tokenizer


def split(behaviour: str = "isolated", **options: Any) -> Any:
    return pre_tokenizers.Split(Regex(LLAMA3), behaviour, **options)


def sentencepiece(*steps: Any, cut: Any = None) -> Tokenizer:
    """A tokenizer on characters as Llama 2's and Gemma's, with bytes for those that are missing."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁theao12é"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("a", "t"), ("▁", "a"), ("▁", "▁")]
    tokens += [a + b for a, b in merges]
    options = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    model = models.BPE({token: i for i, token in enumerate(tokens)}, merges, **options)
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens([AddedToken(token) for token in ("<unk>", "<s>", "</s>")])
    if steps:
        tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    if cut is not None:
        tokenizer.pre_tokenizer = cut
    return tokenizer


def wordpiece(**options: Any) -> Tokenizer:
    """A tokenizer as BERT's."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"theao1,日é", "the", "##at", "##t", "##h", "##é"]
    model = models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def unigram(*steps: Any, cut: Any, byte_fallback: bool = False) -> Tokenizer:
    """A tokenizer as T5's and XLM-R's: pieces with scores, and characters that have none."""
    pieces = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁the", -2.0), ("▁", -1.5)]
    pieces += [(letter, -3.0 - index / 8) for index, letter in enumerate("theaofi127中")]
    pieces += [("at", -3.1), ("hat", -4.9), ("▁h", -3.3), ("th", -3.2), ("fi", -4.5), ("é", -6.0)]
    if byte_fallback:
        pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=byte_fallback))
    if steps:
        tokenizer.normalizer = normalizers.Sequence([*steps])
    tokenizer.pre_tokenizer = cut
    tokenizer.add_special_tokens([AddedToken(token) for token in ("<s>", "</s>", "<unk>")])
    return tokenizer


def metaspace(scheme: str = "always", **options: Any) -> Any:
    return pre_tokenizers.Metaspace("▁", scheme, **options)


def compatible() -> Any:
    """A table as SentencePiece's: compatible forms, and marks that are put together."""
    known = {
        chr(code): unicodedata.normalize("NFKC", chr(code))
        for code in [*range(0xA0, 0x180), *range(0xFB00, 0xFB07), *range(0xFF01, 0xFF5F), 0x3000]
    }
    known = {key: text for key, text in known.items() if text != key}
    known |= {"e\u0301": "é", "\r\n": " ", "\t": " ", "\n": " ", "\u200d": "", "®": "R", "\x7f": ""}
    table = base64.b64encode(precompiled(known)).decode()
    described = {"type": "Precompiled", "precompiled_charsmap": table}
    holder = json.loads(Tokenizer(models.BPE()).to_str())
    made = Tokenizer.from_str(json.dumps({**holder, "normalizer": described})).normalizer
    assert made.normalize_str("ﬁ e\u0301\r\n\uff11") == "fi é 1"  # the library reads it, too
    return made


COLLAPSE = normalizers.Replace(Regex(" {2,}"), "▁")
UNIGRAMS: dict[str, Callable[[], Tokenizer]] = {
    "t5": lambda: unigram(compatible(), COLLAPSE, cut=metaspace()),
    "xlm-r": lambda: unigram(
        compatible(),
        cut=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace()]),
    ),
    "stripped": lambda: unigram(normalizers.Strip(), cut=metaspace("first")),
    "stripped on the right": lambda: unigram(
        normalizers.Strip(left=False), normalizers.Lowercase(), cut=metaspace("never")
    ),
    "composed": lambda: unigram(normalizers.NFC(), cut=metaspace(split=False)),
    "bytes": lambda: unigram(
        normalizers.NFD(), normalizers.Replace("`", "'"), cut=metaspace(), byte_fallback=True
    ),
}


@pytest.mark.parametrize("kind", UNIGRAMS)
def test_unigram_is_that_of_the_library(library: Library, tmp_path: Path, kind: str) -> None:
    theirs = UNIGRAMS[kind]()
    folder = saved(tmp_path, theirs)
    handle, package = opened(library, folder), akunu.Tokenizer.from_directory(folder)
    more = ["a\u0903", "®\u200d®", "\u0600a", "\r\n\u0301", "ﬁﬁ\u0301", " that  hat ", "\u3000the"]
    for text in [*more, *random_texts(2000, seed=6)]:
        if "<S>" in text or "</S>" in text:  # in lower case it is a control token, for theirs
            continue
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert library.encode(handle, text, parse=True) == expected, repr(text)
        assert package.encode(text, add_special=False, parse_special=True) == expected, repr(text)
    ids = list(range(theirs.get_vocab_size()))
    assert library.decode(handle, ids) == package.decode(ids)


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "bytes": byte_level,
    "digits": lambda: byte_level(pre_tokenizers.Digits(individual_digits=True), split()),
    "groups of digits": lambda: byte_level(pre_tokenizers.Digits(), split()),
    "an expression": lambda: byte_level(split(), ignore_merges=True),
    "removed and inverted": lambda: byte_level(split("removed", invert=True)),
    "punctuation": lambda: byte_level(pre_tokenizers.Punctuation("contiguous"), split()),
    "nfc": lambda: byte_level(normalizer=normalizers.NFC()),
    "a space in front": lambda: sentencepiece(normalizers.Prepend("▁")),
    "nfc, no space in front": lambda: sentencepiece(normalizers.NFC()),
    "never a space in front": lambda: sentencepiece(
        cut=pre_tokenizers.Metaspace("▁", "never", split=False)
    ),
}


@pytest.mark.parametrize(
    "options", [{}, {"lowercase": False}, {"strip_accents": False}, {"strip_accents": True}]
)
def test_wordpiece_is_that_of_the_library(
    library: Library, tmp_path: Path, options: dict[str, bool]
) -> None:
    theirs = wordpiece(**options)
    folder = saved(tmp_path, theirs)
    settings = {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    handle, package = opened(library, folder), akunu.Tokenizer.from_directory(folder)
    texts = ["The that, THÉ at e\u0301 日the", "", *random_texts(500, seed=4)]
    for text in texts:
        if "[" in text:  # names of tokens become tokens there
            continue
        found = library.encode(handle, text, special=True)
        assert found == theirs.encode(text).ids == package.encode(text), repr(text)


@pytest.mark.real
def test_wordpiece_of_a_real_directory(library: Library) -> None:
    models_folder = os.environ.get("AKUNU_REAL_MODELS")
    if not models_folder:
        pytest.skip("AKUNU_REAL_MODELS is not set")
    folder = Path(models_folder) / "minilm"
    if not (folder / "tokenizer.json").is_file():
        pytest.skip("there is no directory of MiniLM")
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.no_padding()
    theirs.no_truncation()
    handle = opened(library, folder)
    for text in random_texts(500, seed=5):
        if "[" not in text:
            found = library.encode(handle, text, special=True)
            assert found == theirs.encode(text).ids, repr(text)


@pytest.mark.real
def test_embeddings_of_a_real_directory_are_those_of_the_package(library: Library) -> None:
    models_folder = os.environ.get("AKUNU_REAL_MODELS")
    if not models_folder:
        pytest.skip("AKUNU_REAL_MODELS is not set")
    folder = Path(models_folder) / "minilm"
    if not (folder / "model.safetensors").is_file():
        pytest.skip("there is no directory of MiniLM")
    texts = ["a cat sat", "tractors"]
    options = LoadOptions(device=b"cpu", threads=1)
    model = library.new("load_model", str(folder).encode(), ctypes.byref(options))
    given = (ctypes.c_char_p * 2)(*[text.encode() for text in texts])
    vectors, length = (ctypes.c_float * 1024)(), ctypes.c_size_t()
    two, room = ctypes.c_size_t(2), ctypes.c_size_t(1024)
    library.call("embed", model, given, two, vectors, room, ctypes.byref(length))
    ids = akunu.Tokenizer.from_directory(folder).encode(texts[1])
    tokens, one = (ctypes.c_uint32 * len(ids))(*ids), (ctypes.c_float * 512)()
    n_tokens, room = ctypes.c_size_t(len(ids)), ctypes.c_size_t(512)
    width = ctypes.c_size_t()
    library.call("embed_tokens", model, tokens, n_tokens, one, room, ctypes.byref(width))
    library.call("close_model", model)
    assert one[: width.value] == vectors[width.value : length.value]
    with akunu.load(folder, device="cpu", threads=1) as known:
        expected = np.asarray(known.embed(texts))
    assert np.array_equal(np.array(vectors[: length.value]).reshape(2, -1), expected)


def saved(folder: Path, tokenizer: Tokenizer, **settings: Any) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    written = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(written))
    return folder


def opened(library: Library, folder: Path) -> Handle:
    return library.new("open_tokenizer", str(folder).encode())


def stops_of(library: Library, handle: Handle) -> list[int]:
    ids = (ctypes.c_uint32 * 64)()
    length = ctypes.c_size_t()
    library.call("get_stop_ids", handle, ids, ctypes.c_size_t(64), ctypes.byref(length))
    return ids[: length.value]


@each_line("kind", KINDS)
def test_tokens_are_those_of_the_library(library: Library, tmp_path: Path, kind: str) -> None:
    theirs = KINDS[kind]()
    folder = saved(tmp_path, theirs)
    handle, package = opened(library, folder), akunu.Tokenizer.from_directory(folder)
    for text in random_texts(int(os.environ.get("AKUNU_RANDOM_TEXTS", "1000")), seed=3):
        found = library.encode(handle, text, parse=True)
        assert found == theirs.encode(text, add_special_tokens=False).ids, repr(text)
        assert library.encode(handle, text, special=True) == package.encode(text), repr(text)
    assert stops_of(library, handle) == sorted(package.stop_ids)


@pytest.mark.parametrize(
    "frame",
    [
        processors.RobertaProcessing(("</s>", 263), ("<s>", 262)),
        processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 262)]),
        processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 263)]),
        processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 262), ("</s>", 263)]),
    ],
    ids=["roberta", "begins", "ends", "both"],
)
def test_texts_begin_and_end_as_those_of_the_library(
    library: Library, tmp_path: Path, frame: Any
) -> None:
    theirs = byte_level()
    assert [theirs.token_to_id(name) for name in ("<s>", "</s>")] == [262, 263]
    theirs.post_processor = processors.Sequence([processors.ByteLevel(), frame])
    handle = opened(library, saved(tmp_path, theirs))
    for text in ("the hat", "", " 123"):
        assert library.encode(handle, text, special=True) == theirs.encode(text).ids


@pytest.mark.parametrize(
    ("settings", "generation", "config"),
    [
        ({}, {}, {}),
        ({"add_bos_token": True}, {"eos_token_id": [3, 4]}, {"eos_token_id": 5}),
        ({"bos_token": None, "eos_token": None}, {"bos_token_id": 7}, {"eos_token_id": 8}),
        ({"chat_template": "{{ messages }}"}, {"eos_token_id": 9999}, {"vocab_size": 262}),
        ({"chat_template": [{"name": "default", "template": "x"}]}, {}, {"vocab_size": 9999}),
    ],
)
def test_the_files_beside_it_are_read_as_by_the_package(
    library: Library, tmp_path: Path, settings: Any, generation: Any, config: Any
) -> None:
    folder = saved(tmp_path, byte_level(), **settings)
    (folder / "generation_config.json").write_text(json.dumps(generation))
    (folder / "config.json").write_text(json.dumps(config))
    handle, package = opened(library, folder), akunu.Tokenizer.from_directory(folder)
    assert stops_of(library, handle) == sorted(package.stop_ids)
    assert library.text("get_chat_template", handle) == (package.chat_template or "")
    assert library.encode(handle, "the hat", special=True) == package.encode("the hat")
    size = ctypes.c_uint32()
    library.call("get_vocab_size", handle, ctypes.byref(size))
    assert size.value == package.vocab_size
    (folder / "chat_template.jinja").write_text("a template of its own")
    assert library.text("get_chat_template", opened(library, folder)) == "a template of its own"


def changed(folder: Path, **parts: Any) -> Path:
    path = saved(folder, byte_level()) / "tokenizer.json"
    described = json.loads(path.read_text())
    model = described["model"]
    model.update(parts.pop("model", {}))
    path.write_text(json.dumps({**described, **parts, "model": model}))
    return folder


@each_line(
    ("parts", "status", "why"),
    [
        ({"model": {"type": "WordLevel"}}, UNSUPPORTED, "model is of type 'WordLevel'"),
        ({"model": {"type": "Unigram"}}, FILE, "model.vocab is not a list of pieces"),
        ({"model": {"type": "WordPiece"}}, UNSUPPORTED, "continuing_subword_prefix"),
        (
            {"model": {"type": "WordPiece", "continuing_subword_prefix": "##"}},
            UNSUPPORTED,
            "normalizer is not one of BERT's",
        ),
        ({"model": {"dropout": 0.5}}, UNSUPPORTED, "model.dropout is 0.5"),
        ({"model": {"end_of_word_suffix": "</w>"}}, UNSUPPORTED, "end_of_word_suffix"),
        ({"normalizer": {"type": "Lowercase"}}, UNSUPPORTED, "normalizer Lowercase"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, UNSUPPORTED, "pre_tokenizer Whitespace"),
        (
            {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "split": False}},
            UNSUPPORTED,
            "puts a space in front of texts",
        ),
        (
            {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}},
            UNSUPPORTED,
            "add_prefix_space",
        ),
        ({"post_processor": {"type": "Other"}}, UNSUPPORTED, "post_processor Other"),
        ({"model": {"merges": [1]}}, FILE, r"merges\[0\] is neither"),
        ({"model": {"vocab": {"a": -1}}}, FILE, "model.vocab has no usable id"),
        ({"model": {"vocab": {"a": 10**6}}}, FILE, "the largest token id is 1000000"),
        ({"model": {"vocab": {"a": 0, "b": 0}}}, FILE, "id 0 is"),
        ({"model": {"vocab": []}}, FILE, "model.vocab is no object"),
        ({"added_tokens": [{"id": 0}]}, FILE, "without content"),
        ({"added_tokens": 3}, FILE, "added_tokens is no list"),
        (
            {"post_processor": {"type": "TemplateProcessing", "single": 3}},
            FILE,
            "post_processor.single is no list",
        ),
    ],
)
def test_what_is_not_understood_is_refused(
    library: Library, tmp_path: Path, parts: Any, status: int, why: str
) -> None:
    with pytest.raises(CError, match=why) as caught:
        opened(library, changed(tmp_path, **parts))
    assert caught.value.status == status


def test_a_directory_without_a_tokenizer_is_refused(library: Library, tmp_path: Path) -> None:
    with pytest.raises(CError, match=r"there is no tokenizer\.json") as caught:
        opened(library, tmp_path)
    assert caught.value.status == FILE
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CError, match=r"tokenizer\.json"):
        opened(library, tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.model").write_bytes(b"\0")
    with pytest.raises(CError, match=r"tokenizer\.model is read by the Python package"):
        opened(library, tmp_path)
