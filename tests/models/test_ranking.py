"""A small random cross-encoder as GGUF, against its mathematics in NumPy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import encoder_models as em
import numpy as np
import pytest
from engine import GPUS
from gguf import PoolingType

import akunu
from akunu import ArgumentError, ContextOverflowError, UnsupportedModelError

SPEC = em.EncoderSpec(positions=64)
TENSORS = em.random_tensors(SPEC)
QUERY = "a cat"
DOCUMENTS = ["dogs", "cat a b", "", "b c d cats a", "dogs"]


def head(n_labels: int = 1) -> em.Tensors:
    """A classifier's two layers, as llama.cpp's converter names them."""
    rng = np.random.default_rng(7)
    shapes = {
        "cls.weight": (SPEC.dim, SPEC.dim),
        "cls.bias": (SPEC.dim,),
        "cls.output.weight": (n_labels, SPEC.dim),
        "cls.output.bias": (n_labels,),
    }
    return {name: (rng.standard_normal(s) / 4).astype(np.float32) for name, s in shapes.items()}


HEAD = head()


@pytest.fixture(scope="module")
def ranker_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranker") / "ranker.gguf"
    return em.write_gguf(path, SPEC, TENSORS, pooling=PoolingType.RANK, more=HEAD)


@pytest.fixture(scope="module")
def ranker(ranker_file: Path) -> Iterator[akunu.Model]:
    with akunu.load(ranker_file) as model:
        yield model


def expected_logit(model: akunu.Model, document: str) -> float:
    """The score by the formula."""
    first, second = (model.tokenizer.encode(text, False) for text in (QUERY, document))
    opens, ends = em.TOKENS.index("[CLS]"), em.TOKENS.index("[SEP]")
    ids = [opens, *first, ends, *second, ends]
    row = em.forward(SPEC, TENSORS, ids, second_segment=len(first) + 2)[0]
    hidden = np.tanh(HEAD["cls.weight"] @ row + HEAD["cls.bias"])
    return float((HEAD["cls.output.weight"] @ hidden + HEAD["cls.output.bias"])[0])


def test_documents_come_by_the_formulas_scores(ranker) -> None:
    expected = [expected_logit(ranker, document) for document in DOCUMENTS]
    found = ranker.rank(QUERY, DOCUMENTS, normalize=False)
    assert [each.document for each in found] == [DOCUMENTS[each.index] for each in found]
    for each in found:
        assert each.score == pytest.approx(expected[each.index], abs=2e-5)
    order = [each.index for each in found]
    assert order == sorted(range(5), key=lambda index: (-found[order.index(index)].score, index))
    assert order.index(0) < order.index(4)  # equal ones keep their order


def test_scores_are_between_0_and_1_unless_asked_otherwise(ranker) -> None:
    logits = ranker.rank(QUERY, DOCUMENTS, normalize=False)
    scores = ranker.rank(QUERY, DOCUMENTS)
    for logit, score in zip(logits, scores, strict=True):
        assert score.score == pytest.approx(1 / (1 + np.exp(-logit.score)), abs=1e-12)
    assert ranker.ranking == akunu.embedding.reranking.RankingFacts(
        reads="pair", normalize=True, most_tokens=64
    )


def test_the_first_few_are_those_of_all(ranker) -> None:
    assert ranker.rank(QUERY, DOCUMENTS, 2) == ranker.rank(QUERY, DOCUMENTS)[:2]
    assert ranker.rank(QUERY, DOCUMENTS, top_k=9) == ranker.rank(QUERY, DOCUMENTS)
    assert ranker.rank(QUERY, []) == []


def test_a_score_has_the_same_bits_alone_and_with_other_threads(ranker, ranker_file) -> None:
    documents = [*DOCUMENTS, *("a b c " * (1 + i % 12) for i in range(100))]
    together = {each.index: each.score for each in ranker.rank(QUERY, documents)}
    for index in (0, 3, 50, 104):
        (alone,) = ranker.rank(QUERY, [documents[index]])
        assert alone.score == together[index]
    with akunu.load(ranker_file, threads=1) as other:
        assert {each.index: each.score for each in other.rank(QUERY, documents)} == together


@pytest.mark.parametrize("weights", ["f16", "q8_0"])
def test_a_head_in_fewer_bits_changes_little(tmp_path, ranker, weights) -> None:
    path = tmp_path / "small.gguf"
    em.write_gguf(path, SPEC, TENSORS, pooling=PoolingType.RANK, more=HEAD, weights=weights)
    with akunu.load(path) as small:
        for one, other in zip(
            sorted(small.rank(QUERY, DOCUMENTS), key=lambda each: each.index),
            sorted(ranker.rank(QUERY, DOCUMENTS), key=lambda each: each.index),
            strict=True,
        ):
            assert one.score == pytest.approx(other.score, abs=0.03)


def test_a_document_that_is_too_long_is_an_error_or_cut(ranker) -> None:
    long = "a b c d " * 20
    with pytest.raises(
        ContextOverflowError,
        match=r"documents\[1\]: the query and the document have 85 tokens, the model takes 64; tr",
    ):
        ranker.rank(QUERY, ["a", long])
    (cut,) = ranker.rank(QUERY, [long], truncate=True)
    (fits,) = ranker.rank(QUERY, [" ".join(long.split()[:59])])
    assert cut.score == fits.score
    with pytest.raises(ContextOverflowError, match="the query alone leaves no room"):
        ranker.rank("a " * 70, ["a"], truncate=True)


@pytest.mark.parametrize(
    ("query", "documents", "options", "message"),
    [
        (5, ["a"], {}, "query is 5"),
        ("a", "b", {}, "documents is 'b'; it must be a sequence of texts"),
        ("a", ["b", None], {}, r"documents\[1\] is None"),
        ("a", ["b"], {"top_k": 0}, "top_k is 0"),
        ("a", ["b"], {"instruction": "find"}, "instruction is for models that read a question"),
        ("a", ["b"], {"progress": 3}, "progress is 3; it must be True, False or a function"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    ranker, query, documents, options, message
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ranker.rank(query, documents, **options)


def test_a_ranker_embeds_nothing_and_others_do_not_rank(tmp_path, ranker) -> None:
    assert ranker.embedding is None
    with pytest.raises(UnsupportedModelError, match="this model scores pairs of texts"):
        ranker.embed("a")
    with akunu.load(em.write_gguf(tmp_path / "bert.gguf", SPEC, TENSORS)) as bert:
        assert bert.ranking is None
        with pytest.raises(UnsupportedModelError, match="does not rank; load a cross-encoder"):
            bert.rank("a", ["b"])
    three = em.write_gguf(
        tmp_path / "three.gguf", SPEC, TENSORS, pooling=PoolingType.RANK, more=head(3)
    )
    with (
        akunu.load(three) as model,
        pytest.raises(UnsupportedModelError, match="tells 3 classes apart"),
    ):
        model.rank("a", ["b"])


def test_coroutines_get_the_same_ranking_and_progress_is_told(ranker) -> None:
    told: list[tuple[int, int]] = []
    found = asyncio.run(
        ranker.rank_async(QUERY, DOCUMENTS, progress=lambda done, of: told.append((done, of)))
    )
    assert found == ranker.rank(QUERY, DOCUMENTS)
    assert told == [(n, 5) for n in range(1, 6)]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_gpu_gives_the_same_scores(ranker, ranker_file, gpu: str) -> None:
    with akunu.load(ranker_file, device=gpu) as other:
        found = {each.index: each.score for each in other.rank(QUERY, DOCUMENTS)}
    for each in ranker.rank(QUERY, DOCUMENTS):
        assert found[each.index] == pytest.approx(each.score, abs=1e-5)
