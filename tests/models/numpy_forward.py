"""An independent forward pass in NumPy, in double, over what a GGUF file says.

    model = NumpyModel(path)
    model.logits([1, 2, 3]).shape  # (3, vocab_size)

Written from the papers: Touvron et al. 2023 (llama), Ainslie et al. 2023 (grouped queries), Su et
al. 2021 (rotary positions), Zhang & Sennrich 2019 (RMS norm), Shazeer 2020 (gated feed-forward),
Gemma Team 2024 and 2025 (soft caps, norms behind, windows).
It shares no code with the engine, and reads the file itself. `Variant` holds what the engine may
round on purpose, and mistakes that tests make on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How a pass departs from the papers."""

    int8_activations: bool = False  # round the inputs of matmuls with quantised weights, per 32
    int8_head: bool = False  # those of the head's matmul
    bf16_layers: bool = False  # round what layers multiply, quantised weights too, to bf16
    halves_in_q16: bool = False  # round what layers multiply with weights of 16 bits, and those
    f16_cache: bool = False  # round keys and values to half precision
    # Mistakes:
    mask_offset: int = 0  # 1: a row also sees the next position; -1: it does not see itself
    swap_rope_style: bool = False
    modulo_heads: bool = False  # query head h reads kv head h % n_kv_heads
    other_activation: bool = False  # GELU in the place of SiLU, and the other way round
    scaled_windows: bool = False  # linear scaling of positions in windowed layers too


