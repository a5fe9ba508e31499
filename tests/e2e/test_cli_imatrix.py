"""`akunu imatrix`: a file that `quantize --imatrix` and llama.cpp's tools read."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
from cli_support import EMBER

from akunu.convert.importance import ImportanceMatrix

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TEXT = ", ".join(map(str, range(1, 200)))


def test_a_matrix_is_written_as_llama_imatrix_does(run_akunu: Run, tmp_path: Path) -> None:
    text, target = tmp_path / "numbers.txt", tmp_path / "imatrix.gguf"
    text.write_text(TEXT)
    done = run_akunu("imatrix", str(EMBER), str(text), "-o", str(target), "--context", "64")
    assert done.returncode == 0, done.stderr
    reader = gguf.GGUFReader(target)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    assert fields["general.type"] == "imatrix"
    assert fields["imatrix.datasets"] == ["numbers.txt"]
    assert fields["imatrix.chunk_size"] == 64
    n_chunks = fields["imatrix.chunk_count"]
    assert f"{n_chunks} chunks of 64 tokens" in done.stdout
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert len(tensors) == 2 * 7 * 12  # sums and counts of seven matrices in twelve layers
    sums, counts = (tensors[f"blk.3.ffn_down.weight.{kind}"].data for kind in ("in_sum2", "counts"))
    assert sums.shape == (1, 768)
    assert counts.tolist() == [[64.0 * n_chunks]]
    matrix = ImportanceMatrix.read(target)
    np.testing.assert_allclose(matrix.means["blk.3.ffn_down.weight"], sums / counts, rtol=1e-6)


def test_a_matrix_serves_to_quantise(run_akunu: Run, tmp_path: Path) -> None:
    text, matrix, target = tmp_path / "t.txt", tmp_path / "i.gguf", tmp_path / "q.gguf"
    text.write_text(TEXT)
    done = run_akunu(
        "imatrix", str(EMBER), str(text), "-o", str(matrix), "--context", "32", "--chunks", "2"
    )
    assert done.returncode == 0, done.stderr
    done = run_akunu(
        "quantize",
        str(EMBER),
        str(target),
        "Q3_K_M",
        "--allow-requantize",
        "--imatrix",
        str(matrix),
    )
    assert done.returncode == 0, done.stderr
    assert gguf.GGUFReader(target).fields["quantize.imatrix.chunks_count"].contents() == 2


def test_what_cannot_be_measured_is_refused(run_akunu: Run, tmp_path: Path) -> None:
    text, target = tmp_path / "t.txt", tmp_path / "i.gguf"
    text.write_text("1, 2, 3")
    arguments = ("imatrix", str(EMBER), str(text), "-o", str(target))
    assert "less than a chunk of 512" in run_akunu(*arguments).stderr
    assert "--context is 0" in run_akunu(*arguments, "--context", "0").stderr
    assert not target.exists()
    target.write_text("mine")
    assert "exists already; --force" in run_akunu(*arguments, "--context", "2").stderr
    assert target.read_text() == "mine"
