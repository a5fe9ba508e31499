"""tools/cut_vocabulary.py: fewer tokens, and the same ones for the texts that were requested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tokenizer_support import DATA, cases, read_metadata, shared

from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.cut_vocabulary import ORIGINAL_IDS, cut

from akunu.tokenizers.tokenizer import Tokenizer

pytestmark = pytest.mark.tools

FAMILIES = ("bert-bge", "gpt-2", "llama-bpe", "llama-spm", "qwen2")
TEXTS = (
    "Hello World!",
    "Hello world",
    " Việt",
    "né 🦙👩‍👩‍👧 日本語 😁",
    "The capital of Italy is Rome. What is 12 + 7? Hello! Who are you?",
)


@each_line("family", FAMILIES)
def test_a_cut_vocabulary_cut_again_still_gives_llama_cpp_s_ids(
    family: str, tmp_path: Path
) -> None:
    path = DATA / "vocabularies" / f"ggml-vocab-{family}.gguf"
    count = cut(path, tmp_path, first=0, more=[])
    made = tmp_path / path.name
    tokenizer = Tokenizer.from_gguf(made)
    assert tokenizer.vocab_size == count < Tokenizer.from_gguf(path).vocab_size
    numbers = read_metadata(made)[ORIGINAL_IDS]
    for text, ids in cases(family):
        found = tokenizer.encode(text, add_special=False)
        assert [int(numbers[index]) for index in found] == ids


def test_text_that_was_not_asked_for_is_made_of_what_is_left(tmp_path: Path) -> None:
    path = DATA / "vocabularies" / "ggml-vocab-gpt-2.gguf"
    whole, part = Tokenizer.from_gguf(path), tmp_path / path.name
    cut(path, tmp_path, first=0, more=[])
    text = " there is another"
    ids = Tokenizer.from_gguf(part).encode(text)
    assert Tokenizer.from_gguf(part).decode(ids) == text
    assert len(ids) > len(whole.encode(text))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_those_beside_the_tests_are_what_the_tool_makes(family: str, tmp_path: Path) -> None:
    path = shared("AKUNU_TEST_VOCABS", "vocab") / f"ggml-vocab-{family}.gguf"
    cut(path, tmp_path, first=0 if family == "bert-bge" else 500, more=list(TEXTS))
    for name in (path.name, f"{path.name}.inp", f"{path.name}.out"):
        assert (tmp_path / name).read_bytes() == (DATA / "vocabularies" / name).read_bytes()
