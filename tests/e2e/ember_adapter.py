"""An adapter of Ember, large enough to change what it says."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

import akunu

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


def write_adapter(path: Path, *, seed: int = 0) -> Path:
    """Write it, with random matrices for each layer's values."""
    ember = gguf.GGUFReader(EMBER)
    writer = gguf.GGUFWriter(path, ember.fields["general.architecture"].contents())
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 4)
    rng = np.random.default_rng(seed)
    for tensor in ember.tensors:
        if not tensor.name.endswith("attn_v.weight"):
            continue
        k, n = map(int, tensor.shape)
        writer.add_tensor(f"{tensor.name}.lora_a", rng.standard_normal((2, k)).astype(np.float32))
        writer.add_tensor(f"{tensor.name}.lora_b", rng.standard_normal((n, 2)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
