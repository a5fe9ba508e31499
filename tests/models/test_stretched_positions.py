"""Long-RoPE, dynamic NTK and windows of families besides Gemma: which numbers turn a position, and
what a row sees, is decided when a model is loaded, never by the length of a text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import gguf_file
import hf_directory
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, GPUS, MUTATION_FACTOR, opened, relative_error
from numpy_forward import NumpyModel
from random_models import KINDS, ModelCase, ModelSpec, build, random_tokens

import akunu

Cases = Callable[..., ModelCase]

ORIGINAL = 256  # positions; the models say that they have 512
SHORT = 1 + np.arange(16) / 16
LONG = 1 + np.arange(16)


@pytest.fixture
def with_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., ModelCase]:
    """`with_more(kind, write)`: a GGUF file of that model, to which `write(writer)` adds."""
    write_numbers = gguf_file._write_numbers

    def make(kind: str, more: Callable[[gguf.GGUFWriter], object]) -> ModelCase:
        def write(writer: gguf.GGUFWriter, spec: ModelSpec, weight_format: str) -> None:
            write_numbers(writer, spec, weight_format)
            more(writer)

        monkeypatch.setattr(gguf_file, "_write_numbers", write)
        case = build(kind, tmp_path / f"{kind}-more.gguf", seed=5)
        monkeypatch.setattr(gguf_file, "_write_numbers", write_numbers)
        return case

    return make


def add_long_rope(writer: gguf.GGUFWriter) -> None:
    """What llama.cpp's converter writes for Phi-3."""
    writer.add_rope_scaling_orig_ctx_len(ORIGINAL)
    writer.add_rope_scaling_attn_factors(1.25)
    writer.add_tensor("rope_factors_long.weight", LONG.astype(np.float32))
    writer.add_tensor("rope_factors_short.weight", SHORT.astype(np.float32))


@pytest.mark.parametrize("context", [ORIGINAL, ORIGINAL + 1])
@pytest.mark.parametrize("device", ["cpu", *GPUS])
def test_factors_of_long_rope_are_chosen_by_the_context(
    with_more: Callable[..., ModelCase], device: str, context: int
) -> None:
    case = with_more("phi3-32", add_long_rope)
    tokens = random_tokens(case.spec, 100, seed=7)  # a short text, in both
    with opened(case.path, device=device, context=context) as model:
        logits, notes = model.logits(tokens), model.notes
    expected = NumpyModel(case.path, context=context).logits(tokens)
    other = NumpyModel(case.path, context=ORIGINAL + (context == ORIGINAL)).logits(tokens)
    assert relative_error(logits, expected) <= BOUND_F32_CACHE
    assert relative_error(logits, other) >= MUTATION_FACTOR * BOUND_F32_CACHE
    said = [note for note in notes if "beyond 256 (long-RoPE)" in note]
    assert len(said) == (context > ORIGINAL)


def test_one_list_of_factors_without_the_other_is_refused(
    with_more: Callable[..., ModelCase],
) -> None:
    factors = LONG.astype(np.float32)
    case = with_more("phi3-32", lambda w: w.add_tensor("rope_factors_long.weight", factors))
    with pytest.raises(akunu.ModelFormatError, match=r"rope_factors_long.*twin for short contexts"):
        akunu.load(case.path, context=256)


def of_phi3(spec: ModelSpec, weights: Any) -> dict[str, Any]:
    """The weights as Phi-3 has them: Q, K and V in one matrix, gate and up in another."""
    joined = dict(weights)
    for layer in range(spec.n_layers):
        at = f"model.layers.{layer}."
        for module, whole, parts in (
            ("self_attn", "qkv_proj", ("q_proj", "k_proj", "v_proj")),
            ("mlp", "gate_up_proj", ("gate_proj", "up_proj")),
        ):
            pieces = [joined.pop(f"{at}{module}.{part}.weight") for part in parts]
            joined[f"{at}{module}.{whole}.weight"] = np.concatenate(pieces)
    return joined


