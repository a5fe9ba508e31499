"""Whole models with one thing wrong: every one is refused by name, with the place and the reason.

What is wrong with the file as such is in test_gguf_refusals.py; here the file is sound and the
model in it is not.
"""

from __future__ import annotations

import itertools
import math
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf_support import file_of, string, tensor, u32, value

from akunu import LoadOptions, SamplingOptions, _core
from akunu.errors import (
    AkunuError,
    ArgumentError,
    DeviceError,
    ModelFormatError,
    UnsupportedModelError,
)
from akunu.storage.native_load import begin_load
from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.block_formats import FORMATS, Blocks, random_blocks

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
DIM, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCABULARY = 32, 4, 2, 8, 256, 10

Values = dict[str, tuple[int, bytes]]
Tensors = dict[str, tuple[list[int], int, bytes]]  # dimensions as the file has them, type, data


def f32(number: float) -> bytes:
    return struct.pack("<f", number)


def tokens_of(count: int) -> tuple[int, bytes]:
    names = b"".join(string(f"t{i}") for i in range(count))
    return ARRAY, u32(STRING) + struct.pack("<Q", count) + names


def sound_values() -> Values:
    return {
        "general.architecture": (STRING, string("llama")),
        "llama.embedding_length": (U32, u32(DIM)),
        "llama.block_count": (U32, u32(1)),
        "llama.attention.head_count": (U32, u32(HEADS)),
        "llama.attention.head_count_kv": (U32, u32(KV_HEADS)),
        "llama.feed_forward_length": (U32, u32(FFN)),
        "llama.context_length": (U32, u32(64)),
        "llama.attention.layer_norm_rms_epsilon": (F32, f32(1e-5)),
        "llama.rope.freq_base": (F32, f32(10000.0)),
        "llama.rope.dimension_count": (U32, u32(HEAD_DIM)),
        "tokenizer.ggml.tokens": tokens_of(VOCABULARY),
    }


def matrix(rows: int, k: int, dtype: type = np.float32) -> tuple[list[int], int, bytes]:
    stream = np.random.RandomState(rows * 1000 + k)
    data = (stream.standard_normal((rows, k)) / 8).astype(dtype)
    return [k, rows], 0 if dtype is np.float32 else 1, data.tobytes()


def vector(n: int, fill: float = 1.0) -> tuple[list[int], int, bytes]:
    return [n], 0, np.full(n, fill, np.float32).tobytes()


def sound_tensors() -> Tensors:
    shapes = {
        "attn_q": (HEADS * HEAD_DIM, DIM),
        "attn_k": (KV_HEADS * HEAD_DIM, DIM),
        "attn_v": (KV_HEADS * HEAD_DIM, DIM),
        "attn_output": (DIM, HEADS * HEAD_DIM),
        "ffn_gate": (FFN, DIM),
        "ffn_up": (FFN, DIM),
        "ffn_down": (DIM, FFN),
    }
    return {
        "token_embd.weight": matrix(VOCABULARY, DIM),
        "output_norm.weight": vector(DIM),
        "output.weight": matrix(VOCABULARY, DIM),
        "blk.0.attn_norm.weight": vector(DIM),
        "blk.0.ffn_norm.weight": vector(DIM),
        **{f"blk.0.{name}.weight": matrix(*shape) for name, shape in shapes.items()},
    }


def model_of(values: Values, tensors: Tensors) -> bytes:
    descriptions, data = [], b""
    for name, (dims, tensor_type, content) in tensors.items():
        descriptions.append(tensor(name, dims, tensor_type, offset=len(data)))
        data += content + bytes(-len(content) % 32)
    return file_of([value(key, *typed) for key, typed in values.items()], descriptions, data)


def load(path: Path, context: int = 32) -> _core.NativeModel:
    options = LoadOptions(
        device="cpu", context=context, threads=1, kv_type="f32", prefix_cache=False
    )
    return begin_load(path, options).result()


def test_the_model_is_sound_before_anything_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(sound_values(), sound_tensors()))
    logits = load(path).logits(np.array([1, 2, 3], np.uint32))
    assert logits.shape == (3, VOCABULARY)
    assert np.isfinite(logits).all()


Change = Callable[[Values, Tensors], object]
FORMAT, UNSUPPORTED = ModelFormatError, UnsupportedModelError


def sets(key: str, value_type: int, payload: bytes) -> Change:
    return lambda values, tensors: values.__setitem__(key, (value_type, payload))


def lacks(key: str) -> Change:
    return lambda values, tensors: values.pop(key)


