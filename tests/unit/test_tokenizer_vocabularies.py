"""The tokenizers of real models: exact on every text that comes with their vocabularies."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizer_support import (
    FAMILIES,
    cases,
    metadata_from_gguf_package,
    read_metadata,
    real_tokenizer,
    vocabulary_file,
    with_whole,
)

from akunu.errors import ModelFormatError
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

# Those that give every text back; WordPiece keeps neither case nor spacing.
LOSSLESS = with_whole("gpt-2", "llama-bpe", "llama-spm", "qwen2")

MIXED_TEXT = st.text(
    st.one_of(
        st.characters(blacklist_categories=["Cs"], blacklist_characters="\u2581"),
        st.sampled_from("aé 日本語🦙👩‍👩‍👧\n\t' 1"),
    ),
    max_size=40,
)


@each_line("family", FAMILIES)
def test_every_text_gives_exactly_the_expected_ids(family: str) -> None:
    tokenizer = real_tokenizer(family)
    pairs = cases(family)
    assert len(pairs) > 40
    for text, ids in pairs:
        assert tokenizer.encode(text, add_special=False) == ids, text


@each_line("family", FAMILIES)
def test_no_text_has_fewer_tokens_than_its_length_says(family: str) -> None:
    tokenizer = real_tokenizer(family)
    longest = sorted(map(tokenizer.token_bytes, range(tokenizer.vocab_size)), key=len)[-20:]
    texts = [token.decode(errors="ignore") * 30 for token in longest]
    # What NFC makes one of four, three or two.
    texts += ["\u03b1\u0313\u0300\u0345" * 50, "\u1112\u1161\u11ab" * 50, "e\u0301" * 50]
    texts += ["\u2581" * 500, "\U0010ffff" * 50, " " * 999, *(text for text, _ in cases(family))]
    for text in texts:
        assert tokenizer.fewest_tokens([text, 0]) <= len(tokenizer.encode_pieces([text, 0])), text
    knows_all = "bert" not in family  # a word that WordPiece does not know is one token
    assert (tokenizer.fewest_tokens([" a" * 1000]) > 5) == knows_all


@each_line("family", LOSSLESS)
def test_the_given_ids_decode_to_their_texts(family: str) -> None:
    tokenizer = real_tokenizer(family)
    for text, ids in cases(family):
        assert tokenizer.decode(ids) == text


@each_line("family", FAMILIES)
def test_two_readers_of_the_file_give_the_same_tokenizer(family: str) -> None:
    metadata = pytest.importorskip("akunu._core").GgufFile(str(vocabulary_file(family)))
    expected = metadata_from_gguf_package(vocabulary_file(family))
    for key, value in expected.items():
        if key.startswith("tokenizer."):
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(metadata[key], value)
            else:
                assert metadata[key] == value, key


@pytest.mark.parametrize("family", LOSSLESS)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(text=MIXED_TEXT)
def test_decoding_gives_back_what_was_encoded(family: str, text: str) -> None:
    tokenizer = real_tokenizer(family)
    assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text
    assert tokenizer.decode(tokenizer.encode(text), skip_special=True) == text


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 30))
def test_a_stream_of_any_ids_adds_up_to_their_decoding(family: str, seed: int, count: int) -> None:
    tokenizer = real_tokenizer(family)
    ids = random.Random(seed).choices(range(tokenizer.vocab_size), k=count)
    for skip_special in (False, True):
        stream = tokenizer.stream(skip_special=skip_special)
        text = "".join([stream.push(token) for token in ids]) + stream.finish()
        as_bytes = tokenizer.decode_bytes(ids, skip_special=skip_special)
        assert text == tokenizer.decode(ids, skip_special=skip_special)
        assert text == as_bytes.decode("utf-8", "replace")


@each_line("family", LOSSLESS)
def test_a_stream_never_gives_out_half_a_character(family: str) -> None:
    tokenizer = real_tokenizer(family)
    text = "né 🦙👩‍👩‍👧 日本語 😁"
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in tokenizer.encode(text, add_special=False)]
    assert "".join(pieces) == text
    assert stream.finish() == ""
    assert "\ufffd" not in "".join(pieces)


@each_line("family", FAMILIES)
def test_names_of_control_tokens_in_a_text_are_text(family: str) -> None:
    tokenizer = real_tokenizer(family)
    for index in sorted(tokenizer.control_ids):
        name = tokenizer.token_text(index)
        ids = tokenizer.encode(f"a {name} b", add_special=False)
        if "bert" not in family:  # [UNK] is what WordPiece makes of unknown words
            assert not tokenizer.control_ids.intersection(ids), name
        assert index in tokenizer.encode(f"a {name} b", add_special=False, parse_special=True)


@each_line("part", ["", pytest.param("whole-", marks=pytest.mark.slow)])
@each_line(
    ("family", "bos", "eos", "eot", "add_bos", "stops"),
    [
        ("bert-bge", "[CLS]", None, None, True, set()),
        ("gpt-2", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", False, {"<|endoftext|>"}),
        (
            "llama-bpe",
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|eot_id|>",
            True,
            {"<|end_of_text|>", "<|eot_id|>"},
        ),
        ("llama-spm", "<s>", "</s>", None, True, {"</s>"}),
        (
            "qwen2",
            "<|endoftext|>",
            "<|endoftext|>",
            "<|im_end|>",
            False,
            {"<|endoftext|>", "<|im_end|>"},
        ),
    ],
)
def test_special_tokens_are_the_model_s_own(
    part: str,
    family: str,
    bos: str,
    eos: str | None,
    eot: str | None,
    add_bos: bool,
    stops: set[str],
) -> None:
    tokenizer = real_tokenizer(part + family)

    def name(token: int | None) -> str | None:
        return None if token is None else tokenizer.token_text(token)

    assert (name(tokenizer.bos_id), name(tokenizer.eos_id), name(tokenizer.eot_id)) == (
        bos,
        eos,
        eot,
    )
    assert tokenizer.add_bos is add_bos
    assert {name(token) for token in tokenizer.stop_ids} == stops


def original_ids(family: str, ids: list[int]) -> list[int]:
    """The numbers that tokens of a part have in the whole vocabulary."""
    numbers = read_metadata(vocabulary_file(family))["akunu.original_ids"]
    return [int(numbers[index]) for index in ids]


def test_bert_puts_its_two_tokens_around_a_text() -> None:
    tokenizer = real_tokenizer("bert-bge")
    ids = tokenizer.encode("Hello World!")
    assert original_ids("bert-bge", ids) == [101, 7592, 2088, 999, 102]
    assert tokenizer.decode(ids) == "[CLS]hello world ![SEP]"


def test_llama_3_takes_a_word_that_is_a_token_whole() -> None:
    # No merges lead to this token; it is there because words that are tokens are not merged.
    tokenizer = real_tokenizer("llama-bpe")
    index = tokenizer.encode(" Việt", add_special=False)
    assert [tokenizer.token_bytes(token) for token in index] == [" Việt".encode()]


def test_a_long_text_takes_time_in_proportion() -> None:
    tokenizer = real_tokenizer("llama-spm")
    text = "Hello, world! 日本語 <|im_end|> " * 2_000
    assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text


def test_a_file_is_read_and_errors_name_it(tmp_path: Path) -> None:
    pytest.importorskip("akunu._core")
    tokenizer = Tokenizer.from_gguf(vocabulary_file("gpt-2"))
    assert original_ids("gpt-2", tokenizer.encode("Hello world")) == [15496, 995]
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(vocabulary_file("gpt-2").read_bytes()[:1000])
    with pytest.raises(ModelFormatError, match=r"broken\.gguf"):
        Tokenizer.from_gguf(broken)
    writer = pytest.importorskip("gguf").GGUFWriter(tmp_path / "none.gguf", "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelFormatError, match=r"none.gguf.*tokenizer.ggml.model is missing"):
        Tokenizer.from_gguf(tmp_path / "none.gguf")
