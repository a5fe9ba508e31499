"""A small random jina-bert-v2 as GGUF, against NumPy: ALiBi, GELU in the gate."""

from __future__ import annotations

import math
from pathlib import Path

import encoder_models as em
import gguf
import numpy as np
import pytest
from engine import GPUS, relative_error
from measured_errors import record

import akunu

DIM, HEADS, FFN, LAYERS, EPSILON = 48, 6, 80, 2, 1e-12


def tensors() -> em.Tensors:
    """By GGUF's names."""
    rng = np.random.default_rng(4)
    found: em.Tensors = {}

    def normal(name: str, *shape: int, scale: float = 0.3) -> None:
        found[name] = (rng.standard_normal(shape) * scale).astype(np.float32)

    def linear(name: str, rows: int, columns: int, *, bias: bool = True) -> None:
        normal(f"{name}.weight", rows, columns, scale=1.5 / columns**0.5)
        if bias:
            normal(f"{name}.bias", rows)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = rng.uniform(0.5, 1.5, DIM).astype(np.float32)
        normal(f"{name}.bias", DIM)

    normal("token_embd.weight", len(em.TOKENS), DIM, scale=1.0)
    normal("token_types.weight", 2, DIM)
    norm("token_embd_norm")
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            linear(at + part, DIM, DIM)
        for part in ("ffn_gate", "ffn_up"):
            linear(at + part, FFN, DIM, bias=False)
        linear(at + "ffn_down", DIM, FFN)
        norm(at + "attn_output_norm")
        norm(at + "layer_output_norm")
    return found


def slopes() -> em.Array:
    """Of 4 heads, and of the 2 beyond that power of two (Press et al., 2022)."""
    return np.array([*(2.0 ** -(2 * (h + 1)) for h in range(4)), 2.0**-1, 2.0**-3])


def forward(weights: em.Tensors, ids: list[int]) -> em.Array:
    """The last hidden rows, in double."""

    def linear(x: em.Array, name: str) -> em.Array:
        bias = weights.get(f"{name}.bias", np.float32(0))
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + bias

    def norm(x: em.Array, name: str) -> em.Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    n, head_dim = len(ids), DIM // HEADS
    x = weights["token_embd.weight"].astype(np.float64)[ids] + weights["token_types.weight"][0]
    x = norm(x, "token_embd_norm")
    distances = np.abs(np.arange(n)[:, None] - np.arange(n))
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        q, k, v = (linear(x, f"{at}attn_{c}").reshape(n, HEADS, head_dim) for c in "qkv")
        scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(head_dim)
        scores -= slopes()[:, None, None] * distances
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        attended = np.einsum("hij,jhd->ihd", shares, v).reshape(n, DIM)
        x = norm(x + linear(attended, at + "attn_output"), at + "attn_output_norm")
        gate = linear(x, at + "ffn_gate")
        gate = gate / 2 * (1 + np.vectorize(math.erf)(gate / math.sqrt(2)))
        down = linear(gate * linear(x, at + "ffn_up"), at + "ffn_down")
        x = norm(x + down, at + "layer_output_norm")
    return x


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jina") / "jina.gguf"
    writer = gguf.GGUFWriter(path, "jina-bert-v2")
    writer.add_context_length(400)
    writer.add_embedding_length(DIM)
    writer.add_feed_forward_length(FFN)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_tokenizer_model("bert")
    writer.add_token_list(em.TOKENS)
    writer.add_token_types([3 if token in em.SPECIAL else 1 for token in em.TOKENS])
    writer.add_bos_token_id(em.TOKENS.index("[CLS]"))
    writer.add_sep_token_id(em.TOKENS.index("[SEP]"))
    writer.add_unk_token_id(em.TOKENS.index("[UNK]"))
    for name, values in tensors().items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("device", ["cpu", *GPUS])
def test_scores_fall_with_the_distance(path, device) -> None:
    weights = tensors()
    with akunu.load(path, device=device) as model:
        for n in (1, 2, 40, 300) if device == "cpu" else (1, 40):
            ids = np.random.default_rng(n).integers(4, len(em.TOKENS), n).tolist()
            (found,) = model.embed([ids], pooling="none", normalize=False)
            expected = forward(weights, ids)
            np.testing.assert_allclose(found, expected, atol=3e-5)
        record("jina-bert-v2", "GGUF F32", device, relative_error(found, expected))
