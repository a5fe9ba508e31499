"""A directory's `tiktoken.model`, beside the library `tokenizers` on what it trained."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

import akunu
from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.pretokenizers import FAMILIES
from lines import each_line

TRAINED = [
    "the hat that the cat had, and then some: 12345 at 7 o'clock",
    "It's HELLO world, hello World! It's theirs; they'll say so",
    "def f(x):\n    return x + 1\n\n\n",
    "你好，世界 hello你好 été naïve Ελλάδα 日本語",
] * 3
TEXTS = [
    *TRAINED[:4],
    "",
    " ",
    "\n\n  x",
    "unseen wörds 🎉 999999",
    "theTHEthe你好the",
    "thethatthe",
]
ADDED = {"[BOS]": True, "[EOS]": True, "<|im_middle|>": True, "<think>": False}


def trained() -> Tokenizer:
    [kimi] = [family for family in FAMILIES if family.names == ("kimi-k2",)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(kimi.splits[0]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TRAINED, trainer)
    return tokenizer


def letters() -> dict[str, int]:
    """The byte that each letter of the library's alphabet stands for, by what it makes of bytes."""
    to_letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    found = {}
    for code in range(0x180):
        spelled = to_letters.pre_tokenize_str(chr(code))[0][0]
        found |= dict(zip(spelled, chr(code).encode(), strict=True))
    # Bytes that are in no text of that range.
    for high in range(0xC0, 0x100):
        found |= _letters_of(to_letters, high)
    return found


def _letters_of(to_letters: Any, high: int) -> dict[str, int]:
    length = 2 if high < 0xE0 else 3 if high < 0xF0 else 4
    for second in (0x80, 0x90, 0xA0):
        data = bytes([high, second, *[0x80] * (length - 2)])
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        spelled = to_letters.pre_tokenize_str(text)[0][0]
        return dict(zip(spelled, data, strict=True))
    # Of no text: the alphabet has the letter of the same number for them.
    return {chr(high): high}


def write(folder: Path, vocabulary: dict[str, int], **settings: Any) -> Path:
    folder.mkdir()
    byte = letters()
    assert len(byte) == 256
    lines = [
        f"{base64.b64encode(bytes(byte[each] for each in token)).decode()} {rank}\n"
        for token, rank in sorted(vocabulary.items(), key=lambda item: item[1])
    ]
    (folder / "tiktoken.model").write_text("".join(lines))
    n = len(vocabulary)
    added = {
        str(n + i): {"content": token, "special": special}
        for i, (token, special) in enumerate(ADDED.items())
    }
    said = {
        "tokenizer_class": "TikTokenTokenizer",
        "added_tokens_decoder": added,
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        **settings,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    (folder / "config.json").write_text(json.dumps({"model_type": "kimi_linear"}))
    return folder


def test_ids_are_those_of_the_library(tmp_path: Path) -> None:
    theirs = trained()
    ours = akunu.Tokenizer.from_directory(write(tmp_path / "model", theirs.get_vocab()))
    for text in TEXTS:
        ids = ours.encode(text, add_special=False)
        assert ids == theirs.encode(text).ids, text
        assert ours.decode(ids) == text


def test_special_tokens_are_those_of_the_settings(tmp_path: Path) -> None:
    vocabulary = trained().get_vocab()
    n = len(vocabulary)
    ours = akunu.Tokenizer.from_directory(write(tmp_path / "model", vocabulary))
    assert (ours.bos_id, ours.eos_id) == (n, n + 1)
    assert [ours.token_text(n + i) for i in range(5)] == [*ADDED, f"<|reserved_token_{n + 4}|>"]
    assert ours.encode("the<|im_middle|>", parse_special=True)[-1] == n + 2
    assert n + 2 not in ours.encode("the<|im_middle|>")


def test_another_class_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", trained().get_vocab(), tokenizer_class="OtherTokenizer")
    with pytest.raises(UnsupportedModelError, match=r"_config\.json has 'OtherTokenizer'"):
        akunu.Tokenizer.from_directory(folder)


@each_line(
    ("data", "message"),
    [
        (b"", "the ranks of its tokens are not 0, 1, 2"),
        (b"YQ== 0\nYg== 2\n", "the ranks of its tokens are not 0, 1, 2"),
        (b"YQ== 0\nYQ== 1\n", "a token occurs twice"),
        (b"YQ== 0\n", "the byte 0 is not a token"),
        (b"YQ== 0\n*** 1\n", "line 2 is not a token in base64 with its rank"),
        (b"YQ==\n", "line 1 is not a token in base64 with its rank"),
        (b"YQ== one\n", "line 1 is not a token in base64 with its rank"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    folder = write(tmp_path / "model", trained().get_vocab())
    (folder / "tiktoken.model").write_bytes(data)
    with pytest.raises(ModelFormatError, match=message):
        akunu.Tokenizer.from_directory(folder)
