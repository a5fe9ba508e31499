"""Models that are split over several files, as the `gguf` package and llama.cpp split them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf_support import file_of, string, tensor, u32, value

from akunu import _core
from akunu.errors import ModelFormatError
from lines import each_line

N_TENSORS = 7


def fill(writer: gguf.GGUFWriter) -> None:
    writer.add_string("general.name", "in parts")
    writer.add_uint32("llama.block_count", 2)
    for i in range(N_TENSORS):
        values: Any = np.arange(i * 10, i * 10 + 8, dtype=np.float32).reshape(2, 4)
        writer.add_tensor(f"t{i}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(params=[False, True], ids=["tensors-in-all", "no-tensors-first"])
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The files of a model as the `gguf` package splits it; the first with tensors or without."""
    fill(
        gguf.GGUFWriter(
            tmp_path / "model.gguf",
            "llama",
            split_max_tensors=2,
            small_first_shard=bool(request.param),
        )
    )
    found = sorted(tmp_path.glob("model-*-of-*.gguf"))
    assert len(found) == (5 if request.param else 4)
    return found


def test_any_part_opens_the_whole_model(parts: list[Path], tmp_path: Path) -> None:
    whole = tmp_path / "whole.gguf"
    fill(gguf.GGUFWriter(whole, "llama"))
    single = _core.GgufFile(whole)
    assert single.parts == [str(whole)]
    for part in parts:
        file = _core.GgufFile(part)
        assert file.path == str(parts[0])
        assert file.parts == [str(each) for each in parts]
        assert file["general.name"] == "in parts"
        assert [key for key in file if not key.startswith("split.")] == single.keys()
        assert [(each.name, each.shape) for each in file.tensors] == [
            (each.name, each.shape) for each in single.tensors
        ]
        for i, each in enumerate(file.tensors):
            content = Path(each.path).read_bytes()[each.offset : each.offset + each.size]
            np.testing.assert_array_equal(np.frombuffer(content, np.float32)[0], i * 10)


def test_the_parts_are_where_the_gguf_package_sees_them(parts: list[Path]) -> None:
    expected = [
        (each.name, each.data_offset, str(part))
        for part in parts
        for each in gguf.GGUFReader(part).tensors
        if part.stat().st_size
    ]
    found = [(each.name, each.offset, each.path) for each in _core.GgufFile(parts[0]).tensors]
    assert found == expected


def test_missing_parts_are_named(parts: list[Path]) -> None:
    parts[1].unlink()
    parts[3].unlink()
    n = len(parts)
    with pytest.raises(ModelFormatError) as caught:
        _core.GgufFile(parts[0])
    message = str(caught.value)
    assert message.startswith(str(parts[0]))
    assert f"split over {n} files" in message
    assert "missing there: part 2, 4 (" in message
    with pytest.raises(ModelFormatError, match=r"missing there: part 2, 4 \("):
        _core.GgufFile(parts[2])


