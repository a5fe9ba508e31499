"""Ember with matrices in F16: what `akunu quantize` takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from cli_support import EMBER
from gguf.quants import dequantize


def rewritten(
    target: Path, change: Callable[[str, Any], Any] = lambda name, values: values
) -> Path:
    """Ember with matrices in F16, by the `gguf` package; `change` gives other values."""
    reader = gguf.GGUFReader(EMBER)
    writer = gguf.GGUFWriter(target, "qwen3")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in (
            "general.architecture",
            "general.file_type",
        ):
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
    for tensor in reader.tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)
        values = change(tensor.name, values.astype(np.float16) if len(shape) > 1 else values)
        writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
