"""Writes the small files of tests/fuzz/corpus/whisper_cpp, by hand from whisper.cpp's layout.

    python tests/fuzz/make_whisper_cpp_corpus.py [FOLDER]

One layer on each side, of 8 or 32 numbers; F32, F16 and every format with blocks of 32; a file
that is cut off, one of an old version of blocks, one without tensors. The files are committed, so
that fuzzing needs no Python.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize

FOLDER = Path(__file__).parent / "corpus" / "whisper_cpp"
VOCABULARY = 6
BANDS = 1


def numbers(dim: int, ftype: int) -> bytes:
    """The magic and 11 numbers."""
    return struct.pack("<12i", 0x67676D6C, VOCABULARY, 4, dim, 2, 1, 8, dim, 2, 1, BANDS, ftype)


def head(dim: int, ftype: int) -> bytes:
    """Everything before the tensors."""
    filters = struct.pack("<2i", BANDS, 201) + np.ones((BANDS, 201), np.float32).tobytes()
    words = [b"a", b"", b"\xff\xfe", b" the"]
    listed = b"".join(struct.pack("<I", len(word)) + word for word in words)
    return numbers(dim, ftype) + filters + struct.pack("<i", len(words)) + listed


def tensor(name: str, values: np.ndarray, tensor_type: Type = Type.F32) -> bytes:
    """A tensor's header and its data."""
    dims = values.shape[::-1]
    header = struct.pack(f"<3i{len(dims)}i", len(dims), len(name), tensor_type, *dims)
    return header + name.encode() + quantize(values, tensor_type).tobytes()


def model(dim: int, types: list[Type], ftype: int) -> bytes:
    """A whole model whose matrices take turns in `types`."""
    stream = np.random.RandomState(3)
    parts = [head(dim, ftype)]
    taken = 0

    def put(name: str, *shape: int, matrix: bool = False) -> None:
        nonlocal taken
        taken += matrix
        values = stream.standard_normal(shape).astype(np.float32)
        parts.append(tensor(name, values, types[taken % len(types)] if matrix else Type.F32))

    def norm(name: str) -> None:
        put(f"{name}.weight", dim)
        put(f"{name}.bias", dim)

    put("encoder.positional_embedding", 4, dim)
    put("encoder.conv1.weight", dim, BANDS, 3)
    put("encoder.conv1.bias", dim, 1)
    put("encoder.conv2.weight", dim, dim, 3)
    put("encoder.conv2.bias", dim, 1)
    norm("encoder.ln_post")
    put("decoder.positional_embedding", 8, dim)
    put("decoder.token_embedding.weight", VOCABULARY, dim, matrix=True)
    norm("decoder.ln")
    for side, attentions in (("encoder", ("attn",)), ("decoder", ("attn", "cross_attn"))):
        layer = f"{side}.blocks.0"
        for attention in attentions:
            norm(f"{layer}.{attention}_ln")
            for name in ("query", "key", "value", "out"):
                put(f"{layer}.{attention}.{name}.weight", dim, dim, matrix=True)
        norm(f"{layer}.mlp_ln")
        put(f"{layer}.mlp.0.weight", 4 * dim, dim, matrix=True)
        put(f"{layer}.mlp.2.weight", dim, 4 * dim, matrix=True)
    return b"".join(parts)


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]
    whole = model(8, [Type.F16], gguf.LlamaFileType.MOSTLY_F16)
    files = {
        "f16": whole,
        "blocks": model(32, blocks, 2000 + gguf.LlamaFileType.MOSTLY_Q5_0),
        "cut": whole[:2000],
        "old": head(8, gguf.LlamaFileType.MOSTLY_Q4_0),
        "empty": head(8, gguf.LlamaFileType.ALL_F32),
        "magic": b"lmgg",
        "pickle": b"PK\x03\x04" + bytes(26) + b"archive/data.pkl",
    }
    for name, content in files.items():
        (folder / f"{name}.bin").write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
