"""GGUF files of latent attention in the newer layout: keys transposed, a matrix of each head.

newer(old_path, tmp_path / "new.gguf")  # of a file as `akunu convert` writes it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray


def split(kv_b: NDArray[np.float32], n_heads: int, value_dim: int) -> list[NDArray[np.float32]]:
    """`attn_k_b` [heads, rank, plain] and `attn_v_b` [heads, value, rank] of `attn_kv_b`."""
    heads = kv_b.reshape(n_heads, -1, kv_b.shape[1])
    keys, values = heads[:, :-value_dim], heads[:, -value_dim:]
    return [np.ascontiguousarray(keys.swapaxes(1, 2)), np.ascontiguousarray(values)]


def newer(path: Path, target: Path, number_format: str = "F32", **changes: Any) -> Path:
    """The file with `attn_k_b` and `attn_v_b` in a format, and the keys that go with them.

    `changes`: of keys, without the architecture; None leaves one out.
    """
    reader = gguf.GGUFReader(path)
    architecture = str(reader.fields["general.architecture"].contents())

    def said(key: str) -> int:
        return int(reader.fields[f"{architecture}.attention.{key}"].contents())  # type: ignore[arg-type]

    rank, n_heads, value_dim = said("kv_lora_rank"), said("head_count"), said("value_length")
    rotated = int(reader.fields[f"{architecture}.rope.dimension_count"].contents())  # type: ignore[arg-type]
    numbers: dict[str, int | None] = {
        "attention.head_count_kv": 1,
        "attention.key_length": rank + rotated,
        "attention.value_length": rank,
        "attention.key_length_mla": said("key_length"),
        "attention.value_length_mla": value_dim,
        **changes,
    }
    keys = {f"{architecture}.{key}": value for key, value in numbers.items()}
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in {"general.architecture", *keys}:
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
    for key, value in keys.items():
        if value is not None:
            writer.add_uint32(key, value)
    kind = gguf.GGMLQuantizationType[number_format]
    for tensor in reader.tensors:
        if not tensor.name.endswith("attn_kv_b.weight"):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        whole = gguf.dequantize(tensor.data, tensor.tensor_type)
        parts = split(whole, n_heads, value_dim)
        for letter, part in zip("kv", parts, strict=True):
            name = tensor.name.replace("kv_b", f"{letter}_b")
            if kind == gguf.GGMLQuantizationType.F32 or part.shape[-1] % 32 != 0:
                writer.add_tensor(name, part)
            else:
                writer.add_tensor(name, gguf.quantize(part, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
