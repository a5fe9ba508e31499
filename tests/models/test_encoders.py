"""A small random BERT through the engine, against its mathematics in NumPy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import encoder_models as em
import numpy as np
import pytest
from gguf import PoolingType
from numpy.typing import NDArray

import akunu
from akunu import ArgumentError, ContextOverflowError, ModelFormatError, UnsupportedModelError
from lines import each_line

SPEC = em.EncoderSpec()
TENSORS = em.random_tensors(SPEC)
NOMIC = em.EncoderSpec(architecture="nomic-bert")
NOMIC_TENSORS = em.random_tensors(NOMIC)
POOLINGS = ["mean", "cls", "last", "max"]


@pytest.fixture(scope="module")
def bert_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return em.write_gguf(tmp_path_factory.mktemp("bert") / "bert.gguf", SPEC, TENSORS)


@pytest.fixture(scope="module")
def bert(bert_file: Path) -> Iterator[akunu.Model]:
    with akunu.load(bert_file, threads=2) as model:
        yield model


@pytest.fixture(scope="module")
def nomic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[akunu.Model]:
    path = tmp_path_factory.mktemp("nomic") / "nomic.gguf"
    with akunu.load(em.write_gguf(path, NOMIC, NOMIC_TENSORS, pooling=PoolingType.CLS)) as model:
        yield model


def cosine(a: NDArray[np.generic], b: NDArray[np.generic]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def text_of(n: int, seed: int = 0) -> str:
    """A text of n tokens, [CLS] and [SEP] among them."""
    rng = np.random.default_rng(seed)
    return " ".join(rng.choice(["a", "b", "c", "d", "cat", "dog"], n - 2))


@each_line("pooling", POOLINGS)
@each_line("n", [2, 3, 17, 255, 256, 257, 600])
def test_a_text_becomes_the_vector_of_the_formula(bert, n, pooling) -> None:
    text = text_of(n)
    ids = bert.tokenizer.encode(text)
    assert len(ids) == n
    expected = em.pooled(em.forward(SPEC, TENSORS, ids), pooling)
    found = bert.embed(text, pooling=pooling, normalize=False)
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("n", [2, 17, 257, 600])
def test_nomic_bert_rotates_and_has_gates(nomic, n) -> None:
    ids = nomic.tokenizer.encode(text_of(n))
    expected = em.pooled(em.forward(NOMIC, NOMIC_TENSORS, ids), "cls")
    found = nomic.embed(text_of(n), normalize=False)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_token_types_change_where_the_second_segment_begins(bert) -> None:
    ids = bert.tokenizer.encode("a cat dogs b")
    pending = bert._open().start_encode(np.array(ids, np.uint32), pooling="none", second_segment=3)
    rows = em.forward(SPEC, TENSORS, ids, second_segment=3)
    np.testing.assert_allclose(pending.result(), rows, atol=2e-5)


def test_vectors_have_length_1_unless_asked_otherwise(bert) -> None:
    vectors = bert.embed(["a cat", "dogs"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert bert.embedding == akunu.embedding.embed.EmbeddingFacts(
        dim=64, pooling="mean", normalize=True, most_tokens=600
    )


def test_a_text_has_the_same_bits_alone_and_beside_others(bert) -> None:
    texts = [text_of(2 + 7 * i % 90, i) for i in range(150)] + [text_of(600), "", text_of(300)]
    together = bert.embed(texts)
    few = bert.embed(texts, batch_rows=64)
    assert together.tobytes() == few.tobytes()
    for index in (0, 1, 77, 149, 150, 151, 152):
        assert bert.embed(texts[index]).tobytes() == together[index].tobytes()


def test_a_text_has_the_same_bits_with_any_number_of_threads(bert, bert_file) -> None:
    texts = [text_of(n) for n in (3, 40, 600)]
    with akunu.load(bert_file, threads=1) as other:
        assert other.embed(texts).tobytes() == bert.embed(texts).tobytes()


@pytest.mark.parametrize(
    ("weights", "least"), [("f16", 0.9999), ("bf16", 0.999), ("q8_0", 0.999), ("q4_0", 0.93)]
)
def test_smaller_weights_change_little(tmp_path, bert, weights, least) -> None:
    path = em.write_gguf(tmp_path / "small.gguf", SPEC, TENSORS, weights=weights)
    with akunu.load(path) as small:
        for n in (2, 20, 300):
            assert cosine(small.embed(text_of(n)), bert.embed(text_of(n))) >= least


def test_a_text_that_is_too_long_is_an_error_or_cut(bert) -> None:
    text = text_of(700)
    with pytest.raises(
        ContextOverflowError,
        match=r"texts\[1\]: the text has 700 tokens, the model takes 600; truncate=True",
    ):
        bert.embed(["a", text])
    words = text.split()
    from_left = bert.embed(" ".join(words[:598]))
    assert bert.embed(text, truncate=True).tobytes() == from_left.tobytes()
    from_right = bert.embed(" ".join(words[-598:]))
    assert bert.embed(text, truncate="left").tobytes() == from_right.tobytes()


def test_dimensions_are_the_first_ones_scaled_anew(bert) -> None:
    whole = bert.embed("a cat", normalize=False)[:10]
    np.testing.assert_allclose(
        bert.embed("a cat", dimensions=10), whole / np.linalg.norm(whole), rtol=1e-6
    )


def test_precisions(bert) -> None:
    texts = ["a cat", "dogs", "b c d"]
    vectors = bert.embed(texts)
    assert bert.embed(texts, precision="float16").tolist() == vectors.astype(np.float16).tolist()
    small = bert.embed(texts, precision="int8")
    assert small.dtype == np.int8
    assert np.abs(small).max(axis=1).tolist() == [127, 127, 127]
    assert min(cosine(a.astype(float), b) for a, b in zip(small, vectors, strict=True)) > 0.9995
    bits = bert.embed(texts, precision="binary")
    assert bits.shape == (3, 8)
    unpacked = np.unpackbits((bits.astype(np.int16) + 128).astype(np.uint8), axis=1)
    assert (unpacked == (vectors > 0)).all()


def test_a_prompt_is_put_in_front_of_each_text(bert) -> None:
    assert (bert.embed(["cat"], prompt="a b ") == bert.embed(["a b cat"])).all()


def test_no_texts_give_no_vectors(bert) -> None:
    assert bert.embed([]).shape == (0, 64)


def test_progress_is_told_after_each_text(bert) -> None:
    told: list[tuple[int, int]] = []
    bert.embed(["a", "b", "c"], progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@each_line(
    ("arguments", "message"),
    [
        (
            {"pooling": "first"},
            "pooling is 'first'; it must be one of mean, cls, last, max, none or None",
        ),
        ({"dimensions": 65}, "dimensions is 65; it must be an integer from 1 to 64"),
        ({"dimensions": 12, "precision": "binary"}, "binary vectors need a multiple of 8"),
        ({"truncate": "middle"}, "truncate is 'middle'; it must be True, False"),
        ({"precision": "int4"}, "precision is 'int4'; it must be one of float32"),
        ({"batch_rows": 0}, "batch_rows is 0"),
        ({"prompt": 3}, "prompt is 3; it must be a str or None"),
        ({"progress": 3}, "progress is 3; it must be True, False or a function"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(bert, arguments, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        bert.embed(["a"], **arguments)
    with pytest.raises(ArgumentError, match=r"texts\[1\] is 5; it must be a text"):
        bert.embed(["a", 5])
    with pytest.raises(ArgumentError, match="it must be a text or a sequence of texts"):
        bert.embed(np.array("a"))


def test_an_encoder_generates_no_text(bert) -> None:
    for call in (lambda: bert.generate("a"), lambda: bert.logits([1, 2])):
        with pytest.raises(UnsupportedModelError, match="bert is an encoder: it embeds text"):
            call()
    with pytest.raises(UnsupportedModelError, match="bert is an encoder: it embeds texts"):
        bert.chat([{"role": "user", "content": "a"}])


def test_a_model_that_generates_embeds_nothing() -> None:
    with akunu.load("ember", context=256) as model:
        assert model.embedding is None
        with pytest.raises(UnsupportedModelError, match="load an encoder"):
            model.embed("Hello")


def test_the_context_may_be_shorter_and_a_longer_one_is_what_the_encoder_has(bert_file) -> None:
    with akunu.load(bert_file, context=20) as model:
        assert model.embed(text_of(20)).shape == (64,)
        with pytest.raises(ContextOverflowError, match="has 21 tokens, the model takes 20"):
            model.embed(text_of(21))
    with akunu.load(bert_file, context=601) as model:
        assert model.context == 600
        assert any("context is 601; this encoder has 600 positions" in n for n in model.notes)
        with pytest.raises(ContextOverflowError, match="has 601 tokens, the model takes 600"):
            model.embed(text_of(601))


def test_a_file_that_lacks_positions_or_says_causal_is_refused(tmp_path) -> None:
    few = dict(TENSORS)
    name = "embeddings.position_embeddings.weight"
    few[name] = few[name][:599]
    with pytest.raises(ModelFormatError, match=r"has 599 rows; the model's numbers ask for 600"):
        akunu.load(em.write_gguf(tmp_path / "few.gguf", SPEC, few))
    with pytest.raises(UnsupportedModelError, match=r"bert.attention.causal is true"):
        akunu.load(em.write_gguf(tmp_path / "causal.gguf", SPEC, TENSORS, causal=True))


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_directory_is_the_same_model(tmp_path, bert, prefix) -> None:
    folder = em.write_directory(tmp_path / "bert", SPEC, TENSORS, prefix=prefix)
    with akunu.load(folder) as model:
        assert [note for note in model.notes if "pooler" not in note] == []
        for n in (2, 40, 600):
            assert model.embed(text_of(n)).tobytes() == bert.embed(text_of(n)).tobytes()


def test_files_of_sentence_transformers_say_how_it_embeds(tmp_path, bert) -> None:
    prompts = {"query": "a b ", "document": "c "}
    folder = em.write_directory(
        tmp_path / "bert",
        SPEC,
        TENSORS,
        pooling="cls",
        prompts=prompts,
        default_prompt_name="document",
    )
    with akunu.load(folder) as model:
        facts = model.embedding
        assert facts is not None
        assert (facts.pooling, facts.most_tokens, facts.default_prompt) == ("cls", 32, "document")
        same = bert.embed(["a b cat", "c cat", "cat"], pooling="cls")
        assert model.embed("cat", prompt_name="query").tobytes() == same[0].tobytes()
        assert model.embed("cat").tobytes() == same[1].tobytes()
        assert model.embed("cat", prompt="").tobytes() == same[2].tobytes()
        with pytest.raises(ArgumentError, match=r"prompt_name is 'title'; .* 'query'"):
            model.embed("cat", prompt_name="title")
        with pytest.raises(ContextOverflowError, match="the model takes 32"):
            model.embed(text_of(40))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("position_embedding_type", "relative_key", "akunu has absolute for bert"),
        ("hidden_act", "relu", "akunu has gelu for bert"),
        ("is_decoder", True, "it is not supported for bert"),
        ("num_attention_heads", 5, "which it does not divide"),
    ],
)
def test_a_directory_that_asks_for_more_is_refused(tmp_path, key, value, message) -> None:
    folder = em.write_directory(tmp_path / "bert", SPEC, TENSORS)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises((UnsupportedModelError, ModelFormatError), match=message):
        akunu.load(folder)


def test_modules_that_are_not_here_are_refused(tmp_path) -> None:
    folder = em.write_directory(tmp_path / "bert", SPEC, TENSORS, pooling="mean")
    modules = json.loads((folder / "modules.json").read_text())
    other = {"idx": 2, "path": "2_CNN", "type": "sentence_transformers.models.CNN"}
    (folder / "modules.json").write_text(json.dumps([*modules, other]))
    with pytest.raises(UnsupportedModelError, match=r"modules\.json asks for CNN"):
        akunu.load(folder)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("modules.json", "null", "list"),
        ("1_Pooling/config.json", "[]", "is not a JSON object"),
        ("sentence_bert_config.json", "3", "is not a JSON object"),
        ("sentence_bert_config.json", '{"max_seq_length": 0}', "max_seq_length is 0; it must be 1"),
        (
            "sentence_bert_config.json",
            '{"max_seq_length": true}',
            "max_seq_length is True; it must",
        ),
        ("config_sentence_transformers.json", '{"prompts": {"a": 3}}', "prompts must be texts"),
        (
            "config_sentence_transformers.json",
            '{"default_prompt_name": "a"}',
            "not one of its prompts",
        ),
    ],
)
def test_files_of_sentence_transformers_that_are_wrong_are_refused(
    tmp_path, name, text, message
) -> None:
    folder = em.write_directory(tmp_path / "bert", SPEC, TENSORS, pooling="mean")
    (folder / name).write_text(text)
    with pytest.raises(ModelFormatError, match=message):
        akunu.load(folder)


def test_prompts_for_queries_and_documents_are_empty_where_a_file_has_none(tmp_path, bert) -> None:
    folder = em.write_directory(
        tmp_path / "bert", SPEC, TENSORS, pooling="mean", default_prompt_name="document"
    )
    with akunu.load(folder) as model:
        assert model.embed("a cat").tobytes() == bert.embed("a cat").tobytes()


def write_dense(folder: Path, name: str, shape: tuple[int, int], activation: str) -> em.Tensors:
    """A dense layer as sentence-transformers saves it."""
    rng = np.random.default_rng(shape[0])
    tensors = {
        "linear.weight": (rng.standard_normal(shape) / 8).astype(np.float32),
        "linear.bias": rng.standard_normal(shape[0]).astype(np.float32),
    }
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(
        json.dumps({"in_features": shape[1], "out_features": shape[0], "bias": True})
        if activation == "Tanh"
        else json.dumps({"activation_function": "torch.nn.modules.linear.Identity"})
    )
    em.write_safetensors(
        folder / name / "model.safetensors",
        {key: ("F32", values.shape, values.tobytes()) for key, values in tensors.items()},
    )
    return tensors


def test_dense_layers_are_behind_the_pool(tmp_path, bert) -> None:
    folder = em.write_directory(tmp_path / "bert", SPEC, TENSORS, pooling="mean")
    modules = json.loads((folder / "modules.json").read_text())
    kind = "sentence_transformers.models.Dense"
    names = ["2_Dense", "3_Dense"]
    more = [{"idx": 2, "path": name, "type": kind} for name in names]
    (folder / "modules.json").write_text(json.dumps([*modules[:2], *more, modules[2]]))
    with pytest.raises(ModelFormatError, match=r"2_Dense/config.json is missing; modules.json"):
        akunu.load(folder)
    first = write_dense(folder, "2_Dense", (96, 64), "Tanh")
    second = write_dense(folder, "3_Dense", (8, 96), "Identity")
    pooled = bert.embed("a cat", normalize=False)
    hidden = np.tanh(first["linear.weight"] @ pooled + first["linear.bias"])
    expected = second["linear.weight"] @ hidden + second["linear.bias"]
    with akunu.load(folder) as model:
        assert model.embedding is not None
        assert model.embedding.dim == 8
        np.testing.assert_allclose(model.embed("a cat", normalize=False), expected, atol=2e-5)
        vector = model.embed("a cat")
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


@each_line("name", ["linear.weight", "linear.bias"])
def test_a_dense_layer_that_holds_no_numbers_is_refused_by_name(tmp_path, name) -> None:
    folder = em.write_directory(tmp_path / "bert", SPEC, TENSORS, pooling="mean")
    modules = json.loads((folder / "modules.json").read_text())
    dense = {"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    (folder / "modules.json").write_text(json.dumps([*modules[:2], dense]))
    tensors = write_dense(folder, "2_Dense", (96, 64), "Tanh")
    tensors[name][..., 5] = np.nan
    em.write_safetensors(
        folder / "2_Dense" / "model.safetensors",
        {key: ("F32", values.shape, values.tobytes()) for key, values in tensors.items()},
    )
    message = rf"2_Dense.*{name} has NaN in row 0, column 5"
    with pytest.raises(ModelFormatError, match=message):
        akunu.load(folder)


def test_without_pooling_each_token_has_a_vector(bert) -> None:
    texts = ["a cat", "", "dogs b"]
    found = bert.embed(texts, pooling="none", normalize=False)
    for text, vectors in zip(texts, found, strict=True):
        ids = bert.tokenizer.encode(text)
        np.testing.assert_allclose(vectors, em.forward(SPEC, TENSORS, ids), atol=2e-5)
    assert bert.embed("a cat", pooling="none", precision="int8").shape == (4, 64)


def test_coroutines_get_the_same_vectors(bert) -> None:
    texts = ["a cat", text_of(300), "", "dogs"]
    found = asyncio.run(bert.embed_async(texts))
    assert found.tobytes() == bert.embed(texts).tobytes()
