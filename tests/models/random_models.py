"""Small random models as GGUF files, one per architecture, from NumPy alone.

    case = build("qwen3", tmp_path / "qwen3.gguf", seed=1)
    case.spec.head_dim, case.weights["model.embed_tokens.weight"].shape

Weights are N(0, 1/sqrt(fan_in)), biases N(0, 1), embeddings N(0, 1) once they are scaled, norms
uniform in [0.5, 1.5] (of gemma, whose norms multiply by 1 + w, this is 1 + w). They carry Hugging
Face's names, so that the oracle can load the very same numbers; `gguf_file.write`
gives them llama.cpp's names and conventions. A tensor's numbers depend on (seed, name, shape) only:
changing one tensor leaves the others as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gguf_file
import numpy as np
from numpy.typing import NDArray
from tools.rope_factors import RopeFactors

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What a model is, apart from its numbers."""

    architecture: str  # "llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"
    dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    n_layers: int = 3
    vocab_size: int = 331
    context_length: int = 512
    rope_theta: float = 10000.0
    rope_factors: RopeFactors | None = None
    rope_linear_factor: float = 1.0
    # Large beside the usual 1e-5, so that an engine that leaves it out, or takes its own, is seen.
    norm_epsilon: float = 0.03
    tied: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False  # of gate, up and down
    qk_norm: bool = False
    # Gemma's. A window is of all layers but every so manyth; None: the file does not say.
    post_norms: bool = False
    window: int | None = None
    window_pattern: tuple[bool, ...] | None = None
    windowed_rope_theta: float | None = None
    attention_scale: float | None = None
    attention_soft_cap: float | None = None
    logit_soft_cap: float | None = None

    @property
    def is_gemma(self) -> bool:
        """Whether it has gemma's embedding scale, GELU and 1 + w."""
        return self.architecture.startswith("gemma")

    @property
    def windowed(self) -> tuple[bool, ...]:
        """Whether each layer sees a window only."""
        if self.window is None:
            return (False,) * self.n_layers
        if self.window_pattern is not None:
            return self.window_pattern
        period = {"gemma2": 2, "gemma3": 6}[self.architecture]
        return tuple((layer + 1) % period != 0 for layer in range(self.n_layers))

    @property
    def q_dim(self) -> int:
        return self.n_heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        return self.n_kv_heads * self.head_dim

    def rope_divisors(self) -> NDArray[np.float64] | None:
        """What each rotary frequency is divided by, `[head_dim / 2]`; None where it is 1."""
        if self.rope_factors is None:
            return None
        return self.rope_factors.divisors(self.head_dim, self.rope_theta)


