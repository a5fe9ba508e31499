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
from random_models import ModelSpec, Weights, build

import akunu

Write = Callable[[gguf.GGUFWriter], object]


def load(path: Path) -> akunu.Model:
    return akunu.load(path, device="cpu", context=256, threads=1, kv_type="f32")


def built_with(monkeypatch: pytest.MonkeyPatch, path: Path, more: Write, **overrides: Any) -> Path:
    """A sound llama model whose file says something more."""
    write_numbers = gguf_file._write_numbers

    def write(writer: gguf.GGUFWriter, spec: ModelSpec, weight_format: str) -> None:
        write_numbers(writer, spec, weight_format)
        more(writer)

    monkeypatch.setattr(gguf_file, "_write_numbers", write)
    build("llama-32", path, seed=1, **overrides)
    return path


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (lambda w: w.add_string("llama.rope.scaling.type", "yarn"), "rope.scaling.type is 'yarn'"),
        (lambda w: w.add_uint32("llama.expert_count", 8), "llama.expert_count is 8"),
        (lambda w: w.add_uint32("llama.attention.sliding_window", 64), "sliding_window is 64"),
        (lambda w: w.add_bool("llama.attention.causal", False), "llama.attention.causal is false"),
        (lambda w: w.add_float32("llama.logit_scale", 0.5), "llama.logit_scale is 0.5"),
        (lambda w: w.add_string("general.type", "adapter"), "general.type is 'adapter'"),
        (
            lambda w: w.add_tensor("blk.0.ffn_gate_inp.weight", np.zeros((2, 32), np.float32)),
            "tensor blk.0.ffn_gate_inp.weight",
        ),
        (
            lambda w: w.add_tensor(
                "blk.0.attn_q.bias",
                np.zeros((1, 136), np.uint8),
                raw_dtype=gguf.GGMLQuantizationType.IQ4_XS,
            ),
            "number format IQ4_XS; akunu has F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, "
            "Q4_K, Q5_K, Q6_K, BF16",
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


def test_nan_is_reported_and_never_chosen(tmp_path: Path) -> None:
    def damage(spec: ModelSpec, weights: Weights) -> Weights:
        return {**weights, "model.norm.weight": np.full(spec.dim, np.nan, np.float32)}

    with load(build("llama-32", tmp_path / "model.gguf", seed=1, change=damage).path) as model:
        for _ in range(2):  # an error ends the text, not the model
            with pytest.raises(akunu.DeviceError, match=r"^sample, row \d+: .*NaN"):
                model.generate([1, 2, 3], max_tokens=4)
        assert np.isnan(model.logits([1, 2, 3])).all()
