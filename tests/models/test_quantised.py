"""Quantised models against the forward pass in double on the dequantised weights.

F16 and BF16 weights meet float32 activations, so the float32 bound holds, and on a GPU with every
format. With block formats the CPU rounds the inputs of matmuls to int8 per 32, and then neither a
small bound nor a comparison with the same rounding is possible: a difference of 1e-7 flips some
roundings, each by a whole step, and over a few layers such flips grow to the size of the rounding
itself. What is predictable is
the *size* of the error: each rounded input carries noise of step/sqrt(12), about 0.5 % of its rms,
and the noise of a hundred thousand logits has the same rms however the single roundings fall. So
the reference runs twice, with rounded inputs and without, which gives the expected rms error E
(around 1 %, without the engine), and the engine's must be at most 1.1 E (0.995 to 1.004 E was
measured, at both instruction set levels). A scale that is 10 % off in one tensor of one layer moves
the logits by M with sqrt(E^2 + M^2) > 1.1 E: the last test shows it for each tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import gguf_file
import numpy as np
import pytest
from engine import (
    BOUND_F32_CACHE,
    GPUS,
    PATHS,
    bound_of_generated_rows,
    bound_of_prompts,
    chunked,
    nightly_but,
    opened,
    relative_error,
    relative_rms,
)
from golden_values import N_TOKENS, SEED
from numpy.typing import NDArray
from numpy_forward import NumpyModel, Variant
from random_models import (
    ALIGNED_KINDS,
    K_KINDS,
    KINDS,
    ModelCase,
    ModelSpec,
    Weights,
    build,
    random_tokens,
)

from arithmetic import is_one_arithmetic
from lines import each_line

Cases = Callable[..., ModelCase]

NOISE_FACTOR = 1.1
BLOCK_FORMATS = ("q8_0", "q4_0")


@functools.lru_cache
def exact_logits(path: Path, tokens: tuple[int, ...]) -> NDArray[np.float64]:
    return NumpyModel(path).logits(tokens)


@functools.lru_cache
def noise_of(path: Path, tokens: tuple[int, ...], rounded: Variant) -> float:
    """The rms error that such rounding gives the logits."""
    return relative_rms(NumpyModel(path).logits(tokens, rounded), exact_logits(path, tokens))


@each_line("weight_format", ["f16", "bf16"])
@each_line("kind", nightly_but(("llama", "qwen2", "qwen3"), ("llama", "qwen3")))
def test_half_weights_are_as_exact_as_f32(
    model_case: Cases, cpu: str, kind: str, weight_format: str
) -> None:
    """But for prompts in q16_32: those err by its noise."""
    case = model_case(kind, weight_format)
    tokens = tuple(random_tokens(case.spec, N_TOKENS, seed=SEED))
    expected = exact_logits(case.path, tokens)
    with opened(case.path) as model:
        for chunks, roles in PATHS.values():
            logits = chunked(model, tokens, chunks, roles)
            if roles == "prompt" and not is_one_arithmetic(weight_format):
                noise = noise_of(case.path, tokens, Variant(halves_in_q16=True))
                assert relative_rms(logits, expected) <= NOISE_FACTOR * noise
            else:
                assert relative_error(logits, expected) <= BOUND_F32_CACHE


@pytest.mark.parametrize("vector_format", ["f16", "bf16"])
def test_norms_and_biases_may_be_halves(tmp_path: Path, vector_format: str) -> None:
    path = tmp_path / "model.gguf"
    case = build("qwen2", path, seed=SEED, vector_format=vector_format)
    tokens = random_tokens(case.spec, 40, seed=SEED)
    with opened(path) as model:
        expected = NumpyModel(path).logits(tokens)
        assert relative_error(model.logits(tokens), expected) <= BOUND_F32_CACHE


def expected_error(path: Path, tokens: list[int]) -> tuple[NDArray[np.float64], float]:
    """The exact logits, and the rms error that rounding activations to int8 gives them."""
    key = tuple(tokens)
    return exact_logits(path, key), noise_of(path, key, Variant(int8_activations=True))


@each_line(
    ("kind", "weight_format"),
    [(kind, each) for kind in ALIGNED_KINDS for each in BLOCK_FORMATS]
    + [("qwen3-256", each) for each in ("iq4_nl", "iq4_xs", "iq3_s", "tables")],
)
def test_block_formats_err_by_the_noise_of_int8_activations(
    model_case: Cases, cpu: str, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    exact, noise = expected_error(case.path, tokens)
    with opened(case.path) as model:
        for name in ("prefill", "few"):
            error = relative_rms(chunked(model, tokens, *PATHS[name]), exact)
            assert error <= NOISE_FACTOR * noise


@pytest.mark.parametrize("weight_format", BLOCK_FORMATS)
def test_biases_of_the_feed_forward_network_count_beside_quantised_weights(
    cpu: str, tmp_path: Path, weight_format: str
) -> None:
    """Gate and up are one matmul there, and their activation another kernel than without biases."""
    path = tmp_path / "model.gguf"
    case = build("llama-32", path, seed=SEED, weight_format=weight_format, ffn_bias=True)
    tokens = random_tokens(case.spec, 60, seed=SEED)
    exact, noise = expected_error(path, tokens)
    with opened(path) as model:
        for roles in ("prompt", "generated"):
            error = relative_rms(chunked(model, tokens, [15] * 4, roles), exact)
            assert error <= NOISE_FACTOR * noise


@each_line("weight_format", BLOCK_FORMATS)
@each_line("kind", ALIGNED_KINDS)
def test_prompts_on_a_matrix_unit_err_by_the_noise_of_bf16(
    model_case: Cases, matrix_unit: None, kind: str, weight_format: str
) -> None:
    """Weights, activations and what goes into attention in bf16; the head as generated rows."""
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    rounded = Variant(int8_head=True, bf16_layers=True, f16_cache=True)
    exact = exact_logits(case.path, tuple(tokens))
    noise = noise_of(case.path, tuple(tokens), rounded)
    with opened(case.path, kv_type="f16") as loaded:
        for name in ("prefill", "prompt-singles"):
            error = relative_rms(chunked(loaded, tokens, *PATHS[name]), exact)
            assert error <= NOISE_FACTOR * noise


@pytest.mark.nightly_emulated("qwen3-256")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(
    ("kind", "weight_format"),
    nightly_but(
        [(kind, each) for kind in K_KINDS for each in gguf_file.WEIGHT_FORMATS],
        [
            *(("qwen3-256", "f16"), ("qwen3-256", "all"), ("gemma3-256", "all")),
            ("qwen3-256", "tables"),
        ],
    ),
)
def test_every_format_is_exact_where_activations_stay_float32(
    model_case: Cases, gpu: str, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, 100, seed=SEED)
    expected = NumpyModel(case.path).logits(tokens)
    with opened(case.path, device=gpu) as model:
        bounds = {"prompt": bound_of_prompts(gpu), "generated": bound_of_generated_rows(gpu)}
        for name, bound in bounds.items():
            logits = chunked(model, tokens, [16] * 6 + [4], name)
            assert relative_error(logits, expected) <= bound


TENSORS = [
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
]


def scaled(tensor: str) -> Callable[[ModelSpec, Weights], Weights]:
    def change(spec: ModelSpec, weights: Weights) -> Weights:
        name = f"model.layers.1.{tensor}.weight"
        return weights | {name: weights[name] * np.float32(1.1)}

    return change


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("weight_format", BLOCK_FORMATS)
@pytest.mark.parametrize("kind", ALIGNED_KINDS)
def test_a_scale_10_percent_off_in_one_layer_exceeds_the_bound(
    model_case: Cases,
    one_arithmetic: str,
    tmp_path: Path,
    kind: str,
    weight_format: str,
    tensor: str,
) -> None:
    if KINDS[kind].qk_norm and tensor in ("self_attn.q_proj", "self_attn.k_proj"):
        pytest.skip("the norm of q and k takes a scale of their weights out again")
    if KINDS[kind].attention_soft_cap and tensor in ("self_attn.q_proj", "self_attn.k_proj"):
        pytest.skip("the cap takes most of a scale of q and k out again")
    behind = ("self_attn.v_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj")
    if KINDS[kind].post_norms and tensor in behind:
        pytest.skip("the norm behind takes a scale of such weights out again")
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    exact, noise = expected_error(case.path, tokens)
    mutated = build(
        kind,
        tmp_path / "mutated.gguf",
        seed=case.seed,
        weight_format=weight_format,
        change=scaled(tensor),
    )
    with opened(mutated.path) as model:
        assert relative_rms(model.logits(tokens), exact) > NOISE_FACTOR * noise
