"""Writes the small whole models of tests/fuzz/corpus/model, with the `gguf` package.

    python tests/fuzz/make_model_corpus.py [FOLDER]

One layer each, of 32 numbers: every architecture, every place where a file may say more than it
must, the number formats with small blocks, a split model (its files one behind the other), and the
beginnings of files that are no models. The files are committed, so that fuzzing needs no Python.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize

FOLDER = Path(__file__).parent / "corpus" / "model"
DIM = 32
VOCABULARY = 8

FOREIGN = {
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
    "html": b"<!doctype html><html>",
    "json": b'{"error":"no"}',
    "safetensors": b"\x10" + bytes(7) + b'{"__metadata__":{}}',
    "zip": b"PK\x03\x04" + bytes(26) + b"archive/data.pkl",
    "ggjt": b"tjgg\x03\0\0\0",
    "gzip": b"\x1f\x8b\x08",
}


def add_numbers(writer: gguf.GGUFWriter, more: bool) -> None:
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(DIM)
    writer.add_feed_forward_length(DIM)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    if more:
        writer.add_rope_freq_base(10000.0)
        writer.add_rope_dimension_count(DIM // 2)
        writer.add_key_length(DIM // 2)
        writer.add_value_length(DIM // 2)
        writer.add_string(f"{writer.arch}.rope.scaling.type", "linear")
        writer.add_float32(f"{writer.arch}.rope.scaling.factor", 2.0)
        writer.add_uint32(f"{writer.arch}.attention.sliding_window", 64)
        writer.add_uint32(f"{writer.arch}.expert_count", 0)
        writer.add_float32(f"{writer.arch}.logit_scale", 1.0)
        writer.add_bool(f"{writer.arch}.attention.causal", True)


def add_neutral_values(writer: gguf.GGUFWriter) -> None:
    """Keys that change nothing as long as they say this."""
    writer.add_name("corpus")
    writer.add_float32(f"{writer.arch}.attention.scale", (DIM // 2) ** -0.5)
    writer.add_float32(f"{writer.arch}.final_logit_softcapping", 0.0)
    writer.add_float32(f"{writer.arch}.rope.scaling.attn_factor", 1.0)
    writer.add_float32(f"{writer.arch}.rope.scale_linear", 2.0)


def add_tensors(
    writer: gguf.GGUFWriter,
    types: list[Type],
    *,
    biases: bool,
    ffn_biases: bool,
    norms: bool,
    tied: bool,
    fused: bool,
) -> None:
    stream = np.random.RandomState(1)
    matrices = 0

    def matrix(name: str, rows: int) -> None:
        nonlocal matrices
        tensor_type = types[matrices % len(types)]
        matrices += 1
        values = stream.standard_normal((rows, DIM)).astype(np.float32) / 6
        writer.add_tensor(name, quantize(values, tensor_type), raw_dtype=tensor_type)

    def vector(name: str, n: int = DIM, dtype: Any = np.float32) -> None:
        writer.add_tensor(name, np.ones(n, dtype))

    matrix("token_embd.weight", VOCABULARY)
    vector("output_norm.weight")
    if not tied:
        matrix("output.weight", VOCABULARY)
    for name in ("attn_norm", "ffn_norm"):
        vector(f"blk.0.{name}.weight", dtype=np.float16 if norms else np.float32)
    if fused:  # and what is left out
        matrix("blk.0.attn_qkv.weight", 2 * DIM)
        vector("blk.0.attn_qkv.bias", 2 * DIM, np.float16)
        matrix("blk.0.ffn_up.weight", 2 * DIM)
        matrix("blk.0.attn_output.weight", DIM)
        matrix("blk.0.ffn_down.weight", DIM)
        vector("blk.0.attn_rot_embd.weight", DIM // 4)
        vector("v.patch_embd.bias")
        return
    for name, rows in (("q", DIM), ("k", DIM // 2), ("v", DIM // 2)):
        matrix(f"blk.0.attn_{name}.weight", rows)
        if biases:
            vector(f"blk.0.attn_{name}.bias", rows)
        if norms and name != "v":
            vector(f"blk.0.attn_{name}_norm.weight", DIM // 2)
    for name in ("attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        matrix(f"blk.0.{name}.weight", DIM)
        if ffn_biases:
            vector(f"blk.0.{name}.bias")
    if tied:
        vector("rope_freqs.weight", DIM // 4)


def write(
    path: Path, architecture: str, types: list[Type], *, split: int = 0, **options: bool
) -> None:
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=split)
    add_numbers(writer, options.pop("more", False))
    if options.get("ffn_biases"):
        add_neutral_values(writer)
    add_tensors(
        writer,
        types,
        biases=options.get("biases", False),
        ffn_biases=options.get("ffn_biases", False),
        norms=options.get("norms", False),
        tied=options.get("tied", False),
        fused=options.get("fused", False),
    )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_whisper(path: Path) -> None:
    """One layer on each side, a window of four positions."""
    positions, bands = 4, 4
    stream = np.random.RandomState(2)
    writer = gguf.GGUFWriter(path, "whisper")
    for key, number in (
        *(("block_count", 1), ("context_length", 16), ("embedding_length", DIM)),
        *(("feed_forward_length", DIM), ("attention.head_count", 2)),
        *(("encoder.block_count", 1), ("encoder.context_length", positions)),
        *(("encoder.feed_forward_length", DIM), ("encoder.attention.head_count", 2)),
        ("encoder.mel_count", bands),
    ):
        writer.add_uint32(f"whisper.{key}", number)
    writer.add_float32("whisper.attention.layer_norm_epsilon", 1e-5)

    def matrix(name: str, *shape: int, tensor_type: Type = Type.F32) -> None:
        values = stream.standard_normal(shape).astype(np.float32) / 6
        writer.add_tensor(f"{name}.weight", quantize(values, tensor_type), raw_dtype=tensor_type)

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(DIM, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(DIM, np.float32))

    matrix("enc.conv1", DIM, bands, 3)
    matrix("enc.conv2", DIM, DIM, 3)
    matrix("enc.position_embd", positions, DIM)
    matrix("token_embd", VOCABULARY, DIM, tensor_type=Type.Q8_0)
    matrix("position_embd", 16, DIM)
    norm("enc.output_norm")
    norm("output_norm")
    for layer, parts in (("enc.blk.0", ("attn",)), ("blk.0", ("attn", "cross_attn"))):
        for part in parts:
            norm(f"{layer}.{part}_norm")
            for name in ("q", "k", "v", "output"):
                matrix(f"{layer}.{part}_{name}", DIM, DIM, tensor_type=Type.Q4_0)
        norm(f"{layer}.ffn_norm")
        matrix(f"{layer}.ffn_up", DIM, DIM, tensor_type=Type.Q5_0)
        matrix(f"{layer}.ffn_down", DIM, DIM, tensor_type=Type.F16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "llama.gguf", "llama", [Type.Q4_0], more=True)
    mixed = [Type.F32, Type.Q5_1, Type.F16, Type.BF16, Type.Q4_1, Type.Q5_0, Type.Q4_0]
    write(folder / "llama_tied.gguf", "llama", mixed, tied=True)
    write(folder / "llama_biases.gguf", "llama", [Type.Q4_0, Type.F16], ffn_biases=True)
    write(folder / "llama_fused.gguf", "llama", [Type.Q4_1, Type.F16], fused=True)
    write(folder / "qwen2.gguf", "qwen2", [Type.Q5_0], biases=True)
    write(folder / "qwen3.gguf", "qwen3", [Type.Q8_0, Type.Q4_0, Type.Q4_1], norms=True, more=True)
    write_whisper(folder / "whisper.gguf")
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary) / "model.gguf", "llama", [Type.Q4_0], split=4)
        parts = sorted(Path(temporary).iterdir())
        (folder / "split.gguf").write_bytes(b"".join(part.read_bytes() for part in parts))
    for name, content in FOREIGN.items():
        (folder / f"{name}.gguf").write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
