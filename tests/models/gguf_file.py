"""Writes a `ModelSpec` and its weights as GGUF, the way llama.cpp's converter does.

Names, metadata keys and their presence follow `convert_hf_to_gguf.py`: the rows of llama's Q and K
are permuted so that neighbouring dimensions rotate together, those of the others are not; Llama
3.1's scaling becomes the tensor `rope_freqs.weight`; vectors stay float32.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools import block_formats

if TYPE_CHECKING:
    from random_models import ModelSpec, Weights

_FILE_TYPES = {
    "f32": gguf.LlamaFileType.ALL_F32,
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "bf16": gguf.LlamaFileType.MOSTLY_BF16,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
    "q4_1": gguf.LlamaFileType.MOSTLY_Q4_1,
    "q5_0": gguf.LlamaFileType.MOSTLY_Q5_0,
    "q5_1": gguf.LlamaFileType.MOSTLY_Q5_1,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q2_k": gguf.LlamaFileType.MOSTLY_Q2_K,
    "q3_k": gguf.LlamaFileType.MOSTLY_Q3_K_S,
    "q4_k": gguf.LlamaFileType.MOSTLY_Q4_K_S,
    "q5_k": gguf.LlamaFileType.MOSTLY_Q5_K_S,
    "q6_k": gguf.LlamaFileType.MOSTLY_Q6_K,
    "iq4_nl": gguf.LlamaFileType.MOSTLY_IQ4_NL,
    "iq4_xs": gguf.LlamaFileType.MOSTLY_IQ4_XS,
    "iq3_s": gguf.LlamaFileType.MOSTLY_IQ3_S,
    "q4_k_m": gguf.LlamaFileType.MOSTLY_Q4_K_M,
    "all": gguf.LlamaFileType.GUESSED,
    "tables": gguf.LlamaFileType.GUESSED,
}
WEIGHT_FORMATS = tuple(_FILE_TYPES)
# Files that mix formats: layer and module to format. Q4_K_M has Q6_K where it matters most, in some
# layers only; "all" and "tables" have many, so that
# q, k and v of a layer differ, and gate and up.
_IN_TURN = ["q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_0", "q4_0"]
_TABLES = ["iq4_nl", "mxfp4", "iq4_xs", "nvfp4", "iq3_xxs", "iq2_s", "iq3_s", "iq2_xs", "iq2_xxs"]
_MIXES: dict[str, Callable[[int, str], str]] = {
    "q4_k_m": lambda layer, module: (
        "q6_k"
        if module == "lm_head" or (layer != 1 and module in ("v_proj", "down_proj"))
        else "q4_k"
    ),
    "all": lambda layer, module: _IN_TURN[
        (7 * layer + zlib.crc32(module.encode())) % len(_IN_TURN)
    ],
    "tables": lambda layer, module: _TABLES[
        (7 * layer + zlib.crc32(module.encode())) % len(_TABLES)
    ],
}

_GLOBAL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str, *, post_norms: bool = False) -> str:
    """llama.cpp's name of a tensor that Hugging Face calls `name`.

    In models with norms behind attention, "post_attention_layernorm" is one of these.
    """
    if name in _GLOBAL_NAMES:
        return _GLOBAL_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    module, _, suffix = rest.rpartition(".")
    if post_norms and module == "post_attention_layernorm":
        return f"blk.{layer}.post_attention_norm.{suffix}"
    return f"blk.{layer}.{_LAYER_NAMES[module]}.{suffix}"


def interleave(data: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """Reorder each head's rows from halves (i with i + d/2) to neighbours (2i with 2i + 1)."""
    split = data.reshape(n_heads, 2, data.shape[0] // n_heads // 2, *data.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2).reshape(data.shape))


def deinterleave(data: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """Undo `interleave`."""
    split = data.reshape(n_heads, data.shape[0] // n_heads // 2, 2, *data.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2).reshape(data.shape))


def format_of(name: str, weight_format: str) -> str:
    """The number format of tensor `name` (Hugging Face's) in a file of that format or mix."""
    mix = _MIXES.get(weight_format)
    if mix is None:
        return weight_format
    parts = name.split(".")
    return mix(int(parts[2]) if parts[1] == "layers" else 0, parts[-2])


def _kind(number_format: str) -> gguf.GGMLQuantizationType:
    return gguf.GGMLQuantizationType[number_format.upper()]


def stored_bytes(data: NDArray[np.float32], number_format: str) -> NDArray[Any]:
    """`data` in a format, as GGUFWriter takes it."""
    # The gguf package reads these, but does not make them.
    if number_format.endswith("_k") or number_format.startswith(("iq", "nvfp")):
        return block_formats.quantize(number_format, data).data
    return quantize(data, _kind(number_format))


def write(
    path: Path,
    spec: ModelSpec,
    weights: Weights,
    weight_format: str,
    vector_format: str = "f32",
) -> Weights:
    """Write the file; the weights as the formats have rounded them are returned."""
    formats = {
        name: vector_format if data.ndim == 1 else format_of(name, weight_format)
        for name, data in weights.items()
    }
    for name, data in weights.items():
        block = gguf.GGML_QUANT_SIZES[_kind(formats[name])][0]
        if data.shape[-1] % block != 0:
            raise ValueError(
                f"{name} has rows of {data.shape[-1]} weights; {formats[name]} needs a multiple "
                f"of {block}"
            )
    writer = gguf.GGUFWriter(path, spec.architecture)
    _write_numbers(writer, spec, weight_format)
    _write_tokenizer(writer, spec.vocab_size)

    divisors = spec.rope_divisors()
    if divisors is not None:
        writer.add_tensor("rope_freqs.weight", divisors.astype(np.float32))
    read: Weights = {}
    for name, data in weights.items():
        n_heads = 0
        if spec.architecture == "llama" and ".q_proj." in name:
            n_heads = spec.n_heads
        elif spec.architecture == "llama" and ".k_proj." in name:
            n_heads = spec.n_kv_heads
        rows = interleave(data, n_heads) if n_heads else data
        stored, kind = stored_bytes(rows, formats[name]), _kind(formats[name])
        file_name = gguf_name(name, post_norms=spec.post_norms)
        writer.add_tensor(file_name, stored, raw_dtype=kind)
        values = dequantize(stored, kind).astype(np.float32).reshape(data.shape)
        read[name] = deinterleave(values, n_heads) if n_heads else values

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read


def _write_numbers(writer: gguf.GGUFWriter, spec: ModelSpec, weight_format: str) -> None:
    writer.add_name(f"random {spec.architecture}")
    writer.add_block_count(spec.n_layers)
    writer.add_context_length(spec.context_length)
    writer.add_embedding_length(spec.dim)
    writer.add_feed_forward_length(spec.ffn_dim)
    writer.add_head_count(spec.n_heads)
    writer.add_head_count_kv(spec.n_kv_heads)
    writer.add_rope_freq_base(spec.rope_theta)
    writer.add_layer_norm_rms_eps(spec.norm_epsilon)
    if spec.head_dim * spec.n_heads != spec.dim:
        writer.add_key_length(spec.head_dim)
        writer.add_value_length(spec.head_dim)
    writer.add_file_type(_FILE_TYPES.get(weight_format, gguf.LlamaFileType.GUESSED))
    # The converter writes these two for llama and leaves them to be found for the others.
    if spec.architecture == "llama":
        writer.add_vocab_size(spec.vocab_size)
        writer.add_rope_dimension_count(spec.head_dim)
    if spec.rope_linear_factor != 1.0:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(spec.rope_linear_factor)
    prefix = spec.architecture
    if spec.window is not None:
        writer.add_sliding_window(spec.window)
    if spec.window_pattern is not None:
        writer.add_array(f"{prefix}.attention.sliding_window_pattern", list(spec.window_pattern))
    for key, number in (
        ("rope.freq_base_swa", spec.windowed_rope_theta),
        ("attention.scale", spec.attention_scale),
        ("attn_logit_softcapping", spec.attention_soft_cap),
        ("final_logit_softcapping", spec.logit_soft_cap),
    ):
        if number is not None:
            writer.add_float32(f"{prefix}.{key}", number)


def _byte_characters() -> list[str]:
    """The character that stands for each byte in GPT-2's vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable}
    characters |= {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [characters[byte] for byte in range(256)]


def _write_tokenizer(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """Byte-level BPE: 256 bytes, two and three letters, and a last token that ends the text."""
    characters = _byte_characters()
    letters = "etaoinshrdlu"
    pairs = [(a, b) for a in letters for b in letters]
    joined = [*pairs, *((a + b, c) for a, b in pairs for c in letters)]
    if not 257 <= vocab_size <= 257 + len(joined):
        raise ValueError(f"vocab_size must lie in 257..{257 + len(joined)}, got {vocab_size}")
    joined = joined[: vocab_size - 257]
    tokens = [*characters, *(a + b for a, b in joined), "<|end|>"]
    types = [gguf.TokenType.NORMAL] * (vocab_size - 1) + [gguf.TokenType.CONTROL]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([f"{a} {b}" for a, b in joined])
    writer.add_bos_token_id(vocab_size - 1)
    writer.add_eos_token_id(vocab_size - 1)
    writer.add_add_bos_token(False)
