"""Files in other number formats: read back as F32, then quantised by llama.cpp itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
from tools.make_synthetic.recipes import RECIPES, recipe_name

_WORKER = Path(__file__).parent / "workers" / "llama_cpp_quantise.py"


def dequantise(source: Path, target: Path) -> None:
    """Write `source` to `target` with all tensors in F32, by the package `gguf`."""
    import gguf  # here, as other commands do without
    from gguf.quants import dequantize

    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    try:
        for field in reader.fields.values():
            # The writer makes these itself.
            if field.name.startswith("GGUF.") or field.name == "general.architecture":
                continue
            if field.name == "general.file_type":
                writer.add_file_type(gguf.LlamaFileType.ALL_F32)
                continue
            kind = field.types[0]
            items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
        for tensor in reader.tensors:
            values = dequantize(tensor.data, tensor.tensor_type)
            shape = [int(n) for n in reversed(tensor.shape)]
            writer.add_tensor(tensor.name, values.astype(np.float32).reshape(shape))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def quantise(source: Path, target: Path, recipe: str, *, peer: str, pure: bool = False) -> None:
    """Let llama.cpp write the F32 file `source` in the recipe, as `llama-quantize` does.

    `pure` gives every matrix the same format. Raises ValueError for a recipe that is not known,
    and RuntimeError, with the peer's words, where it fails.
    """
    number = RECIPES[recipe_name(recipe)][1]
    done = subprocess.run(
        [peer, _WORKER, source, target, str(number), str(int(pure))],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError("\n".join(done.stderr.strip().splitlines()[-3:]))
