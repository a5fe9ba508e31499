"""Files of whisper.cpp made from the tensors of `speech_models`, by the layout of whisper.cpp."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import speech_models as sm
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize
from numpy.typing import NDArray

NAMES = {
    "self_attn_layer_norm": "attn_ln",
    "self_attn.q_proj": "attn.query",
    "self_attn.k_proj": "attn.key",
    "self_attn.v_proj": "attn.value",
    "self_attn.out_proj": "attn.out",
    "encoder_attn_layer_norm": "cross_attn_ln",
    "encoder_attn.q_proj": "cross_attn.query",
    "encoder_attn.k_proj": "cross_attn.key",
    "encoder_attn.v_proj": "cross_attn.value",
    "encoder_attn.out_proj": "cross_attn.out",
    "final_layer_norm": "mlp_ln",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
}
MODEL_NAMES = {
    "decoder.embed_tokens.weight": "decoder.token_embedding.weight",
    "decoder.embed_positions.weight": "decoder.positional_embedding",
    "decoder.layer_norm.weight": "decoder.ln.weight",
    "decoder.layer_norm.bias": "decoder.ln.bias",
    "encoder.embed_positions.weight": "encoder.positional_embedding",
    "encoder.layer_norm.weight": "encoder.ln_post.weight",
    "encoder.layer_norm.bias": "encoder.ln_post.bias",
}
FTYPES = {
    Type.F32: 0,
    Type.F16: 1,
    Type.Q4_0: 2002,
    Type.Q4_1: 2003,
    Type.Q8_0: 2007,
    Type.Q5_0: 2008,
    Type.Q5_1: 2009,
}


def spec_of(**changes: int) -> sm.SpeechSpec:
    """A small shape that such a file can say: both networks are four times as wide."""
    return sm.SpeechSpec(encoder_ffn_dim=256, decoder_ffn_dim=256, **changes)


def name_of(name: str) -> str:
    """A tensor's name there; `name`: by transformers."""
    name = name.removeprefix("model.")
    found = re.fullmatch(r"(\w+)\.layers\.(\d+)\.(.+)\.(weight|bias)", name)
    if found is not None:
        return f"{found[1]}.blocks.{found[2]}.{NAMES[found[3]]}.{found[4]}"
    return MODEL_NAMES.get(name, name)


def words(n: int) -> list[bytes]:
    """The bytes, and pairs of them."""
    listed = [bytes([byte]) for byte in range(256)]
    return [*listed, *(bytes([i // 256, i % 256]) for i in range(n - 256))]


def head(spec: sm.SpeechSpec, ftype: int, listed: list[bytes], n_vocab: int) -> bytes:
    """Everything before the tensors; the filters are 1, 2, 3 …"""
    numbers = struct.pack(
        "<12i",
        *(0x67676D6C, n_vocab, spec.n_positions, spec.dim, spec.n_heads, spec.n_encoder_layers),
        *(spec.context, spec.dim, spec.n_heads, spec.n_decoder_layers, spec.n_mels, ftype),
    )
    filters = np.arange(1, spec.n_mels * 201 + 1, dtype=np.float32)
    return b"".join(
        [
            numbers,
            struct.pack("<2i", spec.n_mels, 201) + filters.tobytes(),
            struct.pack("<i", len(listed)),
            *(struct.pack("<I", len(word)) + word for word in listed),
        ]
    )


def tensor(name: str, values: NDArray[np.float32], kind: Type) -> bytes:
    """A tensor's header and data."""
    dims = values.shape[::-1]
    begin = struct.pack(f"<3i{len(dims)}i", len(dims), len(name), kind, *dims)
    return begin + name.encode() + quantize(values, kind).tobytes()


def kind_of(name: str, values: NDArray[np.float32], kind: Type) -> Type:
    """The type that whisper.cpp's converter and its quantiser give a tensor."""
    if values.ndim < 2 or name.endswith("positional_embedding"):
        return Type.F32
    if values.ndim == 3:
        return Type.F32 if kind == Type.F32 else Type.F16
    return kind


def write(
    path: Path,
    spec: sm.SpeechSpec,
    tensors: sm.Tensors,
    kind: Type,
    *,
    listed: list[bytes] | None = None,
) -> Path:
    """The whole file; `listed`: its words."""
    n_vocab = len(tensors["model.decoder.embed_tokens.weight"])
    parts = [head(spec, FTYPES[kind], words(256) if listed is None else listed, n_vocab)]
    for theirs, values in tensors.items():
        name = name_of(theirs)
        made = kind_of(name, values, kind)
        is_column = name in ("encoder.conv1.bias", "encoder.conv2.bias")
        parts.append(tensor(name, values[:, None] if is_column else values, made))
    path.write_bytes(b"".join(parts))
    return path
