"""Cross-encoders: scores of pairs are those of sentence-transformers' CrossEncoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import random_encoders as rnd
import sentence_transformers

import akunu

pytestmark = pytest.mark.oracle

QUERY = "a cat"
DOCUMENTS = ["dogs", "cat a b", "", "a dog cats b c d " * 20, "c"]


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_scores_are_those_of_sentence_transformers(tmp_path: Path, family: str) -> None:
    model = rnd.model_of(family, "ForSequenceClassification", num_labels=1)
    described = rnd.tokenizer_json()
    if family != "bert":  # one type of tokens
        for piece in described["post_processor"]["pair"]:
            next(iter(piece.values()))["type_id"] = 0
    folder = rnd.save(tmp_path / family, model, described)
    theirs = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    expected = theirs.predict([(QUERY, text) for text in DOCUMENTS], show_progress_bar=False)
    with akunu.load(folder) as ours:
        found = ours.rank(QUERY, DOCUMENTS)
        scores = {each.index: each.score for each in found}
        np.testing.assert_allclose([scores[i] for i in range(5)], expected, atol=2e-5)
        assert [each.score for each in found] == sorted(scores.values(), reverse=True)
        for each in found:
            (alone,) = ours.rank(QUERY, [each.document])
            assert alone.score == each.score
