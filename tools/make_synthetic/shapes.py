"""Shapes of models, and the tensors that a model of a shape has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tools.rope_factors import RopeFactors

ARCHITECTURES = ("llama", "qwen2", "qwen3", "qwen3moe", "gpt-oss")
WITH_EXPERTS = ("qwen3moe", "gpt-oss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A model without its weights, in the words of `akunu.ModelConfig`.

    Raises ValueError for sizes that do not go together.
    """

    architecture: str
    n_layers: int
    dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    vocab_size: int
    context_length: int = 2048
    rope_theta: float = 10000.0
    norm_epsilon: float = 1e-5
    tied: bool = False  # the output is the token embedding
    qkv_bias: bool = False
    output_bias: bool = False  # of attention's last projection
    qk_norm: bool = False
    rope_linear_factor: float = 1.0
    rope_factors: RopeFactors | None = None
    n_experts: int = 0  # 0: one feed-forward network
    n_chosen: int = 0  # experts of a row
    expert_dim: int = 0
    expert_bias: bool = False  # of the experts' projections and of the router
    skewed: bool = False  # some experts are chosen by half of the rows, each
    sinks: bool = False  # a number for each head that attention's weights are also divided among
    window: int = 0  # positions that layers with a window see; 0: all
    yarn_factor: float = 1.0  # YaRN stretches the context by this
    yarn_context: int = 0  # from as many positions

    def __post_init__(self) -> None:
        if self.architecture not in ARCHITECTURES:
            raise ValueError(
                f"architecture must be one of {', '.join(ARCHITECTURES)}, got {self.architecture!r}"
            )
        for name in ("n_layers", "dim", "n_heads", "n_kv_heads", "head_dim", "ffn_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.n_heads % self.n_kv_heads != 0:
            raise ValueError(
                f"n_heads must be a multiple of n_kv_heads, got {self.n_heads} and "
                f"{self.n_kv_heads}"
            )
        if (self.n_experts > 0) != (self.architecture in WITH_EXPERTS):
            raise ValueError(f"{self.architecture} with n_experts {self.n_experts} is no model")
        if self.n_experts > 0 and not (0 < self.n_chosen <= self.n_experts and self.expert_dim > 0):
            raise ValueError(
                f"{self.n_experts} experts need n_chosen and expert_dim, got {self.n_chosen} and "
                f"{self.expert_dim}"
            )
        if self.expert_bias and self.n_experts == 0:
            raise ValueError("expert_bias needs n_experts, got 0")
        if (self.yarn_factor != 1.0) != (self.yarn_context > 0):
            raise ValueError(
                f"yarn_factor and yarn_context go together, got {self.yarn_factor} and "
                f"{self.yarn_context}"
            )
        if self.head_dim % 2 != 0:
            raise ValueError(f"head_dim must be even, got {self.head_dim}")

    @property
    def q_dim(self) -> int:
        return self.n_heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        return self.n_kv_heads * self.head_dim

    def rope_divisors(self) -> NDArray[np.float32] | None:
        """What each rotary frequency is divided by, `[head_dim / 2]`; None where it is 1."""
        if self.rope_factors is None:
            return None
        return self.rope_factors.divisors(self.head_dim, self.rope_theta).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor by GGUF's name; `k` numbers a row, a vector has one row."""

    name: str
    rows: int  # of all its matrices
    k: int
    n_matrices: int = 1  # one for each expert

    @property
    def is_matrix(self) -> bool:
        return self.rows > 1

    @property
    def is_norm(self) -> bool:
        return self.name.endswith("_norm.weight")

    @property
    def is_bias(self) -> bool:
        return self.name.endswith(".bias")


def tensors(shape: Shape) -> Iterator[Tensor]:
    """All tensors in the order of the file, without `rope_freqs`, which is no weight."""
    dim, q_dim, kv_dim, ffn_dim = shape.dim, shape.q_dim, shape.kv_dim, shape.ffn_dim
    yield Tensor("token_embd.weight", shape.vocab_size, dim)
    for layer in range(shape.n_layers):
        block = f"blk.{layer}."
        yield Tensor(block + "attn_norm.weight", 1, dim)
        for letter, rows in (("q", q_dim), ("k", kv_dim), ("v", kv_dim)):
            yield Tensor(block + f"attn_{letter}.weight", rows, dim)
            if shape.qkv_bias:
                yield Tensor(block + f"attn_{letter}.bias", 1, rows)
        if shape.qk_norm:
            yield Tensor(block + "attn_q_norm.weight", 1, shape.head_dim)
            yield Tensor(block + "attn_k_norm.weight", 1, shape.head_dim)
        yield Tensor(block + "attn_output.weight", dim, q_dim)
        if shape.output_bias:
            yield Tensor(block + "attn_output.bias", 1, dim)
        if shape.sinks:
            yield Tensor(block + "attn_sinks.weight", 1, shape.n_heads)
        # gpt-oss names this norm as Hugging Face does.
        norm = "post_attention_norm" if shape.architecture == "gpt-oss" else "ffn_norm"
        yield Tensor(block + norm + ".weight", 1, dim)
        if shape.n_experts > 0:
            yield from _experts(block, shape)
            continue
        yield Tensor(block + "ffn_gate.weight", ffn_dim, dim)
        yield Tensor(block + "ffn_up.weight", ffn_dim, dim)
        yield Tensor(block + "ffn_down.weight", dim, ffn_dim)
    yield Tensor("output_norm.weight", 1, dim)
    if not shape.tied:
        yield Tensor("output.weight", shape.vocab_size, dim)


def _experts(block: str, shape: Shape) -> Iterator[Tensor]:
    n, dim, expert_dim = shape.n_experts, shape.dim, shape.expert_dim
    yield Tensor(block + "ffn_gate_inp.weight", n, dim)
    if shape.expert_bias:
        yield Tensor(block + "ffn_gate_inp.bias", 1, n)
    for kind, rows, k in (
        ("gate", expert_dim, dim),
        ("up", expert_dim, dim),
        ("down", dim, expert_dim),
    ):
        yield Tensor(block + f"ffn_{kind}_exps.weight", n * rows, k, n)
        if shape.expert_bias:
            yield Tensor(block + f"ffn_{kind}_exps.bias", n, rows)


def _qwen3(n_layers: int, dim: int, n_heads: int, ffn_dim: int, *, tied: bool) -> Shape:
    return Shape(
        architecture="qwen3", n_layers=n_layers, dim=dim, n_heads=n_heads, n_kv_heads=8,
        head_dim=128, ffn_dim=ffn_dim, vocab_size=151936, context_length=40960, rope_theta=1e6,
        norm_epsilon=1e-6, tied=tied, qk_norm=True,
    )  # fmt: skip


def _llama3(
    n_layers: int, dim: int, head_dim: int, ffn_dim: int, factor: float, *, tied: bool
) -> Shape:
    return Shape(
        architecture="llama", n_layers=n_layers, dim=dim, n_heads=32, n_kv_heads=8,
        head_dim=head_dim, ffn_dim=ffn_dim, vocab_size=128256, context_length=131072,
        rope_theta=5e5, norm_epsilon=1e-5, tied=tied,
        rope_factors=RopeFactors(
            factor=factor, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192
        ),
    )  # fmt: skip


PRESETS: dict[str, Shape] = {
    "Qwen3-0.6B": _qwen3(28, 1024, 16, 3072, tied=True),
    "Qwen3-1.7B": _qwen3(28, 2048, 16, 6144, tied=True),
    "Qwen3-4B": _qwen3(36, 2560, 32, 9728, tied=True),
    "Qwen3-8B": _qwen3(36, 4096, 32, 12288, tied=False),
    "Qwen3-30B-A3B": Shape(
        architecture="qwen3moe", n_layers=48, dim=2048, n_heads=32, n_kv_heads=4, head_dim=128,
        ffn_dim=6144, vocab_size=151936, context_length=40960, rope_theta=1e6, norm_epsilon=1e-6,
        qk_norm=True, n_experts=128, n_chosen=8, expert_dim=768,
    ),
    "gpt-oss-20b": Shape(
        architecture="gpt-oss", n_layers=24, dim=2880, n_heads=64, n_kv_heads=8, head_dim=64,
        ffn_dim=2880, vocab_size=201088, context_length=131072, rope_theta=150000.0,
        qkv_bias=True, output_bias=True, n_experts=32, n_chosen=4, expert_dim=2880,
        expert_bias=True, sinks=True, window=128, yarn_factor=32.0, yarn_context=4096,
    ),
    "Qwen2.5-0.5B": Shape(
        architecture="qwen2", n_layers=24, dim=896, n_heads=14, n_kv_heads=2, head_dim=64,
        ffn_dim=4864, vocab_size=151936, context_length=32768, rope_theta=1e6, norm_epsilon=1e-6,
        tied=True, qkv_bias=True,
    ),
    "Llama-3.2-1B": _llama3(16, 2048, 64, 8192, 32.0, tied=True),
    "Llama-3.1-8B": _llama3(32, 4096, 128, 14336, 8.0, tied=False),
    "TinyLlama-1.1B": Shape(
        architecture="llama", n_layers=22, dim=2048, n_heads=32, n_kv_heads=4, head_dim=64,
        ffn_dim=5632, vocab_size=32000, context_length=2048, rope_theta=10000.0,
        norm_epsilon=1e-5,
    ),
}  # fmt: skip
