"""GGUF files made of directories, beside the files of the same models and the directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import encoder_models
import hf_directory
import numpy as np
import pytest
import test_quantised_directories as quantised
from engine import BOUND_F32_CACHE, opened, relative_error
from gguf import GGUFReader
from random_models import KINDS, ModelCase
from test_stretched_positions import of_phi3

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES, is_quantised
from lines import each_line

Cases = Callable[..., ModelCase]
TOKENS = list(range(0, 330, 7))


def converted(folder: Path, target: Path, type_name: str | None = None) -> Path:
    """The directory as a file, matrices as they lie where no type is given."""
    source = DirectorySource(folder)
    kept = {} if type_name else {p.name: p.type_name for p in source.plans if is_quantised(p)}
    wishes = Wishes(recipe=RECIPES[type_name or "F32"], tensor_types=kept)
    Quantization(source, wishes).write(target)
    return target


@each_line("kind", [kind for kind in KINDS if kind != "phi3-32"])
def test_a_converted_directory_has_the_tensors_and_keys_of_the_same_model_in_gguf(
    model_case: Cases, tmp_path: Path, kind: str
) -> None:
    case = model_case(kind)
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights)
    made = GGUFReader(converted(folder, tmp_path / "made.gguf"))
    expected = GGUFReader(case.path)
    tensors = {tensor.name: tensor.data for tensor in made.tensors}
    assert set(tensors) == {tensor.name for tensor in expected.tensors}
    for tensor in expected.tensors:
        data = tensors[tensor.name]
        if (
            case.spec.is_gemma and data.ndim == 1
        ) or tensor.name == "rope_freqs.weight":  # a 1 was taken away, and added again
            np.testing.assert_allclose(data, tensor.data, rtol=1e-6)
        else:
            np.testing.assert_array_equal(data, tensor.data, err_msg=tensor.name)
    with opened(folder) as of_directory, opened(tmp_path / "made.gguf") as of_file:
        logits = of_directory.logits(TOKENS), of_file.logits(TOKENS)
    assert relative_error(*logits) <= BOUND_F32_CACHE / 10


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@pytest.mark.parametrize("kind", ["llama-32", "qwen3-32", "gemma2-32"])
def test_halves_stay_halves(model_case: Cases, tmp_path: Path, kind: str, dtype: str) -> None:
    case = model_case(kind)
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights, dtype=dtype)
    made = converted(folder, tmp_path / "made.gguf")
    kinds = {tensor.tensor_type.name: len(tensor.data.shape) for tensor in GGUFReader(made).tensors}
    assert set(kinds) == {dtype, "F32"}
    with opened(folder) as of_directory, opened(made) as of_file:
        logits = of_directory.logits(TOKENS), of_file.logits(TOKENS)
    assert relative_error(*logits) <= 5 * BOUND_F32_CACHE


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
MORE = {"beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 1.5}
SCALED = {
    "llama, yarn": ("llama-32", {"rope_theta": 1e4, **YARN}),
    "llama, not truncated": ("llama-32", {"rope_theta": 1e4, **YARN, **MORE, "truncate": False}),
    "qwen3, yarn": ("qwen3-32", {"rope_theta": 1e4, **YARN}),
    "qwen3, numbers of its own": ("qwen3-32", {"rope_theta": 1e4, **YARN, **MORE}),
    "qwen2, linear": ("qwen2-32", {"rope_theta": 1e4, "rope_type": "linear", "factor": 4.0}),
    "phi3, longrope": (
        "phi3-32",
        {
            "rope_type": "longrope",
            "rope_theta": 1e4,
            "short_factor": [1.0 + i / 8 for i in range(16)],
            "long_factor": [2.0 + i for i in range(16)],
            "original_max_position_embeddings": 256,
            "attention_factor": 1.25,
        },
    ),
}


def scaled_directory(model_case: Cases, folder: Path, name: str) -> Path:
    """A directory whose positions are scaled; phi3 with joined matrices, as it has them."""
    kind, parameters = SCALED[name]
    case = model_case(kind)
    weights = of_phi3(case.spec, case.weights) if kind == "phi3-32" else case.weights
    changes: dict[str, Any] = {"rope_parameters": parameters}
    if kind == "phi3-32":
        changes["original_max_position_embeddings"] = 256
    return hf_directory.write(folder, case.spec, weights, changes=changes)


@pytest.mark.parametrize("name", SCALED)
def test_scaled_positions_stay_what_they_are(model_case: Cases, tmp_path: Path, name: str) -> None:
    folder = scaled_directory(model_case, tmp_path / "model", name)
    made = converted(folder, tmp_path / "made.gguf")
    with opened(folder) as of_directory, opened(made) as of_file:
        logits = of_directory.logits(TOKENS), of_file.logits(TOKENS)
    assert relative_error(*logits) <= BOUND_F32_CACHE / 10


@pytest.mark.parametrize("kind", ["llama-32", "qwen3-32"])
def test_windows_stay_what_they_are(model_case: Cases, tmp_path: Path, kind: str) -> None:
    case = model_case(kind)
    changes = (
        {"model_type": "mistral", "sliding_window": 20}
        if kind == "llama-32"
        else {"use_sliding_window": True, "sliding_window": 20, "max_window_layers": 1}
    )
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights, changes=changes)
    made = converted(folder, tmp_path / "made.gguf")
    plain = hf_directory.write(tmp_path / "plain", case.spec, case.weights)
    with opened(folder) as of_directory, opened(made) as of_file, opened(plain) as other:
        logits = of_directory.logits(TOKENS), of_file.logits(TOKENS)
        assert relative_error(*logits) <= BOUND_F32_CACHE / 10
        assert relative_error(other.logits(TOKENS), logits[0]) >= 20 * BOUND_F32_CACHE


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_groups_of_mlx_are_expanded_to_the_numbers_that_they_stand_for(
    tmp_path: Path, bits: int
) -> None:
    folder, floats = quantised.twins(
        tmp_path,
        "llama-32",
        lambda name, data: quantised.affine(name, data, bits, 32, "F32"),
        {"quantization": {"group_size": 32, "bits": bits}},
    )
    source = DirectorySource(folder)
    assert any(f"groups of 32 at {bits} bits" in note for note in source.notes)
    expected = {each.name: each.data.view(np.float32) for each in DirectorySource(floats).tensors}
    for tensor in source.tensors:
        assert tensor.type_name == "F32"
        np.testing.assert_allclose(tensor.data.view(np.float32), expected[tensor.name], rtol=1e-5,
                                   atol=1e-6)  # fmt: skip


def test_the_tokenizer_says_the_same(model_case: Cases, tmp_path: Path) -> None:
    case = model_case("qwen3-32")
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights)
    settings_path = folder / "tokenizer_config.json"
    settings = json.loads(settings_path.read_text())
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(
        json.dumps(settings | {"chat_template": template})
    )
    (folder / "generation_config.json").write_text(
        json.dumps({"temperature": 0.6, "top_k": 20, "repetition_penalty": 1.05})
    )
    text = "The tree, não? <|end|> 12"
    with (
        opened(folder) as one,
        opened(converted(folder, tmp_path / "made.gguf")) as other,
    ):
        for each in (one, other):
            assert each.tokenizer.decode(each.tokenizer.encode(text)) == text
        assert one.tokenizer.encode(text) == other.tokenizer.encode(text)
        assert one.sampling_defaults == other.sampling_defaults != {}
        assert one.tokenizer.chat_template == other.tokenizer.chat_template == template


def test_expressions_without_a_name_are_refused(model_case: Cases, tmp_path: Path) -> None:
    from akunu.errors import UnsupportedModelError

    case = model_case("qwen3-32")
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights)
    described: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())
    described["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ],
    }
    (folder / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(UnsupportedModelError, match=r"no name for: x\+"):
        DirectorySource(folder)


def test_an_encoder_embeds_the_same(tmp_path: Path) -> None:
    spec = encoder_models.EncoderSpec()
    tensors = encoder_models.random_tensors(spec)
    folder = encoder_models.write_directory(tmp_path / "bert", spec, tensors, pooling="cls")
    source = DirectorySource(folder)
    assert any("Normalize of modules.json" in note for note in source.notes)
    made = converted(folder, tmp_path / "made.gguf")
    texts = ["a b cat", "dogs, cats", "c"]
    with akunu.load(folder) as of_directory, akunu.load(made) as of_file:
        expected = of_directory.embed(texts)
        assert of_file.embed(texts).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "roberta", "model_type is 'roberta'; akunu converts 'bert' encoders only"),
        ("architectures", ["BertForSequenceClassification"], "head.output.weight follows"),
    ],
)
def test_encoders_that_a_file_would_lose_a_part_of_are_refused(
    tmp_path: Path, key: str, value: object, message: str
) -> None:
    spec = encoder_models.EncoderSpec()
    tensors = encoder_models.random_tensors(spec)
    if key == "architectures":
        tensors["classifier.weight"] = np.ones((1, spec.dim), np.float32)
    folder = encoder_models.write_directory(tmp_path / "bert", spec, tensors)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(akunu.UnsupportedModelError, match=message):
        DirectorySource(folder)
