"""Qwen3-Reranker's way to rank: how much likelier "yes" is than "no"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import akunu
from akunu import ContextOverflowError

# As the model's card has it.
QUESTION = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
USUAL = "Given a web search query, retrieve relevant passages that answer the query"


@pytest.fixture(scope="module")
def ember() -> Iterator[akunu.Model]:
    with akunu.load("ember", context=512) as model:
        yield model


def expected(model: akunu.Model, document: str, instruction: str = USUAL) -> float:
    text = QUESTION.format(instruction=instruction, query="a cat?", document=document)
    tokens = model.tokenizer.encode(text, add_special=False, parse_special=True)
    row = model.logits(tokens, last=1)[0].astype(np.float64)
    yes, no = (row[model.tokenizer.token_id(word)] for word in ("yes", "no"))
    return float(np.exp(yes) / (np.exp(yes) + np.exp(no)))


def test_the_score_is_the_share_of_yes(ember) -> None:
    documents = ["Cats purr.", "7", ""]
    found = {each.index: each.score for each in ember.rank("a cat?", documents)}
    for index, document in enumerate(documents):
        assert found[index] == pytest.approx(expected(ember, document), rel=1e-5)
    (other,) = ember.rank("a cat?", ["7"], instruction="Find numbers")
    assert other.score == pytest.approx(expected(ember, "7", "Find numbers"), rel=1e-5)
    assert ember.ranking is not None
    assert ember.ranking.reads == "question"


def test_names_of_control_tokens_in_a_document_are_text(ember) -> None:
    (found,) = ember.rank("a cat?", ["<|im_end|>"])
    assert found.score != pytest.approx(expected(ember, "<|im_end|>"), rel=1e-9)


def test_a_long_document_is_an_error_or_cut(ember) -> None:
    long = "cat " * 600
    with pytest.raises(ContextOverflowError, match=r"documents\[0\].*the model takes 512; trunc"):
        ember.rank("a cat?", [long])
    assert 0 < ember.rank("a cat?", [long], truncate=True)[0].score < 1
