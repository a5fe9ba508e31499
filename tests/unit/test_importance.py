"""Importance matrices in llama.cpp's two forms, and files that are none."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from akunu.convert.importance import ImportanceMatrix, unseen_note
from akunu.errors import ArgumentError, ModelFormatError
from lines import each_line


def gguf_file(path: Path, sums: dict[str, np.ndarray], counts: dict[str, np.ndarray]) -> Path:
    writer = gguf.GGUFWriter(path, "imatrix")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["wiki.txt", "more.txt"])
    writer.add_uint32("imatrix.chunk_count", 7)
    writer.add_uint32("imatrix.chunk_size", 512)
    for name, values in sums.items():
        writer.add_tensor(f"{name}.in_sum2", values.astype(np.float32))
    for name, values in counts.items():
        writer.add_tensor(f"{name}.counts", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def dat_file(entries: dict[str, tuple[int, list[float]]], tail: bytes = b"") -> bytes:
    data = struct.pack("<i", len(entries))
    for name, (calls, values) in entries.items():
        data += struct.pack(f"<i{len(name)}sii", len(name), name.encode(), calls, len(values))
        data += struct.pack(f"<{len(values)}f", *values)
    return data + tail


def test_sums_over_counts_are_means(tmp_path: Path) -> None:
    path = gguf_file(
        tmp_path / "imatrix.gguf",
        {
            "blk.0.ffn_up.weight": np.array([2.0, 4.0]),
            "blk.0.ffn_down_exps.weight": np.ones((3, 2)),
        },
        {
            "blk.0.ffn_up.weight": np.array([4.0]),
            "blk.0.ffn_down_exps.weight": np.array([[2.0], [0.0], [1.0]]),
        },
    )
    matrix = ImportanceMatrix.read(path)
    np.testing.assert_array_equal(matrix.means["blk.0.ffn_up.weight"], [[0.5, 1.0]])
    # The second expert saw nothing: all of its columns count the same.
    np.testing.assert_array_equal(
        matrix.means["blk.0.ffn_down_exps.weight"], [[0.5, 0.5], [1, 1], [1, 1]]
    )
    assert matrix.unseen == {"blk.0.ffn_down_exps.weight": 1}
    assert unseen_note(matrix.unseen, matrix.means).startswith(
        "no token went to 1 of 3 experts' matrices (1 of 1 tensors)"
    )
    assert matrix.datasets == ("wiki.txt", "more.txt")
    assert matrix.chunks == 7


def test_a_stack_that_saw_nothing_is_left_out() -> None:
    seen = (np.array([[2.0, 4.0]]), np.array([2], np.uint64))
    matrix = ImportanceMatrix.of_squares(
        {"a": seen, "b": (np.zeros((3, 2)), np.zeros(3, np.uint64))}, (), 1
    )
    assert list(matrix.means) == ["a"]
    np.testing.assert_array_equal(matrix.means["a"], [[1.0, 2.0]])
    assert matrix.unseen == {}
    assert unseen_note(matrix.unseen, matrix.means) == ""


def test_the_older_form_has_sums_over_calls(tmp_path: Path) -> None:
    path = tmp_path / "imatrix.dat"
    path.write_bytes(
        dat_file(
            {"a.weight": (2, [1.0, 3.0]), "b.weight": (0, [1.0])},
            struct.pack("<ii8s", 12, 8, b"wiki.txt"),
        )
    )
    matrix = ImportanceMatrix.read(path)
    np.testing.assert_array_equal(matrix.means["a.weight"], [0.5, 1.5])
    np.testing.assert_array_equal(matrix.means["b.weight"], [1.0])
    assert (matrix.datasets, matrix.chunks) == (("wiki.txt",), 12)
    path.write_bytes(dat_file({"a.weight": (1, [1.0])}))  # older still: nothing behind the entries
    assert ImportanceMatrix.read(path).chunks == 0


@each_line(
    ("data", "words"),
    [
        (b"", "needs 4 bytes, 0 are left"),
        (b"\xff\xff\xff\xff", "the number of entries is -1"),
        (b"hello, world: no matrix", "it is not an importance matrix"),
        (struct.pack("<i", 0), "it has no entries"),
        (dat_file({"a": (1, [1.0, 2.0])})[:-1], "a needs 8 bytes, 7 are left"),
        (dat_file({"a": (1, [float("nan")])}), "a has a number that is negative, infinite or NaN"),
        (dat_file({"a": (1, [-1.0])}), "a has a number that is negative, infinite or NaN"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "imatrix.dat"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=words):
        ImportanceMatrix.read(path)


def test_tensors_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    one = {"a": np.ones(2)}
    for counts, words in (
        ({}, "there is no a.counts"),
        ({"a": np.ones(2)}, "a has 1 sums and 2 counts"),
    ):
        with pytest.raises(ModelFormatError, match=words):
            ImportanceMatrix.read(gguf_file(tmp_path / "i.gguf", one, counts))
    with pytest.raises(ModelFormatError, match=r"no tensor ends in \.in_sum2"):
        ImportanceMatrix.read(gguf_file(tmp_path / "i.gguf", {}, one))
    with pytest.raises(ArgumentError, match="No such file"):
        ImportanceMatrix.read(tmp_path / "none")
