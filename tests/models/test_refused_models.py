"""Models that contradict themselves, or ask for what akunu does not have, are named and refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import gguf_file
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, GPUS, relative_error
from numpy_forward import NumpyModel
from random_models import ModelSpec, Weights, build

import akunu
from lines import each_line

Write = Callable[[gguf.GGUFWriter], object]


def load(path: Path) -> akunu.Model:
    return akunu.load(path, device="cpu", context=256, threads=1, kv_type="f32")


def built_with(
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
    more: Write,
    kind: str = "llama-32",
    **overrides: Any,
) -> Path:
    """A sound model whose file says something more."""
    write_numbers = gguf_file._write_numbers

    def write(writer: gguf.GGUFWriter, spec: ModelSpec, weight_format: str) -> None:
        write_numbers(writer, spec, weight_format)
        more(writer)

    monkeypatch.setattr(gguf_file, "_write_numbers", write)
    build(kind, path, seed=1, **overrides)
    return path


@each_line(
    ("more", "message"),
    [
        (
            lambda w: w.add_string("llama.rope.scaling.type", "spiral"),
            "rope.scaling.type is 'spiral'",
        ),
        (lambda w: w.add_bool("llama.attention.causal", False), "llama.attention.causal is false"),
        (lambda w: w.add_bool("llama.swin_norm", True), "llama.swin_norm is true"),
        (lambda w: w.add_string("general.type", "adapter"), "general.type is 'adapter'"),
        (
            lambda w: w.add_tensor("blk.0.ffn_gate_inp.weight", np.zeros((2, 32), np.float32)),
            "tensor blk.0.ffn_gate_inp.weight",
        ),
        (
            lambda w: w.add_tensor(
                "blk.0.attn_q.bias",
                np.zeros((1, 50), np.uint8),
                raw_dtype=gguf.GGMLQuantizationType.IQ1_S,
            ),
            "number format IQ1_S; akunu has F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, "
            "Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, IQ3_XXS, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, BF16, "
            "MXFP4, NVFP4. Take a file of this model in one of those: IQ2_XXS is the smallest",
        ),
        (
            lambda w: w.add_tensor(
                "blk.0.attn_q.bias",
                np.zeros((1, 66), np.uint8),
                raw_dtype=gguf.GGMLQuantizationType.TQ2_0,
            ),
            "number format TQ2_0; akunu has ",
        ),
        (
            lambda w: w.add_tensor(
                "blk.0.attn_q.bias",
                np.zeros(144, np.uint8),
                raw_dtype=gguf.GGMLQuantizationType.Q4_K,
            ),
            "tensor blk.0.attn_q.bias is one-dimensional and quantised",
        ),
    ],
    ids=lambda value: re.sub(r"\W+", "-", value) if isinstance(value, str) else "",
)
def test_what_akunu_does_not_have_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Write, message: str
) -> None:
    path = built_with(monkeypatch, tmp_path / "model.gguf", more)
    with pytest.raises(akunu.UnsupportedModelError, match=re.escape(message)) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_experts_of_a_family_that_has_none_here_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    built_with(monkeypatch, path, lambda w: w.add_uint32("qwen3.expert_count", 8), kind="qwen3")
    said = f"{path}: qwen3.expert_count is 8; experts are not supported for qwen3"
    with pytest.raises(akunu.UnsupportedModelError, match=re.escape(said)):
        load(path)


# What a key says where it changes nothing (as llama.cpp reads it), and a value that changes the
# model. The head of this model has 32 numbers.
NEUTRAL: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("logit_scale", (0.0, 1.0), (0.5,)),
    ("residual_scale", (0.0, 1.0), (0.25,)),
    ("embedding_scale", (0.0, 1.0), (12.0,)),
    ("attention.output_scale", (0.0, 1.0), (0.5,)),
    ("attention.value_scale", (0.0, 1.0), (0.5,)),
    ("attention.scale", (0.0, 32**-0.5), (1.0, 0.015625)),
    ("attn_logit_softcapping", (0.0,), (1.0, 50.0)),
    ("final_logit_softcapping", (0.0,), (1.0, 30.0)),
    ("attention.clamp_kqv", (0.0,), (1.0, 8.0)),
    ("attention.max_alibi_bias", (0.0,), (1.0, 8.0)),
    ("attention.temperature_scale", (0.0,), (0.1, 1.0)),
    ("attention.temperature_length", (0.0,), (1.0, 8192.0)),
    ("rope.scaling.yarn_attn_factor", (1.0,), (0.0, 1.25)),
    ("rope.scaling.yarn_ext_factor", (0.0, -1.0), (1.0,)),
]


@each_line("key", [key for key, _, _ in NEUTRAL])
def test_a_number_that_changes_the_model_is_refused_and_a_neutral_one_is_not(
    tmp_path: Path, key: str
) -> None:
    (neutral, effective), *others = [(a, b) for name, a, b in NEUTRAL if name == key]
    assert not others
    for number in (*neutral, *effective):
        path = tmp_path / f"{number}.gguf"
        with pytest.MonkeyPatch.context() as patch:
            built_with(patch, path, lambda w, n=number: w.add_float32(f"llama.{key}", n))
        if number in neutral:
            load(path).close()
            continue
        said = re.escape(f"{path}: llama.{key} is {number:.8g}; it is not supported for llama")
        with pytest.raises(akunu.UnsupportedModelError, match=said):
            load(path)


@each_line(
    "name",
    [
        *("token_embd.bias", "output_norm.bias", "output.bias", "rope_freqs.bias"),
        *("blk.1.attn_norm.bias", "blk.1.ffn_norm.bias"),
        *("blk.1.attn_q_norm.bias", "blk.1.attn_k_norm.bias"),
    ],
)
def test_a_tensor_that_nothing_would_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "model.gguf"
    built_with(monkeypatch, path, lambda w: w.add_tensor(name, np.zeros(96, np.float32)))
    with pytest.raises(akunu.UnsupportedModelError, match=f"{path}: tensor {name} has no place in"):
        load(path)


def test_what_a_model_computes_the_same_without_is_left_out_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers of old checkpoints, and the encoder of images that Ollama's files carry."""
    plain = build("llama-32", tmp_path / "plain.gguf", seed=1)

    def add(writer: gguf.GGUFWriter) -> None:
        for layer in range(3):
            writer.add_tensor(f"blk.{layer}.attn_rot_embd.weight", np.zeros(16, np.float32))
        writer.add_tensor("v.patch_embd.weight", np.zeros((2, 3, 4, 5), np.float32))
        writer.add_tensor("v.blk.0.attn_q.bias", np.zeros(8, np.float32))
        writer.add_tensor("mm.input_projection.weight", np.zeros((2, 32), np.float32))

    path = built_with(monkeypatch, tmp_path / "model.gguf", add)
    tokens = [5, 250, 17, 99]
    with load(plain.path) as model, load(path) as other:
        assert np.array_equal(other.logits(tokens), model.logits(tokens))
        assert not [note for note in model.notes if "tensor" in note]
        assert [note for note in other.notes if "tensor" in note] == [
            "tensor blk.0.attn_rot_embd.weight (and 2 more) is left out: RoPE's frequencies "
            "follow from the model's numbers",
            "tensor v.patch_embd.weight (and 2 more) is left out: it is of an encoder of images, "
            "and akunu reads text",
        ]