def replaces(name: str, new: tuple[list[int], int, bytes]) -> Change:
    return lambda values, tensors: tensors.__setitem__(name, new)


def q4_0(rows: int, k: int) -> tuple[list[int], int, bytes]:
    return [k, rows], 2, bytes(rows * k // 32 * 18)


BAD_NUMBERS: dict[str, tuple[Change, type[AkunuError], str]] = {
    f"{key} {name}": (sets(f"llama.{key}", value_type, payload), error, message)
    for key, name, value_type, payload, error, message in [
        ("attention.head_count", "0", U32, u32(0), FORMAT, "attention.head_count is 0"),
        ("attention.head_count", "huge", U64, b"\xff" * 8, FORMAT, "out of any sensible range"),
        ("attention.head_count", "of text", STRING, string("4"), FORMAT, "is STRING, wanted"),
        ("attention.head_count", "negative", I32, u32(2**32 - 4), FORMAT, "is -4, wanted"),
        ("attention.head_count", "of 2 layers", ARRAY, u32(U32) + struct.pack("<QII", 2, 4, 4),
         FORMAT, "head_count has 2 entries for 1 layers"),
        ("attention.head_count", "negative in a list", ARRAY, u32(I32) + struct.pack("<Qi", 1, -4),
         FORMAT, "head_count holds -4, which is out of any sensible range"),
        ("attention.head_count", "a list of text", ARRAY,
         u32(STRING) + struct.pack("<Q", 1) + string("4"), FORMAT, "array of 1 STRING, wanted"),
        ("attention.head_count", "too many", U32, u32(8), FORMAT, "rotary .* 8; .* dimension, 4"),
        ("attention.head_count_kv", "0", U32, u32(0), FORMAT, "key/value heads.* 0"),
        ("attention.head_count_kv", "not dividing", U32, u32(3), FORMAT, "4 heads cannot share 3"),
        ("attention.head_count_kv", "above heads", U32, u32(8), FORMAT, "4 heads cannot share 8"),
        ("attention.key_length", "0", U32, u32(0), FORMAT, "head dimension"),
        ("attention.key_length", "odd", U32, u32(7), FORMAT, "rotary dimension is 8"),
        ("attention.value_length", "another", U32, u32(16), UNSUPPORTED, "value_length is 16"),
        ("rope.dimension_count", "0", U32, u32(0), FORMAT, "rotary dimension is 0"),
        ("rope.dimension_count", "odd", U32, u32(7), FORMAT, "rotary dimension is 7; .* even"),
        ("rope.dimension_count", "too large", U32, u32(10), FORMAT, "most the head dimension, 8"),
        ("rope.freq_base", "0", F32, f32(0.0), FORMAT, "rotary base is 0"),
        ("rope.freq_base", "negative", F32, f32(-1.0), FORMAT, "rotary base is -1"),
        ("rope.freq_base", "NaN", F32, f32(math.nan), FORMAT, "rope.freq_base is NaN"),
        ("rope.freq_base", "infinite", F32, f32(math.inf), FORMAT, "freq_base is infinite"),
        ("rope.scale_linear", "negative", F32, f32(-2.0), FORMAT, "rotary scaling factor is -2"),
        ("rope.scaling.factor", "of text", STRING, string("4"), FORMAT, "is STRING, wanted"),
        ("attention.layer_norm_rms_epsilon", "NaN", F32, f32(math.nan), FORMAT, "epsilon is NaN"),
        ("attention.layer_norm_rms_epsilon", "0", F32, f32(0.0), FORMAT, "epsilon is 0"),
        ("attention.layer_norm_rms_epsilon", "negative", F32, f32(-1.0), FORMAT, "epsilon is -1"),
        ("attention.layer_norm_rms_epsilon", "infinite", F32, f32(math.inf), FORMAT, "is infinite"),
        ("context_length", "0", U32, u32(0), FORMAT, "context length, or says 0"),
        ("block_count", "0", U32, u32(0), FORMAT, "number of layers, or says 0"),
        ("block_count", "2 of 1", U32, u32(2), FORMAT, r"layers\.1\..* is missing"),
        ("block_count", "2 billion", U32, u32(2**31 - 1), FORMAT, "2147483647; the file has 12 t"),
        ("embedding_length", "0", U32, u32(0), FORMAT, "embedding length, or says 0"),
        ("embedding_length", "another", U32, u32(64), FORMAT, r"\[10, 32\]; .* for \[10, 64\]"),
        ("feed_forward_length", "0", U32, u32(0), FORMAT, "feed-forward length, or says 0"),
        ("feed_forward_length", "another", U32, u32(96), FORMAT, r"ffn\.\w+\.weight is \["),
        ("feed_forward_length", "of no layer", ARRAY, u32(U32) + struct.pack("<Q", 0), FORMAT,
         "feed_forward_length has 0 entries for 1 layers"),
        ("feed_forward_length", "0 in a list", ARRAY, u32(U32) + struct.pack("<QI", 1, 0), FORMAT,
         "feed-forward length, or says 0"),
        ("rope.scaling.type", "unknown", STRING, string("yarn\n"), UNSUPPORTED, r"is 'yarn\\x0a'"),
        ("rope.scaling.type", "a number", U32, u32(1), FORMAT, "wanted a STRING"),
    ]
}  # fmt: skip

BAD_MODELS: dict[str, tuple[Change, type[AkunuError], str]] = {
    **BAD_NUMBERS,
    "attention.head_count 2^16 of 2^16": (
        lambda values, tensors: (
            sets("llama.attention.head_count", U32, u32(2**16))(values, tensors),
            sets("llama.attention.head_count_kv", U32, u32(2**16))(values, tensors),
            sets("llama.attention.key_length", U32, u32(2**16))(values, tensors),
        ),
        FORMAT,
        "65536 heads of 65536 numbers are beyond",
    ),
    "no architecture": (lacks("general.architecture"), FORMAT, "general.architecture is missing"),
    "architecture that is a number": (
        sets("general.architecture", U32, u32(1)),
        FORMAT,
        "general.architecture is UINT32, wanted a STRING",
    ),
    "unknown architecture": (
        sets("general.architecture", STRING, string("mamba\t")),
        UNSUPPORTED,
        r"general.architecture is 'mamba\\x09'; akunu has bert",
    ),
    "architecture without its keys": (
        sets("general.architecture", STRING, string("qwen2")),
        FORMAT,
        "the key qwen2.embedding_length is missing",
    ),
    "vocabulary shorter than the embedding": (
        sets("tokenizer.ggml.tokens", *tokens_of(VOCABULARY - 1)),
        FORMAT,
        "the vocabulary has 9 tokens, tensor token_embd.weight has 10 rows",
    ),
    "vocabulary longer than the embedding": (
        sets("tokenizer.ggml.tokens", *tokens_of(VOCABULARY + 1)),
        FORMAT,
        "the vocabulary has 11 tokens, tensor token_embd.weight has 10 rows",
    ),
    "vocabulary that is no array": (
        sets("tokenizer.ggml.tokens", U32, u32(10)),
        FORMAT,
        "tokenizer.ggml.tokens is UINT32, wanted an array",
    ),
    "output shorter than the embedding": (
        replaces("output.weight", matrix(VOCABULARY - 1, DIM)),
        FORMAT,
        r"output.weight is \[9, 32\]; .* \[10, 32\]",
    ),
    "embedding with one dimension": (
        replaces("token_embd.weight", vector(VOCABULARY * DIM)),
        FORMAT,
        "token_embd.weight is not",
    ),
    "norm of another length": (
        replaces("blk.0.attn_norm.weight", vector(DIM - 1)),
        FORMAT,
        r"layers.0.attention_norm.weight is \[1, 31\]|attention_norm.weight",
    ),
    "bias of another length": (
        replaces("blk.0.attn_q.bias", vector(3)),
        FORMAT,
        "attention.q.bias",
    ),
    "tensor of a layer beyond the last": (
        replaces("blk.1.ffn_up.weight", matrix(FFN, DIM)),
        FORMAT,
        "there are tensors of layer 1, but only 1 layers",
    ),
    "one tensor under two names": (
        replaces("blk.00.ffn_up.weight", matrix(FFN, DIM)),
        FORMAT,
        "blk.00.ffn_up.weight is layers.0.ffn.up.weight, which the file has under another name",
    ),
    "unknown tensor": (
        replaces("blk.0.ssm_x.weight", matrix(DIM, DIM)),
        UNSUPPORTED,
        "tensor blk.0.ssm_x.weight is not one that akunu knows",
    ),
    "unknown tensor with a wild name": (
        replaces("x\n\x1b[31m", vector(1)),
        UNSUPPORTED,
        r"tensor x\\x0a\\x1b\[31m is not one",
    ),
    "tensor with three dimensions": (
        replaces("blk.0.ffn_up.weight", ([DIM, FFN, 1], 0, bytes(4 * DIM * FFN))),
        UNSUPPORTED,
        "ffn_up.weight has 3 dimensions",
    ),
    "tensor without dimensions": (
        replaces("output_norm.weight", ([], 0, bytes(4))),
        UNSUPPORTED,
        "output_norm.weight has 0 dimensions",
    ),
    "number format that akunu does not have": (
        replaces("blk.0.ffn_up.weight", ([DIM, FFN], 26, bytes(4 * DIM * FFN))),
        UNSUPPORTED,
        "ffn_up.weight has the number format I32; akunu has",
    ),
    "quantised norm": (
        replaces("output_norm.weight", ([DIM], 2, bytes(18))),
        UNSUPPORTED,
        "output_norm.weight is one-dimensional and quantised",
    ),
    "rope factors of another length": (
        replaces("rope_freqs.weight", vector(HEAD_DIM)),
        FORMAT,
        "rope_freqs.weight has 8 factors; the rotary dimension 8 asks for 4",
    ),
    "rope factors with NaN": (
        replaces("rope_freqs.weight", vector(HEAD_DIM // 2, math.nan)),
        FORMAT,
        "rope_freqs.weight holds nan at 0; factors must be positive",
    ),
    "no tensors": (lambda values, tensors: tensors.clear(), FORMAT, "holds a vocabulary only"),
    **{
        f"without {key}": (lacks(key), FORMAT, f"the key {key} is missing")
        for key in sound_values()
        if key.startswith("llama.") and "rope" not in key and "head_count_kv" not in key
    },
    **{
        f"without {name}": (
            lambda values, tensors, name=name: tensors.pop(name),
            FORMAT,
            r"\.weight is missing",
        )
        for name in sound_tensors()
        if name != "output.weight"  # then it is the embedding
    },
    **{
        f"{name} the other way round": (
            lambda values, tensors, name=name: tensors[name][0].reverse(),
            FORMAT,
            r"is \[\d+, \d+\]|is not \[|has \d+ rows",
        )
        for name, (dims, _, _) in sound_tensors().items()
        if len(set(dims)) == 2
    },
}


@each_line("name", list(BAD_MODELS))
def test_what_is_wrong_with_a_model_is_named(name: str, tmp_path: Path) -> None:
    change, error_type, message = BAD_MODELS[name]
    values, tensors = sound_values(), sound_tensors()
    change(values, tensors)
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(values, tensors))
    with pytest.raises(error_type, match=message) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert text.isprintable()
    # Every architecture that there is has its place in one of these messages.
    assert len(text) < len(str(path)) + (600 if name == "unknown architecture" else 300)


# What a file may say of itself and nothing computes with: it must not stop a load.
@each_line(
    ("change", "note"),
    [
        (sets("general.name", STRING, struct.pack("<Q", 3) + b"a\xffb"), ""),
        (sets("general.name", U32, u32(7)), "general.name is ignored: it is no text"),
        (sets("llama.context_length", U32, u32(2**31 - 1)), "context reduced from 2147483647 to "),
        (
            sets("llama.context_length", U64, struct.pack("<Q", 2**63)),
            "llama.context_length is 9223372036854775808, which is out of any sensible range; it "
            "is taken as 2147483647",
        ),
    ],
    ids=["name-of-bytes", "name-of-a-number", "context-of-2-billion", "context-beyond-32-bits"],
)
def test_what_nothing_computes_with_is_noted_and_stops_no_load(
    change: Change, note: str, tmp_path: Path
) -> None:
    values, tensors = sound_values(), sound_tensors()
    change(values, tensors)
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(values, tensors))
    options = LoadOptions(device="cpu", context=None, threads=1, kv_type="f32")
    model = begin_load(path, options).result()
    assert any(said.startswith(note) for said in model.notes) if note else not model.notes
    assert model.config["name"].isprintable()
    assert model.context > 32
    assert np.isfinite(model.logits(np.array([1, 2, 3], np.uint32))).all()


def test_a_name_that_is_not_utf_8_is_shown_as_what_its_bytes_are(tmp_path: Path) -> None:
    values = sound_values()
    values["general.name"] = (STRING, struct.pack("<Q", 4) + b"a\xffb\x1b")
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(values, sound_tensors()))
    assert load(path).config["name"] == r"a\xffb\x1b"


