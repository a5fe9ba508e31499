"""Small random encoders: their tensors by transformers' names, their mathematics in NumPy.

And as GGUF, the way llama.cpp's converter writes them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import quantize
from hf_directory import write_safetensors
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tensors = dict[str, NDArray[np.float32]]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["▁a", "▁b", "▁c", "▁d", "▁cat", "▁dog"]
TOKENS = [*SPECIAL, *WORDS, "a", "b", "c", "d", "s"]


@dataclass(frozen=True)
class EncoderSpec:
    """The numbers of a model."""

    dim: int = 64
    n_layers: int = 2
    n_heads: int = 4
    ffn_dim: int = 96
    positions: int = 600
    vocab_size: int = len(TOKENS)
    epsilon: float = 1e-12
    architecture: str = "bert"  # or "nomic-bert"
    rope_theta: float = 1000.0

    @property
    def is_nomic(self) -> bool:
        return self.architecture == "nomic-bert"


# What transformers calls the parts of a layer, by GGUF's names.
_LAYERS = {"bert": "encoder.layer.", "nomic-bert": "layers."}
_PARTS = {
    "bert": {
        "attn_q": "attention.self.query",
        "attn_k": "attention.self.key",
        "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense",
        "attn_output_norm": "attention.output.LayerNorm",
        "ffn_up": "intermediate.dense",
        "ffn_down": "output.dense",
        "layer_output_norm": "output.LayerNorm",
    },
    "nomic-bert": {
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "attn_output_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
        "layer_output_norm": "post_mlp_layernorm",
    },
}


def random_tensors(spec: EncoderSpec, seed: int = 0) -> Tensors:
    """Weights as transformers names them, large enough that every part matters."""
    rng = np.random.default_rng(seed)
    tensors: Tensors = {}

    def normal(name: str, shape: tuple[int, ...], scale: float) -> None:
        tensors[name] = (rng.standard_normal(shape) * scale).astype(np.float32)

    def norm(name: str) -> None:
        tensors[f"{name}.weight"] = rng.uniform(0.5, 1.5, spec.dim).astype(np.float32)
        normal(f"{name}.bias", (spec.dim,), 0.3)

    normal("embeddings.word_embeddings.weight", (spec.vocab_size, spec.dim), 1.0)
    if not spec.is_nomic:
        normal("embeddings.position_embeddings.weight", (spec.positions, spec.dim), 0.5)
    normal("embeddings.token_type_embeddings.weight", (2, spec.dim), 0.5)
    norm("embeddings.LayerNorm")
    for layer in range(spec.n_layers):
        for part, name in _PARTS[spec.architecture].items():
            at = f"{_LAYERS[spec.architecture]}{layer}.{name}"
            if part.endswith("norm"):
                norm(at)
                continue
            rows = spec.ffn_dim if part in ("ffn_up", "ffn_gate") else spec.dim
            columns = spec.ffn_dim if part == "ffn_down" else spec.dim
            normal(f"{at}.weight", (rows, columns), 1.5 / np.sqrt(columns))
            if not spec.is_nomic:
                normal(f"{at}.bias", (rows,), 0.3)
    return tensors


def forward(
    spec: EncoderSpec, tensors: Tensors, ids: list[int], second_segment: int | None = None
) -> Array:
    """The last hidden rows, [n, dim], in double."""

    def of(name: str) -> Array:
        return tensors[name].astype(np.float64)

    def linear(x: Array, name: str) -> Array:
        bias = of(f"{name}.bias") if f"{name}.bias" in tensors else 0.0
        return x @ of(f"{name}.weight").T + bias

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + spec.epsilon)
        return scaled * of(f"{name}.weight") + of(f"{name}.bias")

    n, head_dim = len(ids), spec.dim // spec.n_heads
    frequencies = spec.rope_theta ** (-2.0 * np.arange(head_dim // 2) / head_dim)
    angles = np.arange(n)[:, None, None] * frequencies

    def rotated(x: Array) -> Array:
        a, b = x[..., : head_dim // 2], x[..., head_dim // 2 :]
        cosine, sine = np.cos(angles), np.sin(angles)
        return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)

    types = np.arange(n) >= (n if second_segment is None else second_segment)
    x = of("embeddings.word_embeddings.weight")[ids]
    if not spec.is_nomic:
        x = x + of("embeddings.position_embeddings.weight")[:n]
    x = x + of("embeddings.token_type_embeddings.weight")[types.astype(int)]
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(spec.n_layers):
        parts = {
            part: f"{_LAYERS[spec.architecture]}{layer}.{name}"
            for part, name in _PARTS[spec.architecture].items()
        }
        q, k, v = (
            linear(x, parts[part]).reshape(n, spec.n_heads, head_dim)
            for part in ("attn_q", "attn_k", "attn_v")
        )
        if spec.is_nomic:
            q, k = rotated(q), rotated(k)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(head_dim)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = np.einsum("hij,jhd->ihd", weights, v).reshape(n, spec.dim)
        x = norm(x + linear(attended, parts["attn_output"]), parts["attn_output_norm"])
        hidden = linear(x, parts["ffn_up"])
        if spec.is_nomic:
            gate = linear(x, parts["ffn_gate"])
            hidden = gate / (1 + np.exp(-gate)) * hidden
        else:
            hidden = hidden / 2 * (1 + np.vectorize(math.erf)(hidden / np.sqrt(2)))
        x = norm(x + linear(hidden, parts["ffn_down"]), parts["layer_output_norm"])
    return x


def pooled(rows: Array, pooling: str) -> Array:
    """One vector of the rows of a text."""
    return {"mean": rows.mean(axis=0), "cls": rows[0], "last": rows[-1], "max": rows.max(axis=0)}[
        pooling
    ]


_GLOBAL_NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
QUANTISED: dict[str, gguf.GGMLQuantizationType] = {
    "f16": gguf.GGMLQuantizationType.F16,
    "bf16": gguf.GGMLQuantizationType.BF16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}


def gguf_tensors(spec: EncoderSpec, tensors: Tensors) -> Tensors:
    """The tensors by llama.cpp's names, without those that its converter leaves out.

    Query, key and value of nomic-bert are one.
    """
    parts = {name: part for part, name in _PARTS[spec.architecture].items()}
    prefix = _LAYERS[spec.architecture]
    found: Tensors = {}
    for name, values in tensors.items():
        stem, _, suffix = name.rpartition(".")
        if stem.startswith(prefix):
            layer, _, module = stem.removeprefix(prefix).partition(".")
            found[f"blk.{layer}.{parts[module]}.{suffix}"] = values
        elif stem in _GLOBAL_NAMES:
            found[f"{_GLOBAL_NAMES[stem]}.{suffix}"] = values
    for layer in range(spec.n_layers if spec.is_nomic else 0):
        three = [found.pop(f"blk.{layer}.attn_{each}.weight") for each in "qkv"]
        found[f"blk.{layer}.attn_qkv.weight"] = np.concatenate(three)
    return found


def write_gguf(
    path: Path,
    spec: EncoderSpec,
    tensors: Tensors,
    tokens: list[str] = TOKENS,
    *,
    pooling: gguf.PoolingType | None = gguf.PoolingType.MEAN,
    weights: str = "f32",
    causal: bool = False,
    more: Tensors | None = None,
) -> Path:
    """Write an encoder. Embeddings of positions and types, and vectors, stay float32.

    `more`: tensors behind the pool, by their names there.
    """
    writer = gguf.GGUFWriter(path, spec.architecture)
    writer.add_context_length(spec.positions)
    writer.add_embedding_length(spec.dim)
    writer.add_feed_forward_length(spec.ffn_dim)
    writer.add_block_count(spec.n_layers)
    writer.add_head_count(spec.n_heads)
    writer.add_layer_norm_eps(spec.epsilon)
    writer.add_causal_attention(causal)
    if pooling is not None:
        writer.add_pooling_type(pooling)
    control = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in control else 1 for token in tokens])
    writer.add_bos_token_id(tokens.index("[CLS]"))
    writer.add_sep_token_id(tokens.index("[SEP]"))
    writer.add_unk_token_id(tokens.index("[UNK]"))
    writer.add_pad_token_id(tokens.index("[PAD]"))
    writer.add_token_type_count(2)
    if spec.is_nomic:
        writer.add_rope_freq_base(spec.rope_theta)
    for renamed, values in {**gguf_tensors(spec, tensors), **(more or {})}.items():
        kept = values.ndim == 1 or renamed.startswith(("position_embd", "token_types"))
        if weights == "f32" or kept:
            writer.add_tensor(renamed, values)
        else:
            kind = QUANTISED[weights]
            writer.add_tensor(renamed, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def phantom_spaces(vocabulary: dict[str, int]) -> list[str]:
    """The tokens of a WordPiece vocabulary as GGUF has them: U+2581 before words, no ##."""
    tokens = [""] * len(vocabulary)
    for token, index in vocabulary.items():
        is_special = token.startswith("[") and token.endswith("]")
        tokens[index] = (
            token if is_special else token[2:] if token.startswith("##") else "▁" + token
        )
    return tokens