KINDS: dict[str, ModelSpec] = {
    # Version 1: every head has its own keys and values.
    "llama": ModelSpec(
        architecture="llama", dim=78, n_heads=3, n_kv_heads=3, head_dim=26, ffn_dim=147
    ),
    # Versions 2 and 3: heads share keys and values, here in groups of 3.
    "llama-gqa": ModelSpec(
        architecture="llama", dim=132, n_heads=6, n_kv_heads=2, head_dim=22, ffn_dim=207,
        rope_theta=500000.0,
    ),
    # Version 3.1 and later: frequency factors (all three bands occur), output tied.
    "llama-factors": ModelSpec(
        architecture="llama", dim=104, n_heads=4, n_kv_heads=2, head_dim=26, ffn_dim=171,
        rope_theta=500000.0, tied=True,
        rope_factors=RopeFactors(
            factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=128
        ),
    ),
    # Linear scaling, biases on all seven projections, heads wider than dim / n_heads.
    "llama-linear": ModelSpec(
        architecture="llama", dim=95, n_heads=5, n_kv_heads=1, head_dim=22, ffn_dim=133,
        rope_linear_factor=4.0, qkv_bias=True, output_bias=True, ffn_bias=True,
    ),
    # Biases on q, k and v; groups of 7; output tied.
    "qwen2": ModelSpec(
        architecture="qwen2", dim=140, n_heads=14, n_kv_heads=2, head_dim=10, ffn_dim=211,
        rope_theta=1000000.0, qkv_bias=True, tied=True,
    ),
    # Norms per head of q and k; heads together wider than dim.
    "qwen3": ModelSpec(
        architecture="qwen3", dim=90, n_heads=6, n_kv_heads=2, head_dim=26, ffn_dim=147,
        rope_theta=1000000.0, qk_norm=True,
    ),
    # Heads together wider than dim; embedding scaled, GELU.
    "gemma": ModelSpec(
        architecture="gemma", dim=75, n_heads=3, n_kv_heads=1, head_dim=34, ffn_dim=139, tied=True
    ),
    # Both caps, low enough to be felt; windows that end on both sides of the cache's page.
    "gemma2": ModelSpec(
        architecture="gemma2", dim=92, n_heads=4, n_kv_heads=2, head_dim=22, ffn_dim=147,
        n_layers=4, tied=True, post_norms=True, window=70, attention_scale=30**-0.5,
        attention_soft_cap=1.5, logit_soft_cap=2.0,
    ),
    # Two rotary bases, linear scaling of the one of full layers; two layers are full.
    "gemma3": ModelSpec(
        architecture="gemma3", dim=76, n_heads=4, n_kv_heads=1, head_dim=26, ffn_dim=133,
        n_layers=7, tied=True, post_norms=True, qk_norm=True, window=37, rope_theta=1000000.0,
        rope_linear_factor=8.0,
    ),
    # Rows that are multiples of 32 long, so that Q8_0 and Q4_0 variants exist.
    "llama-32": ModelSpec(
        architecture="llama", dim=96, n_heads=3, n_kv_heads=1, head_dim=32, ffn_dim=160
    ),
    "qwen2-32": ModelSpec(
        architecture="qwen2", dim=224, n_heads=14, n_kv_heads=2, head_dim=16, ffn_dim=288,
        rope_theta=1000000.0, qkv_bias=True,
    ),
    "qwen3-32": ModelSpec(
        architecture="qwen3", dim=96, n_heads=8, n_kv_heads=2, head_dim=24, ffn_dim=352,
        rope_theta=1000000.0, qk_norm=True, tied=True,
    ),
    "phi3-32": ModelSpec(
        architecture="phi3", dim=96, n_heads=3, n_kv_heads=1, head_dim=32, ffn_dim=160
    ),
    "gemma2-32": ModelSpec(
        architecture="gemma2", dim=96, n_heads=4, n_kv_heads=2, head_dim=32, ffn_dim=160, tied=True,
        post_norms=True, window=70, attention_soft_cap=1.5, logit_soft_cap=2.0,
    ),
    # Multiples of 256, for the K formats.
    "llama-256": ModelSpec(
        architecture="llama", dim=256, n_heads=8, n_kv_heads=2, head_dim=32, ffn_dim=512
    ),
    "qwen3-256": ModelSpec(
        architecture="qwen3", dim=256, n_heads=4, n_kv_heads=2, head_dim=64, ffn_dim=768,
        rope_theta=1000000.0, qk_norm=True, tied=True,
    ),
    # Heads of 256, as all of Gemma's have.
    "gemma3-256": ModelSpec(
        architecture="gemma3", dim=256, n_heads=2, n_kv_heads=1, head_dim=256, ffn_dim=512,
        tied=True, post_norms=True, qk_norm=True, window=100, window_pattern=(True, False, True),
        rope_theta=1000000.0,
    ),
}  # fmt: skip

# Kinds whose sizes are multiples of nothing: compared with the oracle in F32.
ODD_KINDS = (
    *("llama", "llama-gqa", "llama-factors", "llama-linear", "qwen2", "qwen3"),
    *("gemma", "gemma2", "gemma3"),
)
# Kinds that can be quantised.
ALIGNED_KINDS = ("llama-32", "qwen2-32", "qwen3-32", "gemma2-32")
# Those that the formats with 256 weights in a block fit.
K_KINDS = ("llama-256", "qwen3-256", "gemma3-256")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCase:
    """A model file and what is in it."""

    kind: str
    path: Path
    spec: ModelSpec
    weights: Weights  # under Hugging Face's names, as the file's format has rounded them
    weight_format: str
    seed: int