def test_of_a_context_that_is_too_long_as_much_is_kept_as_fits(tmp_path: Path) -> None:
    """All of the tokens' log that a context of 10^8 would have is not taken from what is left."""
    values = sound_values()
    values["llama.context_length"] = (U32, u32(10**8))
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(values, sound_tensors()))
    page = 256 * KV_HEADS * HEAD_DIM * 2 * 4  # bytes: one layer's keys and values in float32
    options = LoadOptions(device="cpu", threads=1, kv_type="f32", kv_memory=10 * page)
    assert begin_load(path, options).result().context == 10 * 256


def section_ends() -> Iterator[tuple[str, int]]:
    """Where the sections of the sound model end, in bytes from the start of the file."""
    values, tensors = sound_values(), sound_tensors()
    at = 0
    for name, size in (("the magic", 4), ("the version", 4), ("a count", 8), ("the counts", 8)):
        at += size
        yield name, at
    for key, typed in values.items():
        at += len(value(key, *typed))
        yield f"value {key}", at
    for name, (dims, tensor_type, _) in tensors.items():
        at += len(tensor(name, dims, tensor_type))
        yield f"description of {name}", at
    at += -at % 32
    yield "the padding", at
    for name, (_, _, data) in tensors.items():
        at += len(data) + -len(data) % 32
        yield f"data of {name}", at


