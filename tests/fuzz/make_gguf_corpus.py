"""Writes the small valid files of tests/fuzz/corpus/gguf, with the `gguf` package.

    python tests/fuzz/make_gguf_corpus.py [FOLDER]

Each file holds what the format allows in one respect; together they reach every branch of the
parser that accepts something. The files are committed, so that fuzzing needs no Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType

FOLDER = Path(__file__).parent / "corpus" / "gguf"

INTEGERS: dict[GGUFValueType, Any] = {
    GGUFValueType.UINT8: np.uint8,
    GGUFValueType.INT8: np.int8,
    GGUFValueType.UINT16: np.uint16,
    GGUFValueType.INT16: np.int16,
    GGUFValueType.UINT32: np.uint32,
    GGUFValueType.INT32: np.int32,
    GGUFValueType.UINT64: np.uint64,
    GGUFValueType.INT64: np.int64,
}
FLOATS = {GGUFValueType.FLOAT32: np.float32, GGUFValueType.FLOAT64: np.float64}


def add_scalars(writer: gguf.GGUFWriter) -> None:
    for value_type, dtype in INTEGERS.items():
        limits = np.iinfo(dtype)
        for name, value in (("low", limits.min), ("high", limits.max), ("seven", 7)):
            writer.add_key_value(f"{value_type.name.lower()}.{name}", int(value), value_type)
    for value_type in FLOATS:
        for name, number in (("half", 0.5), ("infinite", np.inf), ("nan", np.nan), ("tiny", 1e-45)):
            writer.add_key_value(f"{value_type.name.lower()}.{name}", number, value_type)
    writer.add_bool("bool.yes", True)
    writer.add_bool("bool.no", False)
    writer.add_string("string.word", "akunu")
    writer.add_string("string.far", "日本語 🦙 \u0301")
    writer.add_string("string.zero", "a\0b")
    writer.add_key_value("string.empty", "", GGUFValueType.STRING)
    writer.add_key_value("string.no_utf8", b"\xff\xfe\xc3", GGUFValueType.STRING)


def add_arrays(writer: gguf.GGUFWriter) -> None:
    for value_type, dtype in INTEGERS.items():
        limits = np.iinfo(dtype)
        numbers = [int(limits.min), 0, 7, int(limits.max)]
        writer.add_key_value(
            f"array.{value_type.name.lower()}", numbers, GGUFValueType.ARRAY, value_type
        )
    for value_type in FLOATS:
        writer.add_key_value(
            f"array.{value_type.name.lower()}",
            [0.5, -1.0, np.inf, np.nan],
            GGUFValueType.ARRAY,
            value_type,
        )
    writer.add_array("array.bool", [True, False, True])
    writer.add_array("array.string", ["", "a", "bc", "a\0b", "日本語"])


def add_vocabulary(writer: gguf.GGUFWriter) -> None:
    tokens = ["<unk>", "<s>", "</s>", *"abcdefghij", "ab", "cd", "▁a"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([float(-i) for i in range(len(tokens))])
    writer.add_token_types([2, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(["a b", "c d", "▁ a"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def add_model(writer: gguf.GGUFWriter) -> None:
    writer.add_block_count(1)
    writer.add_context_length(16)
    writer.add_embedding_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    add_vocabulary(writer)
    writer.add_tensor("token_embd.weight", np.arange(19 * 32, dtype=np.float16).reshape(19, 32))
    writer.add_tensor("output_norm.weight", np.ones(32, dtype=np.float32))


def add_block_types(writer: gguf.GGUFWriter) -> None:
    for tensor_type, (_, n_bytes) in gguf.GGML_QUANT_SIZES.items():
        block = np.arange(n_bytes, dtype=np.uint8)[None]
        writer.add_tensor(tensor_type.name, block, raw_dtype=tensor_type)


def add_shapes(writer: gguf.GGUFWriter) -> None:
    for n_dims in range(5):
        shape = (2, 3, 1, 5)[:n_dims]
        writer.add_tensor(f"dims{n_dims}", np.full(shape, n_dims, dtype=np.float32))
    blocks = np.arange(3 * 2 * 34, dtype=np.uint8).reshape(3, 2 * 34)
    writer.add_tensor("q8_0", blocks, raw_dtype=GGMLQuantizationType.Q8_0)


def add_aligned(writer: gguf.GGUFWriter, alignment: int) -> None:
    writer.add_custom_alignment(alignment)
    writer.add_tensor("one", np.arange(3, dtype=np.int8))
    writer.add_tensor("two", np.arange(5, dtype=np.float64))


def write(path: Path, add: Callable[[gguf.GGUFWriter], None]) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    add(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "scalars.gguf", add_scalars)
    write(folder / "arrays.gguf", add_arrays)
    write(folder / "vocabulary.gguf", add_vocabulary)
    write(folder / "model.gguf", add_model)
    write(folder / "block_types.gguf", add_block_types)
    write(folder / "shapes.gguf", add_shapes)
    write(folder / "alignment_8.gguf", lambda writer: add_aligned(writer, 8))
    write(folder / "alignment_256.gguf", lambda writer: add_aligned(writer, 256))
    # What the package does not write: version 2, the least file there is, and an empty array.
    version_3 = (folder / "model.gguf").read_bytes()
    (folder / "version_2.gguf").write_bytes(
        version_3[:4] + (2).to_bytes(4, "little") + version_3[8:]
    )
    header = b"GGUF" + (3).to_bytes(4, "little")
    (folder / "least.gguf").write_bytes(header + bytes(16))
    empty_array = b"\x05" + bytes(7) + b"empty" + b"\x09\0\0\0" + b"\x08\0\0\0" + bytes(8)
    (folder / "empty_array.gguf").write_bytes(
        header + bytes(8) + (1).to_bytes(8, "little") + empty_array
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
