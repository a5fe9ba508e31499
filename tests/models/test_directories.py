"""Models from Hugging Face directories, beside transformers' golden logits and GGUF files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden_values
import hf_directory
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, GPUS, opened, relative_error
from random_models import KINDS, ODD_KINDS, ModelCase, build

import akunu
from lines import each_line

Cases = Callable[..., ModelCase]


@each_line("style", [4, 5])
@each_line("kind", ODD_KINDS)
def test_logits_of_a_directory_are_those_of_hugging_face(
    model_case: Cases, tmp_path: Path, kind: str, style: int
) -> None:
    case, golden = model_case(kind), golden_values.load(kind)
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights, style=style)
    with opened(folder) as model:
        logits = model.logits(golden.tokens)
        assert model.notes == ()
    assert relative_error(logits[golden.positions], golden.logits) <= BOUND_F32_CACHE


@pytest.mark.parametrize("gpu", GPUS)
def test_logits_of_a_directory_on_a_gpu_are_those_of_hugging_face(
    model_case: Cases, tmp_path: Path, gpu: str
) -> None:
    case, golden = model_case("llama-gqa"), golden_values.load("llama-gqa")
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights)
    with opened(folder, device=gpu) as model:
        logits = model.logits(golden.tokens)
    assert relative_error(logits[golden.positions], golden.logits) <= BOUND_F32_CACHE


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@pytest.mark.parametrize("kind", ["llama-32", "qwen2-32", "gemma2-32"])
def test_halves_give_the_logits_of_the_same_halves_in_gguf(
    model_case: Cases, tmp_path: Path, kind: str, dtype: str
) -> None:
    # Norms are halves here too, so the GGUF file has what is left of them.
    case = model_case(kind, dtype.lower())
    weights = {
        name: data if data.ndim > 1 else _rounded(data, dtype, case.spec.is_gemma)
        for name, data in case.weights.items()
    }
    folder = hf_directory.write(tmp_path / "model", case.spec, weights, dtype=dtype)
    twin = build(
        kind,
        tmp_path / "twin.gguf",
        seed=golden_values.SEED,
        weight_format=dtype.lower(),
        change=lambda _spec, _weights: weights,
    )
    tokens = list(range(0, 330, 5))
    with opened(folder) as model:
        of_directory = model.logits(tokens)
    with opened(twin.path) as model:
        of_gguf = model.logits(tokens)
    if case.spec.architecture == "llama":  # the rows of Q and K lie in another order there
        assert relative_error(of_directory, of_gguf) <= 5 * BOUND_F32_CACHE
    else:
        np.testing.assert_array_equal(of_directory, of_gguf)


def _rounded(data: np.ndarray[Any, Any], dtype: str, lacks_one: bool) -> Any:
    if lacks_one:
        data = data - np.float32(1)
    if dtype == "BF16":
        bits = np.frombuffer(hf_directory.stored(data, dtype), np.uint16).astype(np.uint32) << 16
        data = bits.view(np.float32)
    else:
        data = data.astype(np.float16).astype(np.float32)
    return data + np.float32(1) if lacks_one else data


@pytest.fixture
def written(model_case: Cases, tmp_path: Path) -> Callable[..., Path]:
    """`written(kind="llama-32", **options)`: a directory of that model."""

    def write(kind: str = "llama-32", **options: Any) -> Path:
        case = model_case(kind)
        return hf_directory.write(tmp_path / "model", case.spec, case.weights, **options)

    return write


def test_shards_one_file_and_any_file_of_an_index_are_the_same_model(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    one = written()
    tokens = list(range(0, 300, 7))
    with opened(one) as model:
        expected = model.logits(tokens)
    with opened(one / "model.safetensors") as model:
        np.testing.assert_array_equal(model.logits(tokens), expected)
    (one / "model.safetensors").unlink()
    shards = written(n_files=3)
    for path in (shards, shards / "model-00002-of-00003.safetensors"):
        with opened(path) as model:
            np.testing.assert_array_equal(model.logits(tokens), expected)


def test_a_snapshot_of_links_into_the_hubs_cache_is_a_directory(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    folder = written()
    snapshot = tmp_path / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (tmp_path / "blobs").mkdir()
    for number, file in enumerate(folder.iterdir()):
        blob = tmp_path / "blobs" / f"{number:064}"
        file.rename(blob)
        (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    with opened(snapshot) as model:
        assert model.generate("et", max_tokens=3).token_ids


def test_the_tokenizer_is_the_one_of_tokenizer_json(written: Callable[..., Path]) -> None:
    from tokenizers import Tokenizer

    folder = written()
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ours = akunu.Tokenizer.from_directory(folder)
    for text in ("the house", "it's 3.14\n\n\ttab", "日本語 não", " "):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == text
    assert ours.stop_ids == {KINDS["llama-32"].vocab_size - 1}
    assert ours.encode("<|end|>", parse_special=True) == [ours.eos_id]
    assert ours.eos_id not in ours.encode("<|end|>")


def _sharded(folder: Path, change: Callable[[dict[str, str]], None]) -> None:
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index["weight_map"])
    path.write_text(json.dumps(index))


BROKEN_INDEX: dict[str, tuple[Callable[[dict[str, str]], Any], str]] = {
    "a file outside": (lambda m: m.update({"lm_head.weight": "../x.safetensors"}), "no name of a"),
    "a missing file": (
        lambda m: m.update({"a": "gone.safetensors"}),
        "gone.safetensors is missing",
    ),
    "a tensor that is not there": (
        lambda m: m.update({"extra.weight": "model-00001-of-00002.safetensors"}),
        "tensor extra.weight should be in model-00001-of-00002.safetensors, and is not",
    ),
    "no tensors": (lambda m: m.clear(), "weight_map is no object with tensors"),
}


@pytest.mark.parametrize("name", BROKEN_INDEX)
def test_an_index_that_contradicts_its_files_is_refused(
    written: Callable[..., Path], name: str
) -> None:
    change, message = BROKEN_INDEX[name]
    folder = written(n_files=2)
    _sharded(folder, change)
    with pytest.raises(akunu.ModelFormatError, match=message):
        akunu.load(folder)


# What a config says, which error, and what it must name.
WRONG_CONFIG: list[tuple[dict[str, Any], type[akunu.AkunuError], str]] = [
    ({"num_attention_heads": 0}, akunu.ModelFormatError, "num_attention_heads is 0; it must be"),
    ({"num_attention_heads": None}, akunu.ModelFormatError, "num_attention_heads is missing"),
    ({"num_attention_heads": "3"}, akunu.ModelFormatError, 'num_attention_heads is "3"; a whole'),
    ({"num_key_value_heads": 2}, akunu.ModelFormatError, "num_key_value_heads is 2; num_attention"),
    ({"num_hidden_layers": 4}, akunu.ModelFormatError, "layers.3"),
    ({"num_hidden_layers": 2}, akunu.ModelFormatError, "tensors of layer 2"),
    ({"num_hidden_layers": 10**9}, akunu.ModelFormatError, "num_hidden_layers is 1000000000; that"),
    ({"vocab_size": 330}, akunu.ModelFormatError, "vocab_size is 330, and tensor model.embed_tok"),
    ({"hidden_size": 64}, akunu.ModelFormatError, "ask for [331, 64]"),
    ({"rms_norm_eps": -1}, akunu.ModelFormatError, "rms_norm_eps is -1; it must be above 0"),
    ({"model_type": "phi9"}, akunu.UnsupportedModelError, 'model_type is "phi9"; akunu has bert'),
    ({"model_type": None}, akunu.ModelFormatError, "model_type is missing"),
    ({"hidden_act": "relu"}, akunu.UnsupportedModelError, 'hidden_act is "relu"; akunu has silu'),
    ({"sliding_window_pattern": ""}, akunu.UnsupportedModelError, 'sliding_window_pattern is ""'),
    ({"num_local_experts": 8}, akunu.UnsupportedModelError, "num_local_experts is 8"),
    ({"partial_rotary_factor": 2}, akunu.ModelFormatError, "partial_rotary_factor is 2; it must"),
    (
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 1e4,
                "factor": 16.0,
                "mscale": 1e21,
                "mscale_all_dim": 1.0,
            }
        },
        akunu.ModelFormatError,
        "attention_factor would be 217073",
    ),
    (
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1, "factor": 4.0}},
        akunu.ModelFormatError,
        'rope_type is "yarn"; with its numbers and a rope_theta of 1.000000 a frequency would be',
    ),
    (
        {"rope_parameters": {"rope_type": "spiral", "rope_theta": 1e4}},
        akunu.UnsupportedModelError,
        'rope_parameters.rope_type is "spiral"; akunu has default, linear, dynamic, llama3, yarn',
    ),
    (
        {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2]}},
        akunu.ModelFormatError,
        "rope_parameters.short_factor has 1 numbers; 16 frequencies rotate",
    ),
    (
        {"rope_parameters": {"type": "su", "short_factor": [1] * 16, "long_factor": [0] * 16}},
        akunu.ModelFormatError,
        "rope_parameters.long_factor holds 0",
    ),
    (
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}},
        akunu.ModelFormatError,
        "rope_parameters.factor is missing",
    ),
    (
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 0, "factor": 2}},
        akunu.ModelFormatError,
        "rope_parameters.rope_theta is 0; it must be above 0",
    ),
    (
        {"use_sliding_window": True, "sliding_window": 64},
        akunu.UnsupportedModelError,
        "sliding_window is 64; sliding windows are not supported for llama",
    ),
    (
        {"layer_types": ["full_attention", "sliding_attention", "full_attention"]},
        akunu.UnsupportedModelError,
        "layer_types is a list; sliding windows are not supported for llama",
    ),
    (
        {"model_type": "qwen2", "layer_types": ["sliding_attention"] * 3},
        akunu.ModelFormatError,
        "there is no sliding_window for them",
    ),
    ({"layer_types": ["full_attention"]}, akunu.ModelFormatError, "layer_types has 1 entries for"),
]


@each_line(
    ("changes", "error", "message"), WRONG_CONFIG, ids=[message for _, _, message in WRONG_CONFIG]
)
def test_a_config_that_is_wrong_is_refused_by_key(
    written: Callable[..., Path],
    changes: dict[str, Any],
    error: type[akunu.AkunuError],
    message: str,
) -> None:
    with pytest.raises(error) as caught:
        akunu.load(written(changes=changes))
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["null", "[]", '"llama"', "3"])
def test_a_config_that_is_no_object_is_refused(written: Callable[..., Path], text: str) -> None:
    folder = written()
    (folder / "config.json").write_text(text)
    with pytest.raises(akunu.ModelFormatError, match=r"config\.json"):
        akunu.load(folder)


def test_a_number_of_too_many_digits_is_refused(written: Callable[..., Path]) -> None:
    folder = written()
    (folder / "config.json").write_text('{"model_type": "llama", "hidden_size": %s}' % ("9" * 5000))
    with pytest.raises(akunu.ModelFormatError, match=r"config\.json"):
        akunu.load(folder)


def test_keys_that_nothing_uses_are_noted(written: Callable[..., Path]) -> None:
    folder = written(changes={"mystery": 1, "use_cache": False})
    with opened(folder) as model:
        assert model.notes == ("config.json: akunu does not know mystery and ignores it",)


def test_an_output_that_is_said_to_be_there_and_is_not_is_refused(
    written: Callable[..., Path],
) -> None:
    folder = written("qwen3-32", changes={"tie_word_embeddings": False})
    with pytest.raises(akunu.ModelFormatError, match=r"tie_word_embeddings is false.*lm_head"):
        akunu.load(folder)


def test_a_tensor_without_a_place_is_refused(model_case: Cases, tmp_path: Path) -> None:
    case = model_case("llama-32")
    weights = {**case.weights, "model.layers.0.mlp.router.weight": np.zeros((2, 2), np.float32)}
    folder = hf_directory.write(tmp_path / "model", case.spec, weights)
    with pytest.raises(akunu.UnsupportedModelError, match=r"mlp\.router\.weight is not one"):
        akunu.load(folder)


def test_directories_that_are_no_model_say_what_is_missing(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    folder = written()
    (folder / "config.json").rename(tmp_path / "config.json")
    with pytest.raises(akunu.ModelFormatError, match=r"no config\.json beside the safetensors"):
        akunu.load(folder)
    with pytest.raises(akunu.ModelFormatError, match=r"there is no config\.json beside it"):
        akunu.load(folder / "model.safetensors")
    (tmp_path / "config.json").rename(folder / "config.json")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(akunu.UnsupportedModelError, match=r"pytorch_model\.bin, a Python pickle"):
        akunu.load(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(akunu.ModelFormatError, match=r"config\.json and no file of weights"):
        akunu.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(akunu.ArgumentError, match="is a directory"):
        akunu.load(folder)
