"""What `_core.GgufFile` refuses, and with which words."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf_support import file_of, string, tensor, u32, u64, value

from akunu import LoadOptions, _core
from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError
from akunu.storage.native_load import begin_load
from lines import each_line


@pytest.fixture
def open_bytes(tmp_path: Path) -> Callable[[bytes], _core.GgufFile]:
    return lambda content: opened(content, tmp_path)


def opened(content: bytes, folder: Path) -> _core.GgufFile:
    path = folder / "small.gguf"
    path.write_bytes(content)
    return _core.GgufFile(path)


HUGE = 2**64 - 1
REFUSED: dict[str, tuple[bytes, type[Exception], list[str]]] = {
    "another format": (
        b"\x7fELF" + bytes(30),
        ModelFormatError,
        ["byte 0: ", r'begins with "\x7fELF\x00', '"GGUF"'],
    ),
    "too short for the magic": (
        b"GG",
        ModelFormatError,
        ["byte 0: ", "needs 4 bytes, 2 are left; the file is cut off"],
    ),
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
        ["byte 8: ", f"{HUGE} tensors", "24 bytes each, 30 are left; the file is cut off"],
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
    "long key twice": (
        file_of([value("k" * 81, 0, b"\0")] * 2),
        ModelFormatError,
        ["k... (1 byte more) appears for the second time"],
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
        ["tensor t has rows of 48 values", "no multiple of the 32 in a block of Q8_0"],
    ),
    "part of a super-block": (
        file_of([], [tensor("t", [896, 2], 12)], bytes(1152)),
        ModelFormatError,
        ["tensor t has rows of 896 values", "no multiple of the 256 in a block of Q4_K"],
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


@each_line("name", list(REFUSED))
def test_what_is_refused_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    content, error_type, parts = REFUSED[name]
    with pytest.raises(error_type) as caught:
        opened(content, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/small.gguf, byte ")
    for part in parts:
        assert part in message
    assert len(message) < len(str(tmp_path)) + 600


def test_a_message_may_quote_what_is_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(file_of([value("general.architecture", 8, string(b"\xff\xfe"))]))
    options = LoadOptions(device="cpu", threads=1, prefix_cache=False)
    with pytest.raises(UnsupportedModelError, match=r"\\xff\\xfe"):
        begin_load(path, options).result()


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
