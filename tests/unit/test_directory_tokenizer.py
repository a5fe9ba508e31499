"""Tokenizers of directories, beside the library `tokenizers` on the same tokenizer.json."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

import akunu
from akunu import ModelFormatError, UnsupportedModelError
from lines import each_line

TEXTS = ("the hat", "  the\n\nthat ", "ho é日 t", "", "hat<s>the", "12345 at 7")


def byte_level(*cuts: Any, **options: Any) -> Tokenizer:
    """A tokenizer on bytes with a few merges."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("a", "t"), ("Ġ", "the"), ("1", "2"), ("12", "3")]
    tokens = [*letters, *(a + b for a, b in merges)]
    model = models.BPE({token: i for i, token in enumerate(tokens)}, merges, **options)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not cuts)]
    )
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("</s>")])
    return tokenizer


def sentencepiece() -> Tokenizer:
    """A tokenizer on characters as Llama 2's, with bytes for those that are missing."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁theao12"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("a", "t"), ("▁", "a"), ("▁", "▁")]
    tokens += [a + b for a, b in merges]
    tokenizer = Tokenizer(
        models.BPE(
            {token: i for i, token in enumerate(tokens)},
            merges,
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.add_special_tokens([AddedToken(token) for token in ("<unk>", "<s>", "</s>")])
    return tokenizer


def prefixed(scheme: str) -> Tokenizer:
    """Its spaces written as Metaspace does, with one in front by that scheme."""
    tokenizer = sentencepiece()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme, split=False)
    return tokenizer


def normalized(*steps: Any) -> Tokenizer:
    """Its spaces written by a normalizer."""
    tokenizer = sentencepiece()
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    return tokenizer


def unigram() -> Tokenizer:
    """A tokenizer as XLM-R's: pieces with scores, a few characters that have none."""
    pieces = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁the", -2.0), ("▁", -1.5)]
    pieces += [(letter, -3.0 - index / 8) for index, letter in enumerate("theaoé127")]
    pieces += [("at", -3.1), ("hat", -4.9), ("▁h", -3.3), ("th", -3.2)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", "always")]
    )
    tokenizer.add_special_tokens([AddedToken(token) for token in ("<s>", "</s>", "<unk>")])
    return tokenizer


def with_nfc() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "bytes": byte_level,
    "digits": lambda: byte_level(
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Split(Regex(_LLAMA3), "isolated"),
    ),
    "an expression": lambda: byte_level(
        pre_tokenizers.Split(Regex(_LLAMA3), "isolated"), ignore_merges=True
    ),
    "removed and inverted": lambda: byte_level(
        pre_tokenizers.Split(Regex(_LLAMA3), "removed", invert=True)
    ),
    "punctuation": lambda: byte_level(
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Split(Regex(_LLAMA3), "isolated")
    ),
    "nfc": with_nfc,
    "unigram": unigram,
    "a space in front": lambda: normalized(normalizers.Prepend("▁")),
    "no space in front": lambda: normalized(),
    "a space in front, always": lambda: prefixed("always"),
    "a space in front, first": lambda: prefixed("first"),
    "a space in front, never": lambda: prefixed("never"),
}


def saved(folder: Path, tokenizer: Tokenizer, settings: dict[str, Any] | None = None) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<s>", "eos_token": "</s>", **(settings or {})})
    )
    return folder


@each_line("kind", KINDS)
def test_tokens_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    theirs = KINDS[kind]()
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, theirs))
    for text in TEXTS:
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, add_special=False, parse_special=True) == expected


FRAMES: dict[str, Any] = {
    "roberta": lambda: processors.RobertaProcessing(("</s>", 263), ("<s>", 262)),
    "template": lambda: processors.TemplateProcessing(
        "<s> $A </s>",
        "<s> $A </s> $B:1 </s>:1",
        special_tokens=[("<s>", 262), ("</s>", 263)],
    ),
    "one end": lambda: processors.TemplateProcessing(
        "$A </s>", "$A </s> $B </s>", special_tokens=[("</s>", 263)]
    ),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_two_texts_are_joined_as_the_library_joins_them(tmp_path: Path, frame: str) -> None:
    theirs = byte_level()
    assert [theirs.token_to_id(name) for name in ("<s>", "</s>")] == [262, 263]
    theirs.post_processor = FRAMES[frame]()
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, theirs))
    for first in TEXTS:
        assert ours.encode(first, parse_special=True) == theirs.encode(first).ids
        for second in TEXTS:
            if "<s>" in first + second:
                continue
            expected = theirs.encode(first, second)
            found = ours.encode_pair(first, second)
            assert found.ids == expected.ids
            begins = expected.type_ids.index(1) if 1 in expected.type_ids else None
            assert found.second_begins == begins


