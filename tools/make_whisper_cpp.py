"""Writes a Whisper model's directory as a file of whisper.cpp.

    python -m tools.make_whisper_cpp whisper-tiny.en ggml-tiny.en.bin [--type Q5_0]

Types are F32, F16 (the default) and those with blocks of 32 that whisper.cpp's quantiser makes.
As there, convolutions stay F16 (or F32), and position embeddings, norms and biases F32. It needs
nothing but the package; what reads the files besides akunu is whisper.cpp.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.convert.float_values import as_bytes, as_floats
from akunu.speech.mel import mel_filters
from akunu.tokenizers.pretokenizers import byte_alphabet

MAGIC: Final = 0x67676D6C
FILE_TYPES: Final = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9}
"""ggml's numbers of files of mostly one type."""
TENSOR_TYPES: Final = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8}
VERSION_OF_BLOCKS: Final = 2000
TAPS: Final = 3

Rows = Callable[[str, NDArray[np.float32], str], bytes]
"""Makes the bytes of a matrix [rows, k] in a type; the first argument is its name."""

_MODEL_NAMES: Final = {
    "token_embedding": "decoder.token_embedding",
    "position_embedding": "decoder.positional_embedding",
    "output_norm": "decoder.ln",
    "encoder.conv1": "encoder.conv1",
    "encoder.conv2": "encoder.conv2",
    "encoder.position_embedding": "encoder.positional_embedding",
    "encoder.output_norm": "encoder.ln_post",
}
_PARTS: Final = {
    "attention_norm": "attn_ln",
    "cross_norm": "cross_attn_ln",
    "ffn_norm": "mlp_ln",
    "ffn.up": "mlp.0",
    "ffn.down": "mlp.2",
    **{
        f"attention.{a}": f"attn.{b}"
        for a, b in zip("q k v output".split(), "query key value out".split(), strict=True)
    },
    **{
        f"cross.{a}": f"cross_attn.{b}"
        for a, b in zip("q k v output".split(), "query key value out".split(), strict=True)
    },
}


def openai_name(canonical: str) -> str:
    """Return the name of a tensor in whisper.cpp's files.

    >>> openai_name("encoder.layers.2.attention.q.weight")
    'encoder.blocks.2.attn.query.weight'
    """
    stem, _, suffix = canonical.rpartition(".")
    found = re.fullmatch(r"(encoder\.)?layers\.(\d+)\.(.+)", stem)
    if found is not None:
        side = "decoder" if found[1] is None else "encoder"
        return f"{side}.blocks.{found[2]}.{_PARTS[found[3]]}.{suffix}"
    name = _MODEL_NAMES[stem]
    return name if name.endswith("positional_embedding") else f"{name}.{suffix}"


def words_of(directory: Path) -> list[bytes]:
    """Return the bytes of each word before the first special token."""
    described = json.loads((directory / "tokenizer.json").read_text("utf-8"))
    vocabulary: dict[str, int] = described["model"]["vocab"]
    added = {each["content"]: each["id"] for each in described["added_tokens"]}
    first = added["<|endoftext|>"]
    by_letter = {letter: byte for byte, letter in enumerate(byte_alphabet())}
    words = [b""] * first
    for text, index in vocabulary.items():
        if index < first:
            words[index] = bytes([by_letter[letter] for letter in text])
    return words


def akunus_rows(name: str, values: NDArray[np.float32], type_name: str) -> bytes:
    """Quantise rows by akunu's own quantiser."""
    rows, k = values.shape
    return _core.quantize(
        name, as_bytes(values, "F32"), "F32", (rows, k), type_name, importance=None, threads=1
    ).tobytes()


def write(directory: Path, target: Path, type_name: str, rows: Rows = akunus_rows) -> None:
    """Write the file; `rows` makes those of a quantised type."""
    source = _core.ModelSource(directory)
    numbers, audio = source.config, source.config["audio"]
    layers, audio_layers = numbers["described"]["layers"], audio["layers"]
    file_type = FILE_TYPES[type_name]
    is_plain = type_name in ("F32", "F16")
    words = words_of(directory)
    filters = mel_filters(audio["n_mels"])
    with target.open("wb") as file:
        file.write(
            struct.pack(
                "<12i",
                MAGIC,
                numbers["vocab_size"],
                audio["n_positions"],
                numbers["dim"],
                audio_layers[0]["n_heads"],
                len(audio_layers),
                numbers["context_length"],
                numbers["dim"],
                layers[0]["n_heads"],
                len(layers),
                audio["n_mels"],
                file_type if is_plain else VERSION_OF_BLOCKS + file_type,
            )
        )
        file.write(struct.pack("<2i", *filters.shape) + filters.tobytes())
        file.write(struct.pack("<i", len(words)))
        for word in words:
            file.write(struct.pack("<I", len(word)) + word)
        for tensor in source.tensors:
            name = openai_name(tensor.name)
            values = as_floats(tensor.parts[0], tensor.format.upper()).reshape(tensor.shape)
            kind = "F32"
            if name.startswith("encoder.conv"):
                kind = "F16" if type_name != "F32" and values.ndim == 2 else "F32"
                last = TAPS if values.ndim == 2 else 1  # biases are columns
                values = values.reshape(len(values), -1, last) if last == TAPS else values[:, None]
            elif values.ndim == 2 and not name.endswith("positional_embedding"):
                kind = type_name
            dims = values.shape[::-1]
            file.write(struct.pack("<3i", len(dims), len(name), TENSOR_TYPES[kind]))
            file.write(struct.pack(f"<{len(dims)}i", *dims) + name.encode())
            plain = kind in ("F32", "F16")
            file.write(as_bytes(values, kind).tobytes() if plain else rows(name, values, kind))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--type", default="F16", choices=FILE_TYPES, dest="type_name")
    given = parser.parse_args()
    write(given.directory, given.target, given.type_name)


if __name__ == "__main__":
    main()