class NumpyModel:
    """A model of any architecture of `random_models`, read from a GGUF file."""

    def __init__(self, path: Path, *, context: int = 512) -> None:
        reader = gguf.GGUFReader(path)
        self.tensors: dict[str, Array] = {}
        self.quantised: set[str] = set()
        self.halves: set[str] = set()
        for tensor in reader.tensors:
            shape = tuple(int(n) for n in reversed(tensor.shape))
            values = dequantize(tensor.data, tensor.tensor_type).reshape(shape)
            self.tensors[tensor.name] = values.astype(np.float64)
            if gguf.GGML_QUANT_SIZES[tensor.tensor_type][0] > 1:  # weights per block
                self.quantised.add(tensor.name)
            elif tensor.tensor_type in (
                gguf.GGMLQuantizationType.F16,
                gguf.GGMLQuantizationType.BF16,
            ):
                self.halves.add(tensor.name)
        meta = {name: field.contents() for name, field in reader.fields.items()}
        self.architecture: str = meta["general.architecture"]
        prefix = self.architecture + "."
        self.n_layers: int = meta[prefix + "block_count"]
        self.dim: int = meta[prefix + "embedding_length"]
        self.n_heads: int = meta[prefix + "attention.head_count"]
        self.n_kv_heads: int = meta.get(prefix + "attention.head_count_kv", self.n_heads)
        self.head_dim: int = meta.get(prefix + "attention.key_length", self.dim // self.n_heads)
        self.epsilon: float = meta[prefix + "attention.layer_norm_rms_epsilon"]
        theta: float = meta.get(prefix + "rope.freq_base", 10000.0)
        rope_dim: int = meta.get(prefix + "rope.dimension_count", self.head_dim)
        factor = 1.0
        if meta.get(prefix + "rope.scaling.type") == "linear":
            factor = meta[prefix + "rope.scaling.factor"]
        exponents = np.arange(0, rope_dim, 2) / rope_dim
        original = meta.get(prefix + "rope.scaling.original_context_length", context)
        divisors = self.tensors.get("rope_freqs.weight", np.ones(rope_dim // 2))
        reach = "long" if context > original else "short"
        divisors = self.tensors.get(f"rope_factors_{reach}.weight", divisors)
        self.rope_magnitude: float = meta.get(prefix + "rope.scaling.attn_factor", 1.0)
        self.frequencies: Array = theta**-exponents / divisors / factor

        self.is_gemma = self.architecture.startswith("gemma")
        later = self.architecture in ("gemma2", "gemma3")
        self.scale: float = meta.get(prefix + "attention.scale", self.head_dim**-0.5)
        self.attention_cap: float = 0.0
        self.logit_cap: float = 0.0
        self.window: int = 0
        if not self.is_gemma:
            self.window = meta.get(prefix + "attention.sliding_window", 0)
        if later:
            caps = (50.0, 30.0) if self.architecture == "gemma2" else (0.0, 0.0)
            self.attention_cap = meta.get(prefix + "attn_logit_softcapping", caps[0])
            self.logit_cap = meta.get(prefix + "final_logit_softcapping", caps[1])
            self.window = meta.get(prefix + "attention.sliding_window", 0)
        period = 2 if self.architecture == "gemma2" else 6
        pattern = [not later or (layer + 1) % period != 0 for layer in range(self.n_layers)]
        pattern = meta.get(prefix + "attention.sliding_window_pattern", pattern)
        self.windowed = [bool(each) and self.window > 0 for each in pattern]
        # Gemma 3's windows have a base of their own, and no scaling.
        self.windowed_factor = factor
        self.windowed_frequencies = self.frequencies
        if self.architecture == "gemma3":
            self.windowed_frequencies = meta.get(prefix + "rope.freq_base_swa", 1e4) ** -exponents

    def logits(self, tokens: Sequence[int], variant: Variant | None = None) -> Array:
        """Logits `[n, vocab_size]` after each of the `n` tokens, read from position 0 on."""
        variant = variant or Variant()
        x = self.tensors["token_embd.weight"][np.asarray(tokens)]
        if self.is_gemma:
            x = x * np.sqrt(self.dim)
        for layer in range(self.n_layers):
            prefix = f"blk.{layer}."
            attended = self._attention(self._norm(x, prefix + "attn_norm.weight"), layer, variant)
            x = x + self._post_norm(attended, prefix + "post_attention_norm.weight")
            fed = self._feed_forward(self._norm(x, prefix + "ffn_norm.weight"), prefix, variant)
            x = x + self._post_norm(fed, prefix + "post_ffw_norm.weight")
        x = self._norm(x, "output_norm.weight")
        name = "output" if "output.weight" in self.tensors else "token_embd"
        rounds = variant.int8_head or variant.int8_activations
        logits = self._project(x, name, Variant(int8_activations=rounds))
        return self.logit_cap * np.tanh(logits / self.logit_cap) if self.logit_cap else logits

    def _post_norm(self, x: Array, name: str) -> Array:
        return self._norm(x, name) if name in self.tensors else x

    def _norm(self, x: Array, name: str) -> Array:
        root = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.epsilon)
        normed: Array = x / root * self.tensors[name]
        return normed

    def _project(self, x: Array, name: str, variant: Variant) -> Array:
        weight = self.tensors[name + ".weight"]
        if variant.int8_activations and name + ".weight" in self.quantised:
            x = int8_per_32(x)
        if variant.bf16_layers and name + ".weight" in self.quantised:
            x, weight = bf16(x), bf16(weight)
        if variant.halves_in_q16 and name + ".weight" in self.halves:
            x, weight = q16_per_32(x), q16_per_32(weight)
        product: Array = x @ weight.T
        bias = self.tensors.get(name + ".bias")
        return product if bias is None else product + bias

    def _rotate(self, x: Array, layer: int, variant: Variant) -> Array:
        """Rotate pairs of `x[position, head, head_dim]` by position times frequency."""
        frequencies = self.frequencies
        if self.windowed[layer]:
            factor = self.windowed_factor if variant.scaled_windows else 1.0
            frequencies = self.windowed_frequencies / factor
        angles = np.arange(x.shape[0])[:, None, None] * frequencies
        n_pairs = len(frequencies)
        if (self.architecture == "llama") != variant.swap_rope_style:
            first, second = slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2)
        else:
            first, second = slice(0, n_pairs), slice(n_pairs, 2 * n_pairs)
        turned = x.copy()
        turned[..., first] = x[..., first] * np.cos(angles) - x[..., second] * np.sin(angles)
        turned[..., second] = x[..., second] * np.cos(angles) + x[..., first] * np.sin(angles)
        turned[..., : 2 * n_pairs] *= self.rope_magnitude
        return turned

    def _attention(self, x: Array, layer: int, variant: Variant) -> Array:
        n = x.shape[0]
        prefix = f"blk.{layer}."
        query = self._project(x, prefix + "attn_q", variant).reshape(n, self.n_heads, -1)
        key = self._project(x, prefix + "attn_k", variant).reshape(n, self.n_kv_heads, -1)
        value = self._project(x, prefix + "attn_v", variant).reshape(n, self.n_kv_heads, -1)
        if prefix + "attn_q_norm.weight" in self.tensors:
            query = self._norm(query, prefix + "attn_q_norm.weight")
            key = self._norm(key, prefix + "attn_k_norm.weight")
        query, key = self._rotate(query, layer, variant), self._rotate(key, layer, variant)
        if variant.f16_cache:
            key, value = key.astype(np.float16), value.astype(np.float16)
        if variant.bf16_layers:
            query, key, value = bf16(query), bf16(key), bf16(value)

        seen = np.arange(n)[None, :] <= np.arange(n)[:, None] + variant.mask_offset
        if self.windowed[layer]:
            seen &= np.arange(n)[None, :] > np.arange(n)[:, None] - self.window
        seen[0, 0] = True  # with mask_offset -1 the first row has nothing else to see
        out = np.empty((n, self.n_heads, self.head_dim))
        for head in range(self.n_heads):
            group = self.n_heads // self.n_kv_heads
            kv_head = head % self.n_kv_heads if variant.modulo_heads else head // group
            scores = query[:, head] @ key[:, kv_head].T.astype(np.float64)
            scores = scores * self.scale
            if self.attention_cap:
                scores = self.attention_cap * np.tanh(scores / self.attention_cap)
            scores = np.where(seen, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            total = weights.sum(axis=1, keepdims=True)
            weights = (bf16(weights) if variant.bf16_layers else weights) / total
            out[:, head] = weights @ value[:, kv_head]
        return self._project(out.reshape(n, -1), prefix + "attn_output", variant)

    def _feed_forward(self, x: Array, prefix: str, variant: Variant) -> Array:
        gate = self._project(x, prefix + "ffn_gate", variant)
        up = self._project(x, prefix + "ffn_up", variant)
        if self.is_gemma != variant.other_activation:
            inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
            hidden = gate / 2 * (1 + np.tanh(inner)) * up
        else:
            hidden = gate / (1 + np.exp(-gate)) * up
        return self._project(hidden, prefix + "ffn_down", variant)


def bf16(x: NDArray[np.floating]) -> Array:
    """`x` rounded to bfloat16, to nearest even."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(np.float64)


def int8_per_32(x: Array) -> Array:
    """`x` rounded to int8 in groups of 32, as docs/kernels.md defines the kind q8_32."""
    groups = x.astype(np.float32).reshape(*x.shape[:-1], -1, 32)
    scale = np.abs(groups).max(axis=-1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    rounded: Array = (np.rint(groups * inverse) * scale).astype(np.float64)
    return rounded.reshape(x.shape)


def q16_per_32(x: Array) -> Array:
    """`x` rounded to 13 bits and a sign in groups of 32, as docs/kernels.md defines q16_32."""
    groups = np.pad(x, ((0, 0), (0, -x.shape[-1] % 32))).reshape(len(x), -1, 32)
    scale = 2.0 ** (np.frexp(np.abs(groups).max(axis=-1, keepdims=True))[1] - 13)
    rounded: Array = (np.rint(groups / scale) * scale).reshape(len(x), -1)
    return rounded[:, : x.shape[-1]]