def test_a_tokenizer_without_a_template_of_pairs_joins_none(tmp_path: Path) -> None:
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, byte_level()))
    with pytest.raises(UnsupportedModelError, match="has no rule for joining two texts"):
        ours.encode_pair("a", "b")


def test_a_users_text_never_becomes_a_control_token(tmp_path: Path) -> None:
    for kind in ("bytes", "a space in front"):
        ours = akunu.Tokenizer.from_directory(saved(tmp_path, KINDS[kind]()))
        assert not ours.control_ids.intersection(ours.encode("a <s> b</s>", add_special=False))


@pytest.mark.parametrize("said", [True, False, None])
def test_a_text_opens_with_bos_where_the_files_say_so(tmp_path: Path, said: bool | None) -> None:
    tokenizer = byte_level()
    bos = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A", special_tokens=[("<s>", bos)]
    )
    settings = {} if said is None else {"add_bos_token": said}
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, tokenizer, settings))
    assert ours.add_bos == (said is not False)
    assert (ours.encode("at")[0] == bos) == ours.add_bos


def test_tokens_that_end_a_text_are_those_of_all_files(tmp_path: Path) -> None:
    folder = saved(tmp_path, byte_level())
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 3}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [4, 5]}))
    ours = akunu.Tokenizer.from_directory(folder)
    eos = ours.token_id("</s>")
    assert ours.eos_id == eos
    assert ours.stop_ids == {3, 4, 5, eos}


def test_the_template_of_its_own_file_wins(tmp_path: Path) -> None:
    folder = saved(tmp_path, byte_level(), {"chat_template": "old"})
    assert akunu.Tokenizer.from_directory(folder).chat_template == "old"
    (folder / "chat_template.jinja").write_text("new")
    assert akunu.Tokenizer.from_directory(folder).chat_template == "new"
    listed = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
    (folder / "chat_template.jinja").unlink()
    saved(tmp_path, byte_level(), {"chat_template": listed})
    tokenizer = akunu.Tokenizer.from_directory(folder)
    assert tokenizer.chat_template == "a"
    assert "tokenizer_config.json: chat_template has tool_use besides: ignored" in tokenizer.notes


def test_tokens_that_the_model_has_no_rows_for_are_left_out(tmp_path: Path) -> None:
    folder = saved(tmp_path, byte_level())
    (folder / "config.json").write_text(json.dumps({"vocab_size": 263}))
    ours = akunu.Tokenizer.from_directory(folder)
    assert ours.vocab_size == 263
    assert "the last 1 are left out, '</s>' for example" in ours.notes[0]