def test_a_vector_may_not_come_as_a_matrix_of_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers would be read as float32, beyond its end."""
    name = "blk.0.attn_q.bias"
    path = tmp_path / "model.gguf"
    built_with(monkeypatch, path, lambda w: w.add_tensor(name, np.zeros((1, 96), np.float16)))
    said = r"layers\.0\.attention\.q\.bias is a matrix of one row in f16"
    with pytest.raises(akunu.UnsupportedModelError, match=said):
        load(path)


# What a file may say of the linear scaling of its positions, and the factor that it means. None of
# it is what our own writer says.
ROPE_SCALINGS: dict[str, tuple[Write, float]] = {
    "a factor without a type": (lambda w: w.add_float32("llama.rope.scaling.factor", 4.0), 4.0),
    "the old key": (lambda w: w.add_float32("llama.rope.scale_linear", 4.0), 4.0),
    "a type and the old key": (
        lambda w: (
            w.add_string("llama.rope.scaling.type", "linear"),
            w.add_float32("llama.rope.scale_linear", 4.0),
        ),
        4.0,
    ),
    "both keys": (
        lambda w: (
            w.add_float32("llama.rope.scaling.factor", 4.0),
            w.add_float32("llama.rope.scale_linear", 2.0),
        ),
        4.0,
    ),
    "a factor of 0": (lambda w: w.add_float32("llama.rope.scaling.factor", 0.0), 1.0),
    "an old factor of 0": (lambda w: w.add_float32("llama.rope.scale_linear", 0.0), 1.0),
    "a type without a factor": (
        lambda w: w.add_string("llama.rope.scaling.type", "linear"),
        1.0,
    ),
    "a factor and the type none": (
        lambda w: (
            w.add_string("llama.rope.scaling.type", "none"),
            w.add_float32("llama.rope.scaling.factor", 4.0),
        ),
        1.0,
    ),
}


@each_line("name", ROPE_SCALINGS)
def test_positions_are_scaled_as_the_file_says_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write, factor = ROPE_SCALINGS[name]
    plain = build("llama-32", tmp_path / "plain.gguf", seed=1, rope_linear_factor=factor)
    path = built_with(monkeypatch, tmp_path / "model.gguf", write)
    tokens = [5, 250, 17, 99, 3, 120, 44, 7]
    expected = NumpyModel(plain.path).logits(tokens)
    with load(path) as model:
        assert relative_error(model.logits(tokens), expected) <= BOUND_F32_CACHE


DOWN = "model.layers.0.mlp.down_proj.weight"


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    def change(spec: ModelSpec, weights: Weights) -> Weights:
        return {name: data for name, data in weights.items() if name != DOWN}

    case = build("llama-32", tmp_path / "model.gguf", seed=1, change=change)
    with pytest.raises(akunu.ModelFormatError, match=r"layers.0.ffn.down.weight is missing"):
        load(case.path)


def test_a_tensor_of_another_shape_is_named_with_both_shapes(tmp_path: Path) -> None:
    def change(spec: ModelSpec, weights: Weights) -> Weights:
        return {**weights, DOWN: weights[DOWN][:-1]}

    case = build("llama-32", tmp_path / "model.gguf", seed=1, change=change)
    shapes = r"layers.0.ffn.down.weight is \[95, 160\]; .* ask for \[96, 160\]"
    with pytest.raises(akunu.ModelFormatError, match=shapes):
        load(case.path)


@pytest.mark.parametrize("gpu", GPUS)
def test_heads_too_large_for_a_device_are_named_with_their_size(gpu: str, tmp_path: Path) -> None:
    path = build(
        "llama", tmp_path / "model.gguf", seed=1, dim=40, n_heads=1, n_kv_heads=1, head_dim=520
    ).path
    with pytest.raises(akunu.UnsupportedModelError) as refused:
        akunu.load(path, device=gpu, context=256)
    message = str(refused.value)
    assert message.startswith(f"{path}: no kernel attention, ")
    assert "head_dim is 520, the most here is 512 (for layer 0 attention)" in message
    with load(path) as model:  # the CPU has no such limit
        expected = NumpyModel(path).logits([1, 2, 3])
        assert relative_error(model.logits([1, 2, 3]), expected) <= BOUND_F32_CACHE


def test_keys_beyond_the_range_of_half_precision_name_the_cache_that_holds_them(
    tmp_path: Path,
) -> None:
    def enlarge(spec: ModelSpec, weights: Weights) -> Weights:
        name = "model.layers.1.self_attn.k_proj.weight"
        return {**weights, name: weights[name] * np.float32(1e6)}

    path = build("llama-32", tmp_path / "model.gguf", seed=1, change=enlarge).path
    with (
        akunu.load(path, device="cpu", context=256, threads=1) as model,
        pytest.raises(akunu.DeviceError, match=r'beyond 65504.*f16 cache.*kv_type="f32"'),
    ):
        model.generate([1, 2, 3], max_tokens=4)
    with load(path) as model:  # as the message says
        expected = NumpyModel(path).logits([1, 2, 3])
        assert relative_error(model.logits([1, 2, 3]), expected) <= BOUND_F32_CACHE


def test_nan_is_reported_and_never_chosen(tmp_path: Path) -> None:
    def damage(spec: ModelSpec, weights: Weights) -> Weights:
        return {**weights, "model.norm.weight": np.full(spec.dim, np.nan, np.float32)}

    with load(build("llama-32", tmp_path / "model.gguf", seed=1, change=damage).path) as model:
        for _ in range(2):  # an error ends the text, not the model
            with pytest.raises(
                akunu.DeviceError, match=r"^sample, position \d+: .*NaN.*the weights"
            ):
                model.generate([1, 2, 3], max_tokens=4)
        assert np.isnan(model.logits([1, 2, 3])).all()


def test_a_factor_on_rotated_numbers_must_be_positive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    built_with(monkeypatch, path, lambda w: w.add_float32("llama.rope.scaling.attn_factor", 0.0))
    with pytest.raises(akunu.ModelFormatError, match="rotary attention factor is 0"):
        load(path)
