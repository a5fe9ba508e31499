"""`_core.GgufFile` against files that the `gguf` package writes, and files built byte by byte."""

from __future__ import annotations

import gc
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFValueType

from akunu import _core
from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "gguf"

NUMPY_TYPES: dict[GGUFValueType, Any] = {
    GGUFValueType.UINT8: np.uint8,
    GGUFValueType.INT8: np.int8,
    GGUFValueType.UINT16: np.uint16,
    GGUFValueType.INT16: np.int16,
    GGUFValueType.UINT32: np.uint32,
    GGUFValueType.INT32: np.int32,
    GGUFValueType.UINT64: np.uint64,
    GGUFValueType.INT64: np.int64,
    GGUFValueType.FLOAT32: np.float32,
    GGUFValueType.FLOAT64: np.float64,
    GGUFValueType.BOOL: np.bool_,
}

EXAMPLES: dict[GGUFValueType, list[Any]] = {
    value_type: [np.iinfo(dtype).min, 7, np.iinfo(dtype).max]
    if issubclass(dtype, np.integer)
    else [0.1, -np.inf, 1e-45]
    for value_type, dtype in NUMPY_TYPES.items()
    if dtype is not np.bool_
}
EXAMPLES[GGUFValueType.BOOL] = [True, False, True]

by_type = pytest.mark.parametrize("value_type", list(NUMPY_TYPES), ids=lambda each: each.name)