def test_a_part_of_another_model_is_named(parts: list[Path], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = gguf.GGUFWriter(
        tmp_path / "other" / "model.gguf", "llama", split_max_tensors=2, small_first_shard=False
    )
    for i in range(2 * len(parts)):
        other.add_tensor(f"other{i}.weight", np.zeros(4, np.float32))
    other.write_header_to_file()
    other.write_kv_data_to_file()
    other.write_tensors_to_file()
    other.close()
    name = parts[-1].name
    parts[-1].write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(ModelFormatError, match=r"split\.tensors\.count is .* not of one model"):
        _core.GgufFile(parts[0])


def test_a_renamed_part_is_refused(parts: list[Path], tmp_path: Path) -> None:
    n = len(parts)
    alone = tmp_path / "part.gguf"
    alone.write_bytes(parts[1].read_bytes())
    with pytest.raises(ModelFormatError, match=rf"should end in -00002-of-0000{n}\.gguf"):
        _core.GgufFile(alone)
    parts[2].write_bytes(parts[1].read_bytes())
    with pytest.raises(ModelFormatError, match=r"split.no is 1; part 3 of \d is number 2"):
        _core.GgufFile(parts[0])
    with pytest.raises(ModelFormatError, match=rf"-00003-of-0000{n}\.gguf: the file is part 2 of"):
        _core.GgufFile(parts[2])


def test_a_part_that_is_cut_or_no_gguf_is_named(parts: list[Path]) -> None:
    parts[2].write_bytes(parts[2].read_bytes()[:-4])
    with pytest.raises(ModelFormatError, match=rf"{parts[2].name}, byte \d+: .* cut off"):
        _core.GgufFile(parts[0])
    parts[2].write_bytes(b"version https://git-lfs.github.com/spec/v1\nsize 7\n")
    with pytest.raises(ModelFormatError, match=f"{parts[2].name}.*Git LFS pointer"):
        _core.GgufFile(parts[0])


def u16(number: int) -> bytes:
    return struct.pack("<H", number)


def part_of(
    number: int | None, count: int, names: list[str], total: int | None = None, key: str = "k"
) -> bytes:
    values = [value("split.count", 2, u16(count)), value(key, 8, string("x"))]
    if number is not None:
        values.append(value("split.no", 2, u16(number)))
    if total is not None:
        values.append(value("split.tensors.count", 5, struct.pack("<i", total)))
    tensors = [tensor(name, [8], offset=32 * i) for i, name in enumerate(names)]
    return file_of(values, tensors, bytes(32 * len(names)))


REFUSED: dict[str, tuple[list[bytes], str]] = {
    "the same tensor in two parts": (
        [part_of(0, 2, ["a", "b"], 3), part_of(1, 2, ["b"], 3)],
        r"m-00002-of-00002\.gguf: tensor b is in .*m-00001-of-00002\.gguf as well",
    ),
    "too few tensors": (
        [part_of(0, 2, ["a"], 3), part_of(1, 2, ["b"], 3)],
        r"split\.tensors\.count is 3, the 2 parts hold 2 tensors together",
    ),
    "counts that differ": (
        [part_of(0, 2, ["a"], 2), part_of(1, 2, ["b"], 3)],
        r"m-00002-of-00002\.gguf: split\.tensors\.count is 3, other parts say 2",
    ),
    "another number of parts": (
        [part_of(0, 2, ["a"], 2), part_of(1, 3, ["b"], 2)],
        r"m-00002-of-00002\.gguf: split\.count is 3; the model has 2 parts",
    ),
    "a part that is no part": (
        [part_of(0, 2, ["a"], 2), file_of([], [tensor("b", [8])], bytes(32))],
        r"m-00002-of-00002\.gguf: split\.count is 1; the model has 2 parts",
    ),
    "no number": (
        [part_of(None, 2, ["a"], 2), part_of(1, 2, ["b"], 2)],
        r"m-00001-of-00002\.gguf: split\.count is 2, but split\.no is missing",
    ),
    "no number later": (
        [part_of(0, 2, ["a"], 2), part_of(None, 2, ["b"], 2)],
        r"m-00002-of-00002\.gguf: split\.no is missing; part 2 of 2 is number 1",
    ),
    "a number beyond the count": (
        [part_of(2, 2, ["a"], 2), part_of(1, 2, ["b"], 2)],
        r"split\.no is 2; .* counted from 0 to 1",
    ),
    "too many parts": (
        [file_of([value("split.count", 4, u32(70_000)), value("split.no", 4, u32(0))])],
        r"split\.count is 70000; the format allows 65535",
    ),
}


@each_line("name", list(REFUSED))
def test_parts_that_do_not_belong_together_are_named(name: str, tmp_path: Path) -> None:
    contents, message = REFUSED[name]
    for i, content in enumerate(contents):
        (tmp_path / f"m-{i + 1:05}-of-00002.gguf").write_bytes(content)
    with pytest.raises(ModelFormatError, match=message):
        _core.GgufFile(tmp_path / "m-00001-of-00002.gguf")


def test_parts_need_not_say_how_many_tensors_there_are(tmp_path: Path) -> None:
    for i, names in enumerate((["a"], ["b", "c"])):
        (tmp_path / f"m-{i + 1:05}-of-00002.gguf").write_bytes(part_of(i, 2, names))
    file = _core.GgufFile(tmp_path / "m-00002-of-00002.gguf")
    assert [each.name for each in file.tensors] == ["a", "b", "c"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_model_in_one_part_needs_no_particular_name(count: int, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(part_of(0, count, ["a"], 1))
    assert len(_core.GgufFile(tmp_path / "m.gguf").tensors) == 1


def test_a_name_alone_makes_no_part(tmp_path: Path) -> None:
    path = tmp_path / "m-00001-of-00002.gguf"
    path.write_bytes(file_of([], [tensor("a", [8])], bytes(32)))
    assert _core.GgufFile(path).parts == [str(path)]
