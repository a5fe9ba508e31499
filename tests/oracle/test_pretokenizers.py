"""How byte-level vocabularies of the dense families cut text, beside llama.cpp on the same file.

The vocabulary has the bytes and every pair of some characters, which also merge across any place
where a family cuts: so nearly every cut in another place gives other tokens.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf_file import _byte_characters

import akunu

sys.path.insert(0, str(Path(__file__).parents[2]))

pytestmark = pytest.mark.oracle

CHARACTERS = "abdlmrstvABDLST0123 \n\r\t!'/.,-("
# Those that llama.cpp cuts by the expression that the family's authors published. Of those in
# `APPROXIMATED` it has an approximation, which is the same for ASCII; of kimi-k2 one that cuts no
# word where a capital letter follows small ones.
APPROXIMATED = ("tekken", "gpt-4o")
NAMES = [
    *("dbrx", "smaug-bpe", "glm4", "chatglm-bpe", "llama-bpe", "falcon-h1", "stablelm2"),
    *("hunyuan", "megrez"),
    *(
        "tekken",
        "gpt-4o",
        "seed-coder",
        "deepseek-v3",
        "hunyuan-dense",
        "olmo",
        "exaone4",
        "exaone",
    ),
    *("roberta-bpe", "modern-bert", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code"),
]
WORDS = [
    "don't",
    "It'S",
    "camelCaseWord",
    "HTTPServer",
    "12345",
    " 3.14",
    "a/b\n/c",
    "...\n\n",
    " \t",
]
FOREIGN = [
    "été déjà",
    "日本語のテスト",
    "中文abc测试",
    "한국어 문장",
    "Привет, мир!",
    "e\u0301x a\u0308",
    "١٢٣٤",
]


def write_vocabulary(path: Path, pre: str, *, ends: bool = False, merged: str = CHARACTERS) -> None:
    characters = _byte_characters()
    alphabet = [characters[byte] for byte in dict.fromkeys(merged.encode())]
    pairs = [(a, b) for a in alphabet for b in alphabet]
    tokens = [*characters, *(a + b for a, b in pairs), "<|begin|>", "<|end|>"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.NORMAL] * (len(tokens) - 2) + [gguf.TokenType.CONTROL] * 2
    )
    # In an order of its own, so that no pair is favoured for where it stands.
    order = np.random.RandomState(0).permutation(len(pairs))
    writer.add_token_merges([" ".join(pairs[i]) for i in order])
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eos_token_id(len(tokens) - 1)
    if ends:
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def texts(pre: str) -> Iterator[str]:
    stream = np.random.RandomState(1)
    for _ in range(300):
        yield "".join(stream.choice(list(CHARACTERS), stream.randint(1, 40)))
    for _ in range(100):
        yield "".join(stream.choice(WORDS, 6))
    if pre not in APPROXIMATED:
        yield from FOREIGN


@pytest.fixture(scope="module")
def api() -> Any:
    from tools.compare.workers import xllamacpp_api

    silent = xllamacpp_api.llama_log_callback(lambda level, text, data: None)
    xllamacpp_api.llama_log_set(silent, ctypes.c_void_p(0))
    yield xllamacpp_api
    del silent


@pytest.mark.parametrize("pre", NAMES)
def test_texts_have_the_tokens_of_llama_cpp(api: Any, tmp_path: Path, pre: str) -> None:
    path = tmp_path / "vocabulary.gguf"
    write_vocabulary(path, pre)
    params = api.llama_model_default_params()
    params.vocab_only = True
    model = api.llama_model_load_from_file(str(path).encode(), params)
    assert model
    vocabulary = api.llama_model_get_vocab(model)
    tokenizer = akunu.Tokenizer.from_gguf(path)
    cuts = 0
    for text in texts(pre):
        encoded = text.encode()
        room = (api.llama_token * (len(encoded) + 8))()
        n = api.llama_tokenize(vocabulary, encoded, len(encoded), room, len(room), False, False)
        expected = list(room[:n])
        assert tokenizer.encode(text, add_special=False) == expected, repr(text)
        cuts += len(expected)
    assert cuts > 0


@pytest.mark.parametrize(
    ("pre", "between"), [("roberta-bpe", 2), ("jina-v2-code", 2), ("modern-bert", 1)]
)
def test_texts_of_encoders_have_their_ends_and_pairs_what_is_between(
    api: Any, tmp_path: Path, pre: str, between: int
) -> None:
    """RoBERTa's pairs are `<s> a </s></s> b </s>`, ModernBERT's `[CLS] a [SEP] b [SEP]`."""
    path = tmp_path / "vocabulary.gguf"
    write_vocabulary(path, pre, ends=True)
    params = api.llama_model_default_params()
    params.vocab_only = True
    model = api.llama_model_load_from_file(str(path).encode(), params)
    vocabulary = api.llama_model_get_vocab(model)
    tokenizer = akunu.Tokenizer.from_gguf(path)
    room = (api.llama_token * 64)()
    n = api.llama_tokenize(vocabulary, b"camelCase 42", 12, room, len(room), True, False)
    assert tokenizer.encode("camelCase 42") == list(room[:n])
    end = tokenizer.eos_id
    first, second = (tokenizer.encode(text, add_special=False) for text in ("tab", "Bad"))
    pair = tokenizer.encode_pair("tab", "Bad")
    assert pair.ids == [tokenizer.bos_id, *first, *[end] * between, *second, end]


# As Kimi K2's code has it.
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def test_kimi_cuts_as_its_published_expression(tmp_path: Path) -> None:
    """Which Python's `regex` reads as it is; ours is without classes in classes."""
    import regex

    from akunu.tokenizers.pretokenizers import FAMILIES

    [ours] = [family.splits[0] for family in FAMILIES if family.names == ("kimi-k2",)]
    published = regex.compile(KIMI, regex.V1)
    written = regex.compile(ours, regex.V1)
    characters = [
        *CHARACTERS,
        *"中文々〇㐀漢日本語のテストカナ한국éßΔдЖǅªʰ١²Ⅷ\u0301\u0903。「」€\u3000\u200d𠀀",
    ]
    stream = np.random.RandomState(2)
    path = tmp_path / "vocabulary.gguf"
    write_vocabulary(path, "kimi-k2", merged=CHARACTERS + "é中漢のД한")
    tokenizer = akunu.Tokenizer.from_gguf(path)
    for _ in range(3000):
        text = "".join(stream.choice(characters, stream.randint(1, 30)))
        words = published.findall(text)
        assert written.findall(text) == words, repr(text)
        tokens = [each for word in words for each in tokenizer.encode(word, add_special=False)]
        assert tokenizer.encode(text, add_special=False) == tokens, repr(text)