Write = Callable[[Callable[[gguf.GGUFWriter], None]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file with the `gguf` package; `add` puts in what it shall hold."""

    def write_file(add: Callable[[gguf.GGUFWriter], None]) -> Path:
        path = tmp_path / "written.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        add(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write_file


# Files byte by byte, independent of both readers.


def string(text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def u32(number: int) -> bytes:
    return struct.pack("<I", number)


def u64(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def value(key: str | bytes, value_type: int, payload: bytes) -> bytes:
    return string(key) + u32(value_type) + payload


def tensor(
    name: str | bytes,
    dims: list[int],
    tensor_type: int = 0,
    offset: int = 0,
    n_dims: int | None = None,
) -> bytes:
    count = len(dims) if n_dims is None else n_dims
    return string(name) + u32(count) + u64(*dims) + u32(tensor_type) + u64(offset)


def file_of(
    values: list[bytes] | None = None,
    tensors: list[bytes] | None = None,
    data: bytes = b"",
    *,
    version: int = 3,
    n_values: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    values, tensors = values or [], tensors or []
    n_values = len(values) if n_values is None else n_values
    n_tensors = len(tensors) if n_tensors is None else n_tensors
    head = b"GGUF" + u32(version) + u64(n_tensors, n_values) + b"".join(values + tensors)
    return head + bytes(-len(head) % alignment) + data if data else head


@pytest.fixture
def open_bytes(tmp_path: Path) -> Callable[[bytes], _core.GgufFile]:
    def open_file(content: bytes) -> _core.GgufFile:
        path = tmp_path / "small.gguf"
        path.write_bytes(content)
        return _core.GgufFile(path)

    return open_file


# Values


@by_type
def test_scalars_come_back_as_python_values(value_type: GGUFValueType, write: Write) -> None:
    def add(writer: gguf.GGUFWriter) -> None:
        for i, example in enumerate(EXAMPLES[value_type]):
            writer.add_key_value(f"key.{i}", example, value_type)

    file = _core.GgufFile(write(add))
    dtype = NUMPY_TYPES[value_type]
    for i, example in enumerate(EXAMPLES[value_type]):
        expected = dtype(example).item()
        assert file[f"key.{i}"] == expected
        assert type(file[f"key.{i}"]) is type(expected)


@by_type
def test_arrays_come_back_in_their_own_dtype(value_type: GGUFValueType, write: Write) -> None:
    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_key_value("key", EXAMPLES[value_type], GGUFValueType.ARRAY, value_type)

    array = _core.GgufFile(write(add))["key"]
    assert array.dtype == NUMPY_TYPES[value_type]
    np.testing.assert_array_equal(array, np.array(EXAMPLES[value_type], NUMPY_TYPES[value_type]))


def test_strings_keep_every_byte(write: Write) -> None:
    texts = {"word": b"akunu", "far": "日本語 🦙".encode(), "zero": b"a\0b", "empty": b""}
    texts["no_utf8"] = b"\xff\xc3"

    def add(writer: gguf.GGUFWriter) -> None:
        for key, text in texts.items():
            writer.add_key_value(key, text, GGUFValueType.STRING)
        writer.add_key_value("all", list(texts.values()), GGUFValueType.ARRAY, GGUFValueType.STRING)

    file = _core.GgufFile(write(add))
    for key, text in texts.items():
        assert file[key] == text.decode(errors="surrogateescape")
    assert file["all"] == [text.decode(errors="surrogateescape") for text in texts.values()]


def test_a_file_reads_like_a_mapping(write: Write) -> None:
    path = write(lambda writer: writer.add_block_count(4))
    file = _core.GgufFile(path)
    assert file.keys() == list(file) == ["general.architecture", "llama.block_count"]
    assert len(file) == 2
    assert "llama.block_count" in file
    assert "llama.block" not in file
    assert "\ud800" not in file  # no file can hold it
    assert file.get("llama.block_count") == 4
    assert file.get("absent") is None
    assert file.get("absent", default=3) == 3
    with pytest.raises(KeyError, match=r"^'absent'$"):
        file["absent"]
    assert (file.version, file.alignment, file.path) == (3, 32, str(path))


def test_keys_need_not_be_utf8(open_bytes: Callable[[bytes], _core.GgufFile]) -> None:
    file = open_bytes(file_of([value(b"\xff\xfe", 0, b"\x07")]))
    assert file.keys() == ["\udcff\udcfe"]
    assert file["\udcff\udcfe"] == 7


def test_an_empty_array_keeps_its_type(open_bytes: Callable[[bytes], _core.GgufFile]) -> None:
    file = open_bytes(
        file_of([value("s", 9, u32(8) + u64(0)), value("f", 9, u32(6) + u64(0))]),
    )
    assert file["s"] == []
    assert file["f"].dtype == np.float32
    assert file["f"].shape == (0,)


# Tensors


@pytest.mark.parametrize(
    "tensor_type", list(gguf.GGML_QUANT_SIZES), ids=[each.name for each in gguf.GGML_QUANT_SIZES]
)
def test_tensors_of_every_block_type_have_their_size(
    tensor_type: GGMLQuantizationType, open_bytes: Callable[[bytes], _core.GgufFile]
) -> None:
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[tensor_type]
    if tensor_type == GGMLQuantizationType.Q8_1:
        block_bytes = 36  # ggml's block_q8_1 has two halves where the package still counts floats
    size = 3 * 2 * block_bytes
    content = file_of([], [tensor("t", [2 * block_size, 3], tensor_type)], bytes(size))
    (found,) = open_bytes(content).tensors
    assert found.shape == (3, 2 * block_size)
    assert found.size == size
    assert found.offset + found.size == len(content)
    with pytest.raises(ModelFormatError, match=f"tensor t needs {size} bytes .* has {size - 1}"):
        open_bytes(content[:-1])


@pytest.mark.parametrize(
    ("tensor_type", "name"),
    [(0, "F32"), (1, "F16"), (2, "Q4_0"), (8, "Q8_0"), (12, "Q4_K"), (23, "IQ4_XS"), (30, "BF16")],
)
def test_types_have_the_names_that_gguf_gives_them(
    tensor_type: int, name: str, open_bytes: Callable[[bytes], _core.GgufFile]
) -> None:
    (found,) = open_bytes(file_of([], [tensor("t", [256], tensor_type)], bytes(1024))).tensors
    assert found.type_name == name


def test_shapes_are_in_numpy_order(write: Write) -> None:
    arrays = {f"t{n}": np.zeros((2, 3, 4, 5)[:n], dtype=np.float32) for n in range(5)}

    def add(writer: gguf.GGUFWriter) -> None:
        for name, array in arrays.items():
            writer.add_tensor(name, array)

    tensors = _core.GgufFile(write(add)).tensors
    assert {each.name: each.shape for each in tensors} == {
        name: array.shape for name, array in arrays.items()
    }
    assert [each.size for each in tensors] == [array.nbytes for array in arrays.values()]


@pytest.mark.parametrize("alignment", [8, 32, 64, 4096])
def test_data_lies_where_the_alignment_puts_it(alignment: int, write: Write) -> None:
    one: Any = np.arange(3, dtype=np.int8)
    two: Any = np.arange(5, dtype=np.float64)

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_custom_alignment(alignment)
        writer.add_tensor("one", one)
        writer.add_tensor("two", two)

    path = write(add)
    file = _core.GgufFile(path)
    content = path.read_bytes()
    assert file.alignment == alignment
    for found, array in zip(file.tensors, (one, two), strict=True):
        assert found.offset % alignment == 0
        assert content[found.offset : found.offset + found.size] == array.tobytes()


def test_tensors_may_lie_in_any_order(open_bytes: Callable[[bytes], _core.GgufFile]) -> None:
    content = file_of([], [tensor("b", [8], offset=32), tensor("a", [8], offset=0)], bytes(64))
    b, a = open_bytes(content).tensors
    assert b.offset == a.offset + 32


def test_tensors_outlive_their_file(write: Write) -> None:
    path = write(lambda writer: writer.add_tensor("a.weight", np.zeros((3, 2), np.float32)))
    (found,) = _core.GgufFile(path).tensors
    path.unlink()
    gc.collect()
    at = found.offset
    assert (
        repr(found)
        == f"GgufTensor(name='a.weight', shape=(3, 2), type_name='F32', offset={at}, size=24)"
    )


# Whole files


def assert_equals_reader(path: Path) -> None:
    reader = gguf.GGUFReader(path)
    file = _core.GgufFile(path)
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert file.version == reader.fields["GGUF.version"].contents()
    assert file.alignment == reader.alignment
    assert file.keys() == list(fields)
    for key, field in fields.items():
        raw = [bytes(field.parts[i]) for i in field.data]  # contents() fails on what is no UTF-8
        if field.types[-1] == GGUFValueType.STRING:
            expected: Any = [text.decode(errors="surrogateescape") for text in raw]
            assert file[key] == (expected if field.types[0] == GGUFValueType.ARRAY else expected[0])
        elif field.types[0] == GGUFValueType.ARRAY:
            if len(field.types) == 1:  # the package forgets the type of an empty array
                assert len(file[key]) == 0
                continue
            assert file[key].dtype == NUMPY_TYPES[field.types[-1]]
            assert file[key].tobytes() == b"".join(raw)
        else:
            np.testing.assert_equal(file[key], field.contents())
    assert [(each.name, each.shape, each.offset) for each in file.tensors] == [
        (each.name, tuple(reversed(each.shape.tolist())), each.data_offset)
        for each in reader.tensors
    ]
    for found, expected in zip(file.tensors, reader.tensors, strict=True):
        if expected.tensor_type != GGMLQuantizationType.Q8_1:  # see above
            assert found.size == expected.n_bytes


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.stem)
def test_the_corpus_reads_as_the_gguf_package_reads_it(path: Path) -> None:
    if path.stem == "least":
        assert _core.GgufFile(path).keys() == []  # the package maps no file without data
        return
    assert_equals_reader(path)


VOCABULARIES = Path(os.environ.get("AKUNU_TEST_VOCABS", ROOT.parent / "shared" / "vocab"))
without_vocabularies = pytest.mark.skipif(
    not VOCABULARIES.is_dir(), reason=f"{VOCABULARIES} (AKUNU_TEST_VOCABS) is not there"
)


@without_vocabularies
@pytest.mark.parametrize("name", ["bert-bge", "llama-spm"])
def test_vocabularies_read_as_the_gguf_package_reads_them(name: str) -> None:
    assert_equals_reader(VOCABULARIES / f"ggml-vocab-{name}.gguf")


def strings_of(content: bytes, key: str) -> list[str]:
    """The array of strings under `key`, found by its bytes: a minute faster than the package."""
    head = value(key, 9, u32(8))
    at = content.index(head) + len(head)
    (count,) = struct.unpack_from("<Q", content, at)
    at += 8
    strings = []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", content, at)
        at += 8 + length
        strings.append(content[at - length : at].decode(errors="surrogateescape"))
    return strings


@without_vocabularies
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2"])
def test_large_vocabularies_have_all_their_strings(name: str) -> None:
    path = VOCABULARIES / f"ggml-vocab-{name}.gguf"
    file = _core.GgufFile(path)
    for key in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges"):
        assert file[key] == strings_of(path.read_bytes(), key)
    assert len(file["tokenizer.ggml.token_type"]) == len(file["tokenizer.ggml.tokens"])


def test_a_file_without_tensors_may_end_after_its_values(
    open_bytes: Callable[[bytes], _core.GgufFile],
) -> None:
    content = file_of([value("key", 0, b"\x07")])
    assert len(content) % 32 != 0
    assert open_bytes(content)["key"] == 7


def end_of_content(path: Path) -> int:
    """Where the last byte ends that means something, as the `gguf` package sees it."""
    if path.stem in ("least", "empty_array"):
        return path.stat().st_size
    reader = gguf.GGUFReader(path)
    if reader.tensors:
        return max(each.data_offset + each.n_bytes for each in reader.tensors)
    last = list(reader.fields.values())[-1]
    return int(last.offset + sum(part.nbytes for part in last.parts))


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.stem)
def test_a_file_cut_at_any_byte_is_refused_unless_only_padding_is_lost(
    path: Path, tmp_path: Path
) -> None:
    end = end_of_content(path)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(path.read_bytes())
    for length in reversed(range(path.stat().st_size)):
        os.truncate(cut, length)
        if length < end:
            with pytest.raises(ModelFormatError, match=r"cut\.gguf(, byte \d+)?: "):
                _core.GgufFile(cut)
        else:
            _core.GgufFile(cut)


@pytest.mark.parametrize("name", ["arrays", "shapes", "alignment_8"])
def test_a_flipped_bit_is_read_or_refused(name: str, tmp_path: Path) -> None:
    content = (CORPUS / f"{name}.gguf").read_bytes()
    path = tmp_path / "flipped.gguf"
    path.write_bytes(content)
    messages = []
    with path.open("r+b", buffering=0) as flipped:
        for bit in range(8 * len(content)):
            at = bit // 8
            os.pwrite(flipped.fileno(), bytes([content[at] ^ 1 << bit % 8]), at)
            try:
                file = _core.GgufFile(path)
                for key in file:
                    file[key]
                for each in file.tensors:
                    repr(each)
            except (ModelFormatError, UnsupportedModelError) as error:
                messages.append(str(error))
            os.pwrite(flipped.fileno(), content[at : at + 1], at)
    assert 0 < len(messages) < 8 * len(content)
    assert all("flipped.gguf, byte " in message for message in messages)


# What is refused, and what is said

HUGE = 2**64 - 1
REFUSED: dict[str, tuple[bytes, type[Exception], list[str]]] = {
    "another format": (
        b"PK\x03\x04" + bytes(30),
        ModelFormatError,
        ["byte 0: ", r'begins with "PK\x03\x04"', '"GGUF"'],
    ),
    "too short for the magic": (b"GG", ModelFormatError, ["byte 0: ", "needs 4 bytes, 2 are left"]),
    "version 0": (file_of(version=0), UnsupportedModelError, ["byte 4: ", "version 0", "2 and 3"]),
    "version 1": (file_of(version=1), UnsupportedModelError, ["byte 4: ", "version 1", "2 and 3"]),
    "version 4": (file_of(version=4), UnsupportedModelError, ["byte 4: ", "version 4", "2 and 3"]),
    "big-endian": (
        b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        UnsupportedModelError,
        ["byte 4: ", "big-endian"],
    ),
    "too many values": (
        file_of(n_values=HUGE) + bytes(30),
        ModelFormatError,
        ["byte 16: ", f"{HUGE} metadata values", "13 bytes each, 30 are left"],
    ),
    "too many tensors": (
        file_of(n_tensors=HUGE) + bytes(30),
        ModelFormatError,
        ["byte 8: ", f"{HUGE} tensors", "24 bytes each, 30 are left"],
    ),
    "key without end": (
        file_of([u64(HUGE) + bytes(20)]),
        ModelFormatError,
        ["byte 32: metadata key", f"needs {HUGE} bytes, 20 are left"],
    ),
    "empty key": (file_of([value("", 0, b"\0")]), ModelFormatError, ["byte 24: ", "key is empty"]),
    "long key": (
        file_of([value("k" * 65536, 0, b"\0")]),
        ModelFormatError,
        ["byte 24: ", "kkk... (65456 bytes more)", "has 65536 bytes, the format allows 65535"],
    ),
    "key twice": (
        file_of([value("key", 0, b"\0"), value("k", 0, b"\0"), value("key", 0, b"\0")]),
        ModelFormatError,
        ["byte 54: ", "key key appears for the second time"],
    ),
    "unknown value type": (
        file_of([value("key", 13, bytes(8))]),
        ModelFormatError,
        ["byte 35: ", "key key has value type 13", "0 to 12"],
    ),
    "unknown element type": (
        file_of([value("key", 9, u32(77) + u64(0))]),
        ModelFormatError,
        ["byte 39: ", "key key has value type 77"],
    ),
    "nested array": (
        file_of([value("key", 9, u32(9) + u64(1) + u32(0) + u64(0))]),
        UnsupportedModelError,
        ["byte 39: ", "key key is an array of arrays"],
    ),
    "array without end": (
        file_of([value("key", 9, u32(10) + u64(2**61) + bytes(8))]),  # 2^61 * 8 wraps to 0
        ModelFormatError,
        ["byte 51: ", f"key key needs {2**61} values of 8 bytes, 8 bytes are left"],
    ),
    "string array without end": (
        file_of([value("key", 9, u32(8) + u64(2**61) + bytes(8))]),
        ModelFormatError,
        ["byte 51: ", f"key key needs {2**61} strings", "8 bytes are left"],
    ),
    "string in an array without end": (
        file_of([value("key", 9, u32(8) + u64(2) + string("a") + u64(100) + b"abc")]),
        ModelFormatError,
        ["byte 68: ", "key key: a string of the array needs 100 bytes, 3 are left"],
    ),
    "string without end": (
        file_of([value("key", 8, u64(2**63) + b"abc")]),
        ModelFormatError,
        ["byte 47: ", f"key key: the string needs {2**63} bytes, 3 are left"],
    ),
    "boolean that is none": (
        file_of([value("key", 7, b"\x02")]),
        ModelFormatError,
        ["byte 39: ", "key key holds the boolean 2"],
    ),
    "boolean in an array that is none": (
        file_of([value("key", 9, u32(7) + u64(3) + b"\x01\x00\xff")]),
        ModelFormatError,
        ["byte 53: ", "key key holds the boolean 255"],
    ),
    "alignment of 24": (
        file_of([value("general.alignment", 4, u32(24))]),
        ModelFormatError,
        ["byte 53: ", "general.alignment is 24", "a power of two from 8 on"],
    ),
    "alignment of 4": (
        file_of([value("general.alignment", 4, u32(4))]),
        ModelFormatError,
        ["general.alignment is 4;"],
    ),
    "alignment of 0": (
        file_of([value("general.alignment", 4, u32(0))]),
        ModelFormatError,
        ["general.alignment is 0;"],
    ),
    "alignment in words": (
        file_of([value("general.alignment", 8, string("32"))]),
        ModelFormatError,
        ["key general.alignment is STRING, wanted an unsigned integer"],
    ),
    "negative alignment": (
        file_of([value("general.alignment", 5, struct.pack("<i", -32))]),
        ModelFormatError,
        ["key general.alignment is -32, wanted an unsigned integer"],
    ),
    "tensor name without end": (
        file_of([], [u64(4294967295) + bytes(118)]),
        ModelFormatError,
        ["byte 32: tensor name needs 4294967295 bytes, 118 are left"],
    ),
    "tensor twice": (
        file_of([], [tensor("t", [8]), tensor("t", [8], offset=32)], bytes(64)),
        ModelFormatError,
        ["byte 57: ", "tensor t appears for the second time"],
    ),
    "five dimensions": (
        file_of([], [tensor("t", [1] * 5)], bytes(32)),
        ModelFormatError,
        ["byte 24: ", "tensor t has 5 dimensions, the format allows 4"],
    ),
    "dimensions without end": (
        file_of([], [tensor("t", [1], n_dims=4)]),
        ModelFormatError,
        ["tensor t: a dimension needs 8 bytes, 4 are left"],
    ),
    "dimension of 0": (
        file_of([], [tensor("t", [8, 0])], bytes(32)),
        ModelFormatError,
        ["byte 24: ", "tensor t has a dimension of 0"],
    ),
    "first dimension of 0": (
        file_of([], [tensor("t", [0, 8])], bytes(32)),
        ModelFormatError,
        ["tensor t has a dimension of 0"],
    ),
    "size beyond 64 bits": (
        file_of([], [tensor("t", [2**32, 2**30, 1, 1])], bytes(32)),
        ModelFormatError,
        ["tensor t has dimensions 4294967296 x 1073741824 x 1 x 1", "64 bits"],
    ),
    "part of a block": (
        file_of([], [tensor("t", [48, 2], 8)], bytes(102)),
        ModelFormatError,
        ["tensor t has rows of 48 values", "no multiple of the 32"],
    ),
    "withdrawn type": (
        file_of([], [tensor("t", [32], 31)], bytes(32)),
        UnsupportedModelError,
        ["byte 24: ", "tensor t has type number 31"],
    ),
    "unknown type": (
        file_of([], [tensor("t", [32], 2**32 - 1)], bytes(32)),
        UnsupportedModelError,
        ["tensor t has type number 4294967295"],
    ),
    "no data": (
        file_of([], [tensor("t", [8])]),
        ModelFormatError,
        ["byte 57: padding before the tensor data needs 7 bytes, 0 are left"],
    ),
    "data cut off": (
        file_of([], [tensor("t", [8])], bytes(31)),
        ModelFormatError,
        ["byte 24: ", "tensor t needs 32 bytes at 0 of the tensor data, which has 31", "cut off"],
    ),
    "offset beyond the file": (
        file_of([], [tensor("t", [8], offset=2**64 - 32)], bytes(32)),
        ModelFormatError,
        [f"tensor t needs 32 bytes at {2**64 - 32} of the tensor data, which has 32"],
    ),
    "offset between": (
        file_of([], [tensor("t", [8], offset=16)], bytes(64)),
        ModelFormatError,
        ["tensor t has offset 16", "no multiple of the alignment 32"],
    ),
    "overlap": (
        file_of([], [tensor("b", [8], offset=32), tensor("a", [9])], bytes(64)),
        ModelFormatError,
        ["byte 128: ", "tensor b begins inside tensor a, which ends at 132"],
    ),
    "the same place twice": (
        file_of([], [tensor("a", [8]), tensor("b", [8])], bytes(32)),
        ModelFormatError,
        ["tensor b begins inside tensor a"],
    ),
    "name that is no text": (
        file_of([], [tensor(b"\xff\0\n" + bytes(2_000_000), [0])], bytes(32)),
        ModelFormatError,
        [r"tensor \xff\x00\x0a\x00", "bytes more) has a dimension of 0"],
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_refused_is_named_with_its_place(
    name: str, open_bytes: Callable[[bytes], _core.GgufFile], tmp_path: Path
) -> None:
    content, error_type, parts = REFUSED[name]
    with pytest.raises(error_type) as caught:
        open_bytes(content)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/small.gguf, byte ")
    for part in parts:
        assert part in message
    assert len(message) < len(str(tmp_path)) + 600


def test_a_hostile_count_takes_no_memory(open_bytes: Callable[[bytes], _core.GgufFile]) -> None:
    resource = pytest.importorskip("resource")
    unit = 1024 if sys.platform == "linux" else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    for count in (2**20, 2**32, 2**60):
        with pytest.raises(ModelFormatError, match="are left"):
            open_bytes(file_of(n_values=count) + bytes(10**6))
        with pytest.raises(ModelFormatError, match="are left"):
            open_bytes(file_of([value("key", 9, u32(8) + u64(count))]) + bytes(10**6))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before < 64 * 2**20


# Paths


def test_a_path_that_names_no_file(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"absent\.gguf: cannot be opened: No such file"):
        _core.GgufFile(tmp_path / "absent.gguf")
    with pytest.raises(ArgumentError, match="is a directory; a regular file is needed"):
        _core.GgufFile(tmp_path)
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(ModelFormatError, match=r"empty\.gguf: the file is empty"):
        _core.GgufFile(tmp_path / "empty.gguf")


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="pipe: is a pipe"):
        _core.GgufFile(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.gguf"
    path.write_bytes(file_of())
    path.chmod(0)
    with pytest.raises(ArgumentError, match=r"secret\.gguf: cannot be opened: Permission denied"):
        _core.GgufFile(path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems insist on UTF-8 names")
def test_a_path_need_not_be_utf8(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/\xff.gguf"
    Path(os.fsdecode(raw)).write_bytes(file_of([value("key", 0, b"\x07")]))
    for path in (raw, os.fsdecode(raw), Path(os.fsdecode(raw))):
        file = _core.GgufFile(path)
        assert file["key"] == 7
        assert file.path == os.fsdecode(raw)
    Path(os.fsdecode(raw)).write_bytes(b"x")
    with pytest.raises(ModelFormatError, match=r"/\\xff\.gguf, byte 0: "):
        _core.GgufFile(raw)
