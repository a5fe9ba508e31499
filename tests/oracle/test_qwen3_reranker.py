"""Qwen3-Reranker as llama.cpp's converter writes it: two rows of the output, a pooling, a template.

Ember is of Qwen3's family and has the words: it is written so, in float32, and both engines rank.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from ranking_peer import scores

import akunu
from akunu.hub.packaged_models import PACKAGED_MODELS

pytest.importorskip("xllamacpp")

pytestmark = pytest.mark.oracle

EMBER = PACKAGED_MODELS["ember"]
# `tokenizer.chat_template.rerank` of the converted file.
TEMPLATE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n"
)
QUERY = "which animals purr?"
DOCUMENTS = ["Cats purr.", "The moon is far away.", "7", "A dog barks; a cat purrs, and it sleeps."]


def write_reranker(path: Path) -> Path:
    reader = gguf.GGUFReader(EMBER)
    writer = gguf.GGUFWriter(path, "qwen3")
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], inner)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["yes", "no"])
    writer.add_string("tokenizer.chat_template.rerank", TEMPLATE)
    words = [akunu.Tokenizer.from_gguf(EMBER).token_id(word) for word in ("yes", "no")]
    for tensor in reader.tensors:
        numbers = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, numbers)
        if tensor.name == "token_embd.weight":
            writer.add_tensor("cls.output.weight", numbers[words])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reranker(tmp_path_factory.mktemp("reranker") / "reranker.gguf")


def test_scores_are_those_of_llama_cpp(reranker: Path, peer: str) -> None:
    theirs = scores(peer, reranker, QUERY, DOCUMENTS)
    with akunu.load(reranker, context=512) as model:
        assert model.ranking is not None
        assert model.ranking.reads == "question"
        ours = {each.index: each.score for each in model.rank(QUERY, DOCUMENTS)}
    # llama.cpp's cache is F16: 3e-4 of a score.
    np.testing.assert_allclose([ours[i] for i in range(len(DOCUMENTS))], theirs, rtol=2e-3)
    assert len(set(np.round(theirs, 4))) == len(DOCUMENTS)


def test_scores_are_those_of_the_model_that_generates(reranker: Path) -> None:
    """The two rows are the output's, so the share of yes is the same without them."""
    with akunu.load(reranker, context=512) as ranks, akunu.load("ember", context=512) as generates:
        first = {each.index: each.score for each in ranks.rank(QUERY, DOCUMENTS)}
        other = {each.index: each.score for each in generates.rank(QUERY, DOCUMENTS)}
    for index, score in first.items():
        assert score == pytest.approx(other[index], rel=0.05)  # Q8_0 beside float32
