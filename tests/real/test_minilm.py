"""all-MiniLM-L6-v2, as its directory and as GGUF, against transformers in float32."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import akunu

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

pytestmark = [pytest.mark.real, pytest.mark.oracle]

HARD = [
    "",
    "a",
    "Hello, World!",
    "naïve café",
    "東京 is big",
    "e-mail\n\tand 3.14159",
    "\U0001f600 ok",
]
LENGTHS = [1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100, 150, 254, 255, 256, 257, 300, 400, 509, 510]


@pytest.fixture(scope="module")
def folder(real_models: Path) -> Path:
    return real_models / "minilm"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Hard ones, and such of 3 to 512 tokens."""
    rng = np.random.default_rng(0)
    words = [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "rain",
        "Paris",
        "money",
        "music",
        "water",
        "seven",
        "green",
    ]
    return [*HARD, *(" ".join(rng.choice(words, n)) for n in LENGTHS)]


@pytest.fixture(scope="module")
def expected(folder: Path, texts: list[str]) -> NDArray[np.float32]:
    """The mean of transformers' last hidden rows, of length 1; each text alone."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    vectors = []
    for text in texts:
        with torch.no_grad():
            given = tokenizer(text, return_tensors="pt", truncation=True, max_length=512)
            mean = model(**given).last_hidden_state[0].mean(dim=0)
        vectors.append((mean / mean.norm()).numpy())
    return np.stack(vectors)


@pytest.fixture(scope="module")
def directory(folder: Path) -> Iterator[akunu.Model]:
    with akunu.load(folder) as model:
        yield model


def embed(model: akunu.Model, texts: list[str]) -> NDArray[Any]:
    """Of all tokens: sentence-transformers' file says 256, and the model has 512."""
    ids = [model.tokenizer.encode(text) for text in texts]
    assert max(map(len, ids)) == 512
    native = model._open()
    rows = [
        native.start_encode(np.array(each, np.uint32), pooling="mean").result()[0] for each in ids
    ]
    return np.stack([row / np.linalg.norm(row) for row in rows])


def test_the_directory_gives_the_vectors_of_transformers(directory, texts, expected) -> None:
    cosines = (embed(directory, texts) * expected).sum(axis=1)
    assert cosines.min() >= 0.99999
    assert directory.embedding.most_tokens == 256


@pytest.mark.parametrize(("weights", "least"), [("f32", 0.99999), ("f16", 0.9999), ("q8_0", 0.995)])
def test_gguf_files_give_them_too(tmp_path, folder, texts, expected, weights, least) -> None:
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    spec = em.EncoderSpec(
        dim=config["hidden_size"],
        n_layers=config["num_hidden_layers"],
        n_heads=config["num_attention_heads"],
        ffn_dim=config["intermediate_size"],
        positions=config["max_position_embeddings"],
        vocab_size=config["vocab_size"],
        epsilon=config["layer_norm_eps"],
    )
    tensors = load_file(folder / "model.safetensors")
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    kept = {name: values for name, values in tensors.items() if "position_ids" not in name}
    tokens = em.phantom_spaces(vocabulary)
    path = em.write_gguf(tmp_path / "minilm.gguf", spec, kept, tokens, weights=weights)
    with akunu.load(path) as model:
        assert (embed(model, texts) * expected).sum(axis=1).min() >= least


def test_texts_have_the_same_bits_alone_and_packed(directory, texts) -> None:
    together = directory.embed(texts, truncate=True)
    for index, text in enumerate(texts):
        assert directory.embed(text, truncate=True).tobytes() == together[index].tobytes()


def test_tokens_are_those_of_the_tokenizers_library(directory, folder, texts) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    other.no_truncation()
    other.no_padding()
    for text in texts:
        assert directory.tokenizer.encode(text) == other.encode(text).ids


def test_the_published_vector_of_fastembed(directory) -> None:
    """The first numbers that qdrant/fastembed's own tests expect (test_text_onnx_embeddings.py)."""
    published = [-0.034478, 0.03102, 0.00673, 0.02611, -0.039362]
    found = directory.embed(["hello world", "flag embedding"])[0]
    np.testing.assert_allclose(found[:5], published, atol=1e-5)


def drawn_texts(n: int) -> list[str]:
    """Texts of words, signs, accents, other scripts and spaces of all kinds."""
    rng = np.random.default_rng(3)
    parts = [
        *[
            "the",
            "Café",
            "naïve",
            "straße",
            "東京",
            "日本語",
            "привет",
            "don't",
            "e-mail",
            "3.14",
            "½",
            "ﬁn",
            "#tag",
            "@me",
            "(a)",
            "[b]",
        ],
        *["\t", "\n", "\u00a0", "\u3000", "e\u0301", "\U0001f600", "\u200b", "\x00", "\ufffd"],
        *[
            "unbelievable",
            "antidisestablishmentarianism",
            "x1y2z3",
            "CAPS",
            "mixedCase",
            "under_score",
        ],
    ]
    return [
        "".join(part + rng.choice(["", " "]) for part in rng.choice(parts, rng.integers(0, 20)))
        for _ in range(n)
    ]


def test_tokens_of_10_000_texts_are_those_of_the_tokenizers_library(directory, folder) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    other.no_truncation()
    other.no_padding()
    texts = drawn_texts(10_000)
    expected = [each.ids for each in other.encode_batch(texts)]
    assert [directory.tokenizer.encode(text) for text in texts] == expected
    pairs = list(zip(texts[:500], texts[500:1000], strict=True))
    for (first, second), theirs in zip(pairs, other.encode_batch(pairs), strict=True):
        found = directory.tokenizer.encode_pair(first, second)
        assert found.ids == theirs.ids
        assert found.second_begins == theirs.type_ids.index(1)


@pytest.mark.slow
def test_memory_stays_flat_over_100_000_texts(directory) -> None:
    """Beyond the vectors themselves, which are the caller's."""

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096

    texts = ["a cat", "rain in Paris", "seven green mats"] * 1000
    directory.embed(texts)
    before = resident()
    for _ in range(33):
        directory.embed(texts)
    assert resident() - before < 16 * 2**20