@pytest.mark.parametrize("context", [ORIGINAL, 512])
@pytest.mark.parametrize("style", [4, 5])
def test_a_directory_of_phi3_is_the_same_model_as_its_gguf_file(
    with_more: Callable[..., ModelCase], tmp_path: Path, style: int, context: int
) -> None:
    case = with_more("phi3-32", add_long_rope)
    key = "rope_scaling" if style == 4 else "rope_parameters"
    scaling = {
        "type" if style == 4 else "rope_type": "su" if style == 4 else "longrope",
        "short_factor": SHORT.tolist(),
        "long_factor": LONG.tolist(),
        "attention_factor": 1.25,
    }
    changes = {key: scaling, "original_max_position_embeddings": ORIGINAL}
    weights = of_phi3(case.spec, case.weights)
    folder = hf_directory.write(
        tmp_path / "model", case.spec, weights, style=style, changes=changes
    )
    tokens = random_tokens(case.spec, 200, seed=8)
    with opened(case.path, context=context) as model:
        expected = model.logits(tokens)
    with opened(folder, context=context) as model:
        np.testing.assert_array_equal(model.logits(tokens), expected)


def test_the_factor_of_attention_follows_from_how_much_longer_a_context_became(
    model_case: Cases, tmp_path: Path
) -> None:
    case = model_case("qwen3-32")
    ones = [1.0] * 12
    scaling = {
        "rope_type": "longrope",
        "rope_theta": 1e6,
        "short_factor": ones,
        "long_factor": ones,
        "original_max_position_embeddings": 64,
    }
    logits = []
    for name, more in (("left out", {}), ("said", {"attention_factor": (1 + 3 / 6) ** 0.5})):
        folder = hf_directory.write(  # 512 positions are 8 times 64: log2 is 3, and 6 of 64
            tmp_path / name,
            case.spec,
            case.weights,
            changes={"rope_parameters": {**scaling, **more}},
        )
        with opened(folder) as model:
            logits.append(model.logits(list(range(0, 300, 7))))
    assert relative_error(logits[0], logits[1]) <= 1e-5


@pytest.mark.parametrize(("context", "theta"), [(128, 10000.0), (384, 10000.0 * 9 ** (24 / 22))])
def test_dynamic_ntk_stretches_the_base_by_the_context(
    model_case: Cases, tmp_path: Path, context: int, theta: float
) -> None:
    """Three times the context, factor 4: 4 * 3 - 3 = 9."""
    case = model_case("qwen3-32")
    logits = []
    for name, scaling in (
        ("dynamic", {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}),
        ("plain", {"rope_type": "default", "rope_theta": theta}),
    ):
        folder = hf_directory.write(
            tmp_path / name,
            case.spec,
            case.weights,
            changes={"rope_parameters": scaling, "max_position_embeddings": 128},
        )
        with opened(folder, context=context) as model:
            logits.append(model.logits(list(range(1, 101))))
    assert relative_error(logits[0], logits[1]) <= 1e-5


WINDOW = 70
WINDOWED: dict[str, tuple[str, dict[str, Any], list[bool]]] = {
    "mistral": ("llama-32", {"model_type": "mistral"}, [True] * 3),
    "phi3": ("phi3-32", {}, [True] * 3),
    "qwen2, all but the first": (
        "qwen2-32",
        {"use_sliding_window": True, "max_window_layers": 1},
        [False, True, True],
    ),
    "qwen3, listed": (
        "qwen3-32",
        {
            "use_sliding_window": True,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
        [True, False, True],
    ),
    "qwen2, switched off": ("qwen2-32", {"use_sliding_window": False}, [False] * 3),
}


@pytest.mark.parametrize("name", WINDOWED)
def test_windows_of_a_directory_are_those_of_a_file_and_of_numpy(
    with_more: Callable[..., ModelCase], tmp_path: Path, name: str
) -> None:
    kind, changes, pattern = WINDOWED[name]

    def add_windows(writer: gguf.GGUFWriter) -> None:
        writer.add_sliding_window(WINDOW)
        prefix = KINDS[kind].architecture
        writer.add_array(f"{prefix}.attention.sliding_window_pattern", pattern)

    case = with_more(kind, add_windows)
    weights = of_phi3(case.spec, case.weights) if name == "phi3" else case.weights
    folder = hf_directory.write(
        tmp_path / "model",
        case.spec,
        weights,
        changes={"sliding_window": WINDOW, **changes},
    )
    tokens = random_tokens(case.spec, 300, seed=9)
    expected = NumpyModel(case.path).logits(tokens)
    for path in (folder, case.path):
        with opened(path) as model:
            assert model.notes == ()
            assert relative_error(model.logits(tokens), expected) <= BOUND_F32_CACHE
    plain = build(kind, tmp_path / "plain.gguf", seed=5)
    unlike = relative_error(NumpyModel(plain.path).logits(tokens), expected)
    assert (unlike >= MUTATION_FACTOR * BOUND_F32_CACHE) == any(pattern)