def config_of(spec: EncoderSpec) -> dict[str, object]:
    """Its config.json."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": spec.dim,
        "intermediate_size": spec.ffn_dim,
        "layer_norm_eps": spec.epsilon,
        "max_position_embeddings": spec.positions,
        "num_attention_heads": spec.n_heads,
        "num_hidden_layers": spec.n_layers,
        "type_vocab_size": 2,
        "vocab_size": spec.vocab_size,
    }


def tokenizer_json(tokens: list[str]) -> dict[str, object]:
    """The same vocabulary as Hugging Face writes it."""
    spelled = [
        token if token in SPECIAL else token[1:] if token.startswith("▁") else "##" + token
        for token in tokens
    ]
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")]
    return {
        "added_tokens": [
            {"id": tokens.index(name), "content": name, "special": True} for name in SPECIAL
        ],
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
        },
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "vocab": {token: index for index, token in enumerate(spelled)},
        },
    }


def write_directory(
    folder: Path,
    spec: EncoderSpec,
    tensors: Tensors,
    *,
    prefix: str = "",
    pooling: str | None = None,
    **sentence_config: object,
) -> Path:
    """Write a Hugging Face directory; with `pooling`, the files of sentence-transformers too."""
    folder.mkdir(parents=True, exist_ok=True)
    pooler = {
        "pooler.dense.weight": np.eye(spec.dim, dtype=np.float32),
        "pooler.dense.bias": np.zeros(spec.dim, np.float32),
    }
    write_safetensors(
        folder / "model.safetensors",
        {
            prefix + name: ("F32", values.shape, values.tobytes())
            for name, values in {**tensors, **pooler}.items()
        },
    )

    def write(name: str, value: object) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")

    write("config.json", config_of(spec))
    write("tokenizer.json", tokenizer_json(TOKENS))
    if pooling is None:
        return folder
    kind = "sentence_transformers.models."
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    write(
        "modules.json",
        [
            {"idx": index, "name": str(index), "path": path, "type": kind + name}
            for index, (name, path) in enumerate(modules)
        ],
    )
    keys = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
    write(
        "1_Pooling/config.json",
        {"word_embedding_dimension": spec.dim, **{keys[k]: k == pooling for k in keys}},
    )
    write("sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False})
    write("config_sentence_transformers.json", sentence_config)
    return folder