def _shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (spec.vocab_size, spec.dim)}
    for layer in range(spec.n_layers):
        prefix = f"model.layers.{layer}."
        attention = prefix + "self_attn."
        shapes[prefix + "input_layernorm.weight"] = (spec.dim,)
        for letter, n in (("q", spec.q_dim), ("k", spec.kv_dim), ("v", spec.kv_dim)):
            shapes[f"{attention}{letter}_proj.weight"] = (n, spec.dim)
            if spec.qkv_bias:
                shapes[f"{attention}{letter}_proj.bias"] = (n,)
        shapes[attention + "o_proj.weight"] = (spec.dim, spec.q_dim)
        if spec.output_bias:
            shapes[attention + "o_proj.bias"] = (spec.dim,)
        if spec.qk_norm:
            shapes[attention + "q_norm.weight"] = (spec.head_dim,)
            shapes[attention + "k_norm.weight"] = (spec.head_dim,)
        shapes[prefix + "post_attention_layernorm.weight"] = (spec.dim,)
        if spec.post_norms:
            shapes[prefix + "pre_feedforward_layernorm.weight"] = (spec.dim,)
            shapes[prefix + "post_feedforward_layernorm.weight"] = (spec.dim,)
        for part, n, k in (
            ("gate", spec.ffn_dim, spec.dim),
            ("up", spec.ffn_dim, spec.dim),
            ("down", spec.dim, spec.ffn_dim),
        ):
            shapes[f"{prefix}mlp.{part}_proj.weight"] = (n, k)
            if spec.ffn_bias:
                shapes[f"{prefix}mlp.{part}_proj.bias"] = (n,)
    shapes["model.norm.weight"] = (spec.dim,)
    if not spec.tied:
        shapes["lm_head.weight"] = (spec.vocab_size, spec.dim)
    return shapes


def random_weights(spec: ModelSpec, *, seed: int) -> Weights:
    """Every tensor of the model under Hugging Face's names, float32."""
    weights: Weights = {}
    for name, shape in _shapes(spec).items():
        # RandomState's streams are frozen by NumPy's compatibility policy; Generator's are not.
        stream = np.random.RandomState([seed, zlib.crc32(name.encode())])
        if "norm" in name:
            values = stream.uniform(0.5, 1.5, shape)
        elif name.endswith(".bias") or ("embed" in name and not spec.is_gemma):
            values = stream.standard_normal(shape)
        else:
            values = stream.standard_normal(shape) / np.sqrt(shape[-1])
        weights[name] = values.astype(np.float32)
    return weights


def random_tokens(spec: ModelSpec, n: int, *, seed: int) -> list[int]:
    """`n` token ids, uniform over the vocabulary."""
    stream = np.random.RandomState([seed, zlib.crc32(b"tokens")])
    return [int(token) for token in stream.randint(0, spec.vocab_size, n)]


def build(
    kind: str,
    path: Path,
    *,
    seed: int,
    weight_format: str = "f32",
    vector_format: str = "f32",
    change: Callable[[ModelSpec, Weights], Weights] | None = None,
    **overrides: Any,
) -> ModelCase:
    """Write the random model `kind` with `seed` to `path`.

    Args:
        kind: A key of `KINDS`.
        path: The GGUF file to write.
        seed: Decides every number.
        weight_format: A format or mix of `gguf_file`, for matrices.
        vector_format: "f32", "f16" or "bf16", for norms and biases.
        change: Makes other weights of the random ones before they are written.
        overrides: Fields of `ModelSpec` to replace, e.g. `norm_epsilon=1e-5`.

    Raises:
        ValueError: rows of a matrix are not a multiple of the format's block.
    """
    spec = replace(KINDS[kind], **overrides)
    weights = random_weights(spec, seed=seed)
    if change is not None:
        weights = change(spec, weights)
    rounded = gguf_file.write(path, spec, weights, weight_format, vector_format)
    return ModelCase(
        kind=kind, path=path, spec=spec, weights=rounded, weight_format=weight_format, seed=seed
    )


def case_cache(folder: Path, *, seed: int) -> Callable[..., ModelCase]:
    """`make(kind, weight_format="f32")`: builds each model in `folder` the first time."""
    made: dict[tuple[str, str], ModelCase] = {}

    def make(kind: str, weight_format: str = "f32") -> ModelCase:
        key = (kind, weight_format)
        if key not in made:
            path = folder / f"{kind}-{weight_format}.gguf"
            made[key] = build(kind, path, seed=seed, weight_format=weight_format)
        return made[key]

    return make
