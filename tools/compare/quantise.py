"""Files in other number formats: read back as F32, then quantised by llama.cpp itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.make_synthetic.recipes import RECIPES, recipe_name, tensor_format
from tools.make_synthetic.shapes import Shape, Tensor

_WORKER = Path(__file__).parent / "workers" / "llama_cpp_quantise.py"

Floats = NDArray[np.float32]


def _rewrite(source: Path, target: Path, file_type: int, write: Callable[..., None]) -> None:
    """Copy `source`; `write(writer, name, values)` adds each tensor, given in F32."""
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
                writer.add_file_type(file_type)
                continue
            kind = field.types[0]
            items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
        for tensor in reader.tensors:
            values = dequantize(tensor.data, tensor.tensor_type)
            shape = [int(n) for n in reversed(tensor.shape)]
            write(writer, tensor.name, values.astype(np.float32).reshape(shape))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def dequantise(source: Path, target: Path) -> None:
    """Write `source` to `target` with all tensors in F32, by the package `gguf`."""

    def write(writer: Any, name: str, values: Floats) -> None:
        writer.add_tensor(name, values)

    _rewrite(source, target, RECIPES["F32"][1], write)


def quantised_rows(
    values: Floats, number_format: str, importance: Floats | None = None
) -> NDArray[np.uint8]:
    """The rows of a matrix in that format, bytes, by `ggml_quantize_chunk` of the wheel xllamacpp.

    `importance`: how much each column counts, [k]. Raises ImportError where the wheel is missing or
    another version.
    """
    import gguf
    from tools.compare.workers import xllamacpp_api

    kind = gguf.GGMLQuantizationType[number_format]
    rows, k = values.shape
    block, size = gguf.GGML_QUANT_SIZES[kind]
    made = np.empty((rows, k // block * size), np.uint8)
    source = np.ascontiguousarray(values)
    weights = None if importance is None else np.ascontiguousarray(importance, np.float32)
    written = xllamacpp_api.ggml_quantize_chunk(
        kind.value,
        source.ctypes.data,
        made.ctypes.data,
        0,
        rows,
        k,
        None if weights is None else weights.ctypes.data,
    )
    assert written == made.nbytes
    return made


def _shape(model: Path) -> Shape:
    """What a file says of its model's shape."""
    import gguf

    reader = gguf.GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()

    def value(name: str) -> int:
        return int(reader.fields[f"{architecture}.{name}"].contents())

    return Shape(
        architecture=architecture,
        n_layers=value("block_count"),
        dim=value("embedding_length"),
        n_heads=value("attention.head_count"),
        n_kv_heads=value("attention.head_count_kv"),
        head_dim=value("attention.key_length"),
        ffn_dim=value("feed_forward_length"),
        vocab_size=len(reader.fields["tokenizer.ggml.tokens"].contents()),
        tied=all(tensor.name != "output.weight" for tensor in reader.tensors),
    )


def quantise_by_rows(source: Path, target: Path, recipe: str, *, pure: bool = False) -> None:
    """Write the model `source` in the recipe, without a llama.cpp that was built.

    Rows are llama.cpp's own (`quantised_rows`); which tensor gets which format is decided by
    `tools.make_synthetic.recipes`, which tests/oracle compares with llama.cpp's choice. Raises
    ValueError for a recipe that is not known.
    """
    import gguf

    recipe, shape = recipe_name(recipe), _shape(source)

    def write(writer: Any, name: str, values: Floats) -> None:
        k = values.shape[-1]
        tensor = Tensor(name, values.size // k, k)
        number_format = tensor_format(recipe, tensor, shape, pure=pure)
        if number_format == "F32":
            writer.add_tensor(name, values)
        else:
            kind = gguf.GGMLQuantizationType[number_format]
            writer.add_tensor(name, quantised_rows(values, number_format), raw_dtype=kind)

    _rewrite(source, target, RECIPES[recipe][1], write)


def quantise(source: Path, target: Path, recipe: str, *, peer: str, pure: bool = False) -> None:
    """Let llama.cpp write the F32 file `source` in the recipe, as `llama-quantize` does.

    `peer` is an interpreter with llama-cpp-python: the wheel xllamacpp has no whole quantiser.
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