def changed(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """`changed("model.type", "Unigram")`: sets that key."""

    def change(described: dict[str, Any]) -> None:
        *folders, last = path.split(".")
        for folder in folders:
            described = described[folder]
        described[last] = value

    return change


REFUSED: list[tuple[str, Any, type[akunu.AkunuError], str]] = [
    ("model.type", "Other", UnsupportedModelError, "of type 'Other'; akunu has BPE, Unigram, W"),
    ("normalizer", {"type": "NFKC"}, UnsupportedModelError, 'normalizer {"type": "NFKC"} is not'),
    (
        "pre_tokenizer",
        {
            "type": "Sequence",
            "pretokenizers": [{"type": "Whitespace"}, {"type": "ByteLevel", "use_regex": False}],
        },
        UnsupportedModelError,
        'pre_tokenizer {"type": "Whitespace"} is not supported',
    ),
    ("model.vocab", {"a": -1}, ModelFormatError, "model.vocab has -1 as the id of 'a'"),
    ("model.vocab", {"a": 10**9}, ModelFormatError, "the largest token id is 1000000000"),
    ("model.merges", [["a"]], ModelFormatError, "model.merges[0] is neither a string nor a pair"),
    ("model.merges", ["t q"], ModelFormatError, "tokenizer.json: model.merges[0] is 't q'"),
    ("model", None, ModelFormatError, "model is missing"),
    (
        "post_processor",
        {"type": "TemplateProcessing", "single": 3},
        ModelFormatError,
        "post_processor.single is not a list of objects",
    ),
]


@each_line(("path", "value", "error", "message"), REFUSED, ids=[r[3] for r in REFUSED])
def test_what_has_no_translation_is_refused_by_name(
    tmp_path: Path, path: str, value: Any, error: type[Exception], message: str
) -> None:
    folder = saved(tmp_path, byte_level())
    described = json.loads((folder / "tokenizer.json").read_text())
    changed(path, value)(described)
    (folder / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(error) as caught:
        akunu.Tokenizer.from_directory(folder)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{folder}: tokenizer.json: ")


def test_an_end_that_is_no_token_is_noted(tmp_path: Path) -> None:
    folder = saved(tmp_path, byte_level())
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 99999]}')
    tokenizer = akunu.Tokenizer.from_directory(folder)
    assert 1 in tokenizer.stop_ids
    (note,) = tokenizer.notes
    assert note.startswith("eos_token_id 99999 is ignored: tokenizer.json has ")


def test_a_template_whose_name_is_no_text_is_passed_over(tmp_path: Path) -> None:
    templates = [{"name": [1], "template": "x"}, {"name": "default", "template": "y"}]
    folder = saved(tmp_path, byte_level(), {"chat_template": templates})
    assert akunu.Tokenizer.from_directory(folder).chat_template == "y"


def test_a_directory_without_a_tokenizer_says_so(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        ModelFormatError, match=r"no tokenizer\.json, tokenizer\.model or tiktoken\.model"
    ):
        akunu.Tokenizer.from_directory(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelFormatError, match=r"tokenizer\.json cannot be read as JSON"):
        akunu.Tokenizer.from_directory(tmp_path)


# --- tokenizer.model ----------------------------------------------------------------------------


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | float | bytes) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def sentencepiece_model(kind: int = 2, rules: bytes = b"") -> bytes:
    """A file of SentencePiece, with pieces for "the" and all bytes."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    merged = ["th", "the", "▁the", "▁▁"]
    pieces += [(text, -float(i), 1) for i, text in enumerate([*merged, *"▁thea"])]
    data = b"".join(
        field(1, field(1, text.encode()) + field(2, score) + field(3, type_))
        for text, score, type_ in pieces
    )
    trainer = field(3, kind) + field(35, 1) + field(40, 0) + field(41, 1) + field(42, 2)
    return data + field(2, trainer + field(43, -1)) + field(3, field(2, rules) + field(3, 1))


def test_a_sentencepiece_model_alone_is_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_model())
    ours = akunu.Tokenizer.from_directory(tmp_path)
    assert (ours.bos_id, ours.eos_id, ours.unk_id, ours.pad_id) == (1, 2, 0, None)
    ids = ours.encode("the théa")
    assert [ours.token_text(i) for i in ids] == ["<s>", "▁the", "▁", "th", "<0xC3>", "<0xA9>", "a"]
    assert ours.decode(ids[1:]) == "the théa"


@each_line(
    ("data", "error", "message"),
    [
        (sentencepiece_model(kind=1), UnsupportedModelError, "of type 'unigram'; akunu has 'bpe'"),
        (sentencepiece_model(rules=b"x"), UnsupportedModelError, "it normalises text"),
        (sentencepiece_model()[:-1], ModelFormatError, "not a SentencePiece model"),
        (b"\x0a\xff\xff\xff\xff\x7f", ModelFormatError, "bytes for a field, 0 are left"),
        (b"", ModelFormatError, "is empty"),
    ],
)
def test_another_tokenizer_model_is_refused(
    tmp_path: Path, data: bytes, error: type[Exception], message: str
) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises(error, match=message):
        akunu.Tokenizer.from_directory(tmp_path)
