"""SentenceEncoder: sentence-transformers' words, and LangChain's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import encoder_models as em
import numpy as np
import pytest

import akunu
from akunu import ArgumentError, SentenceEncoder, UnsupportedModelError

SPEC = em.EncoderSpec()
PROMPTS = {"query": "a b ", "document": "c "}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bert")
    return em.write_directory(path, SPEC, em.random_tensors(SPEC), pooling="mean", prompts=PROMPTS)


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[akunu.Model]:
    with akunu.load(folder) as model:
        yield model


@pytest.fixture(scope="module")
def encoder(model: akunu.Model) -> SentenceEncoder:
    return SentenceEncoder(model)


def test_encode_gives_the_vectors_of_embed_and_cuts_long_texts(encoder, model) -> None:
    texts = ["a cat", "dogs " * 50]
    assert (encoder.encode(texts) == model.embed(texts, truncate=True)).all()
    assert encoder.encode("a cat").shape == (SPEC.dim,)
    assert encoder.max_seq_length == 32
    assert encoder.get_sentence_embedding_dimension() == SPEC.dim
    assert encoder.encode(texts, normalize_embeddings=False, batch_size=7).shape == (2, SPEC.dim)


def test_queries_and_documents_have_their_prompts(encoder, model) -> None:
    assert encoder.prompts == PROMPTS
    query, document = model.embed(["a b cat", "c cat"])
    assert (encoder.encode_query("cat") == query).all()
    assert (encoder.encode_document("cat") == document).all()
    assert (encoder.encode("cat", prompt_name="query") == query).all()
    assert encoder.embed_query("cat") == query.tolist()
    assert encoder.embed_documents(["cat"]) == [document.tolist()]


def test_similarity_is_the_cosine() -> None:
    first, second = [[1.0, 0.0], [3.0, 4.0]], [[0.0, 2.0], [6.0, 8.0]]
    np.testing.assert_allclose(
        SentenceEncoder.similarity(first, second), [[0, 0.6], [0.8, 1]], atol=1e-6
    )
    np.testing.assert_allclose(
        SentenceEncoder.similarity_pairwise(first, second), [0, 1], atol=1e-6
    )
    assert SentenceEncoder.similarity([0.0, 0.0], [1.0, 0.0]).tolist() == [[0.0]]


def test_vectors_that_have_no_cosine_are_refused() -> None:
    narrow, wide = np.ones((2, 3)), np.ones((2, 4))
    for similarity in (SentenceEncoder.similarity, SentenceEncoder.similarity_pairwise):
        with pytest.raises(ArgumentError, match=r"vectors have 3 numbers in first and 4 in second"):
            similarity(narrow, wide)
        with pytest.raises(ArgumentError, match=r"second must be vectors of numbers"):
            similarity(narrow, [[1.0], [1.0, 2.0]])
        with pytest.raises(ArgumentError, match=r"first must be vectors of numbers"):
            similarity(["a", "b"], narrow)
        with pytest.raises(ArgumentError, match=r"second must be a vector or \[n, dim\], got \["):
            similarity(narrow, np.ones((1, 2, 3)))
    with pytest.raises(ArgumentError, match=r"equal numbers of vectors: got 2 and 3"):
        SentenceEncoder.similarity_pairwise(narrow, np.ones((3, 3)))
    assert SentenceEncoder.similarity_pairwise(narrow[0], narrow).shape == (2,)


def test_truncate_dim_is_of_every_vector(model) -> None:
    short = SentenceEncoder(model, truncate_dim=8)
    assert (short.encode("a cat") == model.embed("a cat", dimensions=8)).all()
    assert short.get_sentence_embedding_dimension() == 8


def test_it_closes_what_it_loaded_and_nothing_else(folder, model) -> None:
    with SentenceEncoder(folder, threads=1) as own:
        assert own.encode("a").shape == (SPEC.dim,)
    with pytest.raises(akunu.AkunuError, match="closed"):
        own.encode("a")
    SentenceEncoder(model).close()
    assert model.embed("a").shape == (SPEC.dim,)


def test_what_makes_no_sense_is_refused(model, encoder) -> None:
    with pytest.raises(
        ArgumentError, match="the model is loaded already: threads would have no effect"
    ):
        SentenceEncoder(model, threads=1)
    with pytest.raises(ArgumentError, match="convert_to_numpy is False"):
        encoder.encode("a", convert_to_numpy=False)
    with pytest.raises(UnsupportedModelError, match="load an encoder"):
        SentenceEncoder("ember", context=256)


def test_langchain_takes_it_for_one_of_its_embeddings(model) -> None:
    core = pytest.importorskip("langchain_core.embeddings", reason="langchain-core is not here")
    from akunu.langchain import AkunuEmbeddings

    embeddings = AkunuEmbeddings(model)
    assert isinstance(embeddings, core.Embeddings)
    assert embeddings.embed_query("cat") == SentenceEncoder(model).embed_query("cat")