def test_a_model_cut_at_the_end_of_any_section_is_refused(tmp_path: Path) -> None:
    content = model_of(sound_values(), sound_tensors())
    ends = list(section_ends())
    assert ends[-1][1] == len(content)
    path = tmp_path / "model.gguf"
    for (name, end), shift in itertools.product(ends[:-1], (-1, 0, 1)):
        path.write_bytes(content[: end + shift])
        with pytest.raises(ModelFormatError, match=r"model\.gguf, byte \d+: .*(left|which has)"):
            load(path)
        assert name
    path.write_bytes(content)
    load(path)


@each_line("number", [math.nan, math.inf, -math.inf], ids=str)
@each_line(
    "name", ["token_embd.weight", "blk.0.ffn_gate.weight", "output.weight", "output_norm.weight"]
)
def test_numbers_that_are_none_end_the_text_with_an_error(
    name: str, number: float, tmp_path: Path
) -> None:
    tensors = sound_tensors()
    dims, tensor_type, data = tensors[name]
    tensors[name] = (dims, tensor_type, np.full(len(data) // 4, number, np.float32).tobytes())
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(sound_values(), tensors))
    model = load(path)  # numbers are not looked at before they are used
    with pytest.raises(DeviceError, match=r"position \d+: .*(NaN|-inf)"):
        generate(model)


def damaged_blocks(name: str, part: str, value: float) -> Blocks:
    """Sound rows for ffn_down, and one half of one block in the middle that is no number."""
    blocks = random_blocks(name, DIM, FFN, np.random.default_rng(1), size=0.1)
    {"d": blocks.d, "m": blocks.m}[part][DIM // 2, -1] = value
    return blocks


@each_line("half", [math.nan, math.inf, -math.inf], ids=str)
@each_line(
    ("name", "part"),
    [(name, "d") for name in FORMATS if not name.endswith("fp4")]  # those have no halves
    + [(name, "m") for name, made in FORMATS.items() if made.minimum_sign],
)
def test_a_half_of_a_block_that_is_no_number_ends_the_text_with_an_error(
    name: str, part: str, half: float, tmp_path: Path
) -> None:
    tensors = sound_tensors()
    blocks = damaged_blocks(name, part, half)
    tensors["blk.0.ffn_down.weight"] = ([FFN, DIM], blocks.format.number, blocks.data.tobytes())
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(sound_values(), tensors))
    with pytest.raises(DeviceError, match=r"position \d+: .*NaN"):
        generate(load(path))


@each_line("name", ["F16", "BF16"])
@each_line("number", [math.nan, math.inf], ids=str)
def test_a_short_float_that_is_no_number_ends_the_text_with_an_error(
    name: str, number: float, tmp_path: Path
) -> None:
    tensors = sound_tensors()
    values = np.full((DIM, FFN), 0.125, np.float32)
    values[DIM // 2, -1] = number
    kind = gguf.GGMLQuantizationType[name]
    data = gguf.quants.quantize(values, kind).tobytes()
    tensors["blk.0.ffn_down.weight"] = ([FFN, DIM], kind, data)
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(sound_values(), tensors))
    with pytest.raises(DeviceError, match=r"position \d+: .*NaN"):
        generate(load(path))


def generate(model: _core.NativeModel) -> list[int]:
    generation = model.start(
        np.array([1, 2, 3], np.uint32),
        max_tokens=4,
        stop_ids=[],
        sampling=SamplingOptions().packed(seed=0),
        logit_bias={},
    )
    tokens: list[int] = []
    while (new := generation.next(timeout_ms=1000)) is not None:
        tokens += new
    return tokens


def test_the_context_that_is_asked_for_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(model_of(sound_values(), sound_tensors()))
    with pytest.raises(ArgumentError, match="context is 0"):
        load(path, context=0)
