"""WordLevel and WordPiece of directories, beside the library `tokenizers` on the same file."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

import akunu
from akunu import ArgumentError, ModelFormatError, UnsupportedModelError
from akunu.grammar import from_choice, from_regex
from akunu.grammar.vocabulary import constraint_of, grammar_vocabulary, ruling_words
from lines import each_line

SPECIAL = ["[UNK]", "<s>", "</s>", "<|end|>"]
WORDS = [
    "the",
    "hat",
    "that",
    "Hat",
    "é",
    "12",
    "1",
    "2",
    ",",
    ".",
    "do",
    "n't",
    "'s",
    "日",
    "本",
    "a",
]
TEXTS = (
    "the hat",
    "  the\n\nthat, ",
    "that hat's 12.",
    "Hät é日本 1",
    "",
    "the<s>hat </s>",
    "a" * 120,
)


def word_level(words: list[str] = WORDS, *steps: Any, unknown: str = "[UNK]") -> Tokenizer:
    ids = {word: index for index, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return finished(tokenizer, *steps)


def word_piece(*steps: Any, prefix: str = "##", longest: int = 100) -> Tokenizer:
    tails = [prefix + tail for tail in ("at", "e", "t", "a", "2", "12")]
    ids = {word: index for index, word in enumerate([*SPECIAL, *WORDS, "th", "h", *tails])}
    model = models.WordPiece(
        ids,
        unk_token="[UNK]",
        continuing_subword_prefix=prefix,
        max_input_chars_per_word=longest,
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix)
    return finished(tokenizer, *steps)


def finished(tokenizer: Tokenizer, *steps: Any) -> Tokenizer:
    """With these steps for its own, and its control tokens."""
    for step in steps:
        kind = type(step).__module__.rpartition(".")[2]
        setattr(tokenizer, kind.removesuffix("s"), step)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    return tokenizer


def bert(*, lowercase: bool = True) -> Tokenizer:
    """Exactly as BERT's, so that it is read under GGUF's keys."""
    tokenizer = word_piece(normalizers.BertNormalizer(lowercase=lowercase))
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    return tokenizer


def spaced(scheme: str) -> Tokenizer:
    """Words with their spaces, as Metaspace writes them."""
    words = [*WORDS, *("▁" + word for word in WORDS), "▁"]
    return word_level(words, pre_tokenizers.Metaspace("▁", scheme), decoders.Metaspace("▁", scheme))


def on_bytes() -> Tokenizer:
    """Words as ByteLevel writes them, some of them a part of a character."""
    words = ["the", "Ġthe", "Ġhat", "hat", "Ġ", "Ã©", "ĠÃ", "©", ","]
    cut = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return word_level(words, cut, decoders.ByteLevel())


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "words": word_level,
    "words between spaces": lambda: word_level(WORDS, pre_tokenizers.WhitespaceSplit()),
    "characters": lambda: word_level(
        WORDS, pre_tokenizers.Split(Regex("."), "isolated"), decoders.Fuse()
    ),
    "digits apart": lambda: word_level(
        WORDS,
        pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)]),
    ),
    "lower case": lambda: word_level(
        WORDS,
        normalizers.Sequence(
            [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
        ),
    ),
    "replaced": lambda: word_level(WORDS, normalizers.Replace(Regex("[0-9]+"), "12")),
    "spaces, always": lambda: spaced("always"),
    "spaces, first": lambda: spaced("first"),
    "spaces, never": lambda: spaced("never"),
    "bytes": on_bytes,
    "pieces": word_piece,
    "pieces, lower case": lambda: word_piece(normalizers.Lowercase(), pre_tokenizers.Whitespace()),
    "pieces, another prefix": lambda: word_piece(prefix="@@"),
    "pieces, short words": lambda: word_piece(longest=3),
    "pieces as they are": lambda: word_piece(decoders.WordPiece("##", cleanup=False)),
    "pieces of BERT": lambda: bert(),
    "pieces of BERT, cased": lambda: bert(lowercase=False),
    "pieces of Chinese": lambda: word_piece(
        normalizers.BertNormalizer(strip_accents=False, lowercase=False)
    ),
}


def saved(folder: Path, tokenizer: Tokenizer, settings: dict[str, Any] | None = None) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**named, **(settings or {})}))
    return folder


@each_line("kind", KINDS)
def test_ids_and_text_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    theirs = KINDS[kind]()
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, theirs))
    for text in TEXTS:
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, add_special=False, parse_special=True) == expected
        assert ours.decode(expected, skip_special=True) == theirs.decode(expected)
        stream = ours.stream(skip_special=True)
        shown = "".join(map(stream.push, expected)) + stream.finish()
        assert shown == theirs.decode(expected)
    assert pickle.loads(pickle.dumps(ours)).encode(TEXTS[1]) == ours.encode(TEXTS[1])


def test_a_word_that_is_unknown_stays_apart_and_can_be_left_out(tmp_path: Path) -> None:
    theirs = word_level()
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, theirs))
    ids = ours.encode("the xyz hat")
    assert ids == theirs.encode("the xyz hat").ids
    for skips in (True, False):
        assert ours.decode(ids, skip_special=skips) == theirs.decode(ids, skip_special_tokens=skips)


def test_words_behind_a_prompt_keep_their_space(tmp_path: Path) -> None:
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, word_level()))
    the, hat, end = (ours.token_id(word) for word in ("the", "hat", "<|end|>"))
    assert the is not None
    assert hat is not None
    assert end is not None
    assert ours.stream(prompt=[the]).push(hat) == " hat"
    assert ours.stream(prompt=[the, end]).push(hat) == "hat"
    assert ours.decode([the, end, hat], skip_special=True) == "the hat"
    assert ours.decode([the, end, hat]) == "the<|end|>hat"


def test_a_users_text_never_becomes_a_control_token(tmp_path: Path) -> None:
    for kind in ("words", "words between spaces", "pieces", "bytes"):
        ours = akunu.Tokenizer.from_directory(saved(tmp_path, KINDS[kind]()))
        numbers = " ".join(f"\0{index} {index}" for index in range(9))
        ids = ours.encode(f"a <s> the </s> <|end|> {numbers}", add_special=False)
        assert not {ours.bos_id, ours.eos_id, ours.token_id("<|end|>")}.intersection(ids)


def test_what_stands_around_a_text_is_the_files(tmp_path: Path) -> None:
    theirs = word_level()
    theirs.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, theirs))
    assert ours.encode("the hat") == theirs.encode("the hat").ids == [1, 4, 5, 2]
    assert (ours.bos_id, ours.eos_id, ours.unk_id) == (1, 2, 0)


def allowed(constraint: Any, tokenizer: akunu.Tokenizer) -> set[str]:
    """The words that may follow."""
    words = constraint.fill([], tokenizer.vocab_size)[0]
    ids = range(tokenizer.vocab_size)
    return {tokenizer.token_text(i) for i in ids if words[i // 32] >> (i % 32) & 1}


@pytest.mark.parametrize("kind", ["words", "pieces", "spaces, always"])
def test_grammars_rule_words(tmp_path: Path, kind: str) -> None:
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, KINDS[kind]()))
    vocabulary = grammar_vocabulary(ours, ours.vocab_size)
    for text in ("the hat", "that 1", "hat"):
        grammar = ruling_words(from_choice(["the hat", "that 1", "hat"]))
        constraint = constraint_of(vocabulary, grammar)
        ids = ours.encode(text, add_special=False)
        for token in ids:
            words = allowed(constraint, ours)
            assert ours.token_text(token) in words
            assert not words & {"é", "a", "▁a", "[UNK]"}
            assert constraint.accept(token)
        assert constraint.is_over or allowed(constraint, ours) == {"</s>"}
    refused = constraint_of(vocabulary, ruling_words(from_regex("hat the")))
    assert not {"the", "▁the"} & allowed(refused, ours)


def test_a_word_without_a_token_is_named_where_there_is_no_unknown_token(tmp_path: Path) -> None:
    ours = akunu.Tokenizer.from_directory(saved(tmp_path, word_level(unknown="<nothing>")))
    assert ours.encode("the hat") == [4, 5]
    with pytest.raises(ArgumentError, match="no token for, and it has no unknown token: 'xyz'"):
        ours.encode("the xyz hat")


REFUSED: list[tuple[str, Any, type[akunu.AkunuError], str]] = [
    ("decoder", {"type": "CTC"}, UnsupportedModelError, 'decoder {"type": "CTC"} is not supported'),
    ("decoder", 3, UnsupportedModelError, "decoder 3 is not supported"),
    (
        "normalizer",
        {"type": "Other"},
        UnsupportedModelError,
        'cannot use normalizer {"type": "Other"}',
    ),
    ("pre_tokenizer", {"type": "Other"}, UnsupportedModelError, "cannot use pre_tokenizer"),
    (
        "post_processor",
        {"type": "Other"},
        UnsupportedModelError,
        'post_processor {"type": "Other"}',
    ),
    ("model.vocab", {"a": -1}, ModelFormatError, "model.vocab has -1 as the id of 'a'"),
    ("model.vocab", ["a"], ModelFormatError, "model.vocab is not an object"),
    ("model.unk_token", 7, UnsupportedModelError, "cannot use model"),
]


@each_line(("path", "value", "error", "message"), REFUSED, ids=[r[3] for r in REFUSED])
@each_line("kind", ["words", "pieces"])
def test_what_cannot_be_run_is_refused_by_name(
    tmp_path: Path, kind: str, path: str, value: Any, error: type[Exception], message: str
) -> None:
    folder = saved(tmp_path, KINDS[kind]())
    described = json.loads((folder / "tokenizer.json").read_text())
    *outer, last = path.split(".")
    inner = described
    for key in outer:
        inner = inner[key]
    inner[last] = value
    (folder / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(error) as caught:
        akunu.Tokenizer.from_directory(folder)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{folder}: tokenizer.json: ")
