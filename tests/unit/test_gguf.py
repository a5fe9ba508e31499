"""`_core.GgufFile` against files that the `gguf` package writes, and files built byte by byte."""

from __future__ import annotations

import gc
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFValueType
from gguf_support import file_of, tensor, u32, u64, value

from akunu import _core
from akunu.errors import ModelFormatError, UnsupportedModelError
from lines import each_line

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


@each_line(
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


@each_line("path", sorted(CORPUS.iterdir()), ids=lambda path: path.stem)
def test_the_corpus_reads_as_the_gguf_package_reads_it(path: Path) -> None:
    if path.stem == "least":
        assert _core.GgufFile(path).keys() == []  # the package maps no file without data
        return
    assert_equals_reader(path)


VOCABULARIES = Path(os.environ.get("AKUNU_TEST_VOCABS", ROOT.parent / "shared" / "vocab"))
without_vocabularies = pytest.mark.skipif(
    not VOCABULARIES.is_dir(), reason=f"{VOCABULARIES} (AKUNU_TEST_VOCABS) is not there"
)


@pytest.mark.slow  # parts of them: test_tokenizer_vocabularies.py
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


@pytest.mark.slow  # parts of them: test_tokenizer_vocabularies.py
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


@each_line("path", sorted(CORPUS.iterdir()), ids=lambda path: path.stem)
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
