"""`akunu quantize`: a file in another number format, whole or not at all."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from cli_support import COMMAND, EMBER, ENVIRONMENT
from ember_in_halves import rewritten
from gguf.quants import dequantize

import akunu
from akunu.common.atomic_file import atomic_write as written_whole
from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

from random_models import build

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def ember_f16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rewritten(tmp_path_factory.mktemp("f16") / "ember-f16.gguf")


def quantised(run_akunu: Run, *arguments: object) -> dict[str, Any]:
    done = run_akunu("quantize", *map(str, arguments), "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def refused(run_akunu: Run, *arguments: object, **options: Any) -> str:
    done = run_akunu("quantize", *map(str, arguments), **options)
    assert done.returncode in (1, 2), done.stdout
    return str(done.stderr)


def test_a_quantised_model_answers_as_before(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    target = tmp_path / "q4.gguf"
    facts = quantised(run_akunu, ember_f16, target, "q5_k_m")
    assert facts["type"] == "Q5_K_M"
    assert facts["bytes"] == target.stat().st_size < facts["source_bytes"]
    with akunu.load(target) as model:
        reply = model.chat([{"role": "user", "content": "What is 12 + 7?"}], max_tokens=20)
    assert "19" in reply.text


def test_values_are_copied_and_those_of_the_format_are_new(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    target = tmp_path / "q.gguf"
    facts = quantised(run_akunu, ember_f16, target, "Q4_K_M")
    before, after = gguf.GGUFReader(ember_f16), gguf.GGUFReader(target)
    new = {"general.file_type", "general.quantization_version", "akunu.quantized_by"}
    for name, field in before.fields.items():
        if not name.startswith("GGUF.") and name not in new:
            assert after.fields[name].contents() == field.contents(), name
            assert after.fields[name].types == field.types, name
    assert (
        after.fields["general.file_type"].contents() == 15
    )  # llama.cpp's LLAMA_FTYPE_MOSTLY_Q4_K_M
    assert after.fields["general.quantization_version"].contents() == 2
    assert after.fields["akunu.quantized_by"].contents() == f"akunu {akunu.__version__}"
    assert {t.name: list(t.shape) for t in after.tensors} == {
        t.name: list(t.shape) for t in before.tensors
    }
    kinds = {t.name: t.tensor_type.name for t in after.tensors}
    assert kinds["blk.0.ffn_up.weight"] == "Q4_K"
    assert kinds["blk.0.ffn_down.weight"] == kinds["token_embd.weight"] == "Q6_K"
    assert kinds["blk.0.attn_norm.weight"] == "F32"
    bits = 8 * sum(t.n_bytes for t in after.tensors) / sum(t.n_elements for t in after.tensors)
    assert facts["bits_per_weight"] == pytest.approx(bits)


def test_single_tensors_embedding_and_output_have_the_types_that_are_asked_for(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    target = tmp_path / "q.gguf"
    quantised(
        run_akunu, ember_f16, target, "Q4_0", "--output-type", "q5_1",
        "--tensor", "blk.3.ffn_up.weight=Q8_0", "--tensor", "blk.3.attn_q.weight=f16",
    )  # fmt: skip
    kinds = {t.name: t.tensor_type.name for t in gguf.GGUFReader(target).tensors}
    assert kinds["token_embd.weight"] == "Q5_1"  # Ember's output, too
    assert kinds["blk.3.ffn_up.weight"] == "Q8_0"
    assert kinds["blk.3.attn_q.weight"] == "F16"
    assert kinds["blk.4.ffn_up.weight"] == "Q4_0"


def test_a_pure_file_has_one_type(run_akunu: Run, ember_f16: Path, tmp_path: Path) -> None:
    target = tmp_path / "q.gguf"
    quantised(run_akunu, ember_f16, target, "Q4_K_M", "--pure")
    kinds = {t.tensor_type.name for t in gguf.GGUFReader(target).tensors if len(t.shape) > 1}
    assert kinds == {"Q4_K"}


def test_rows_that_are_no_blocks_get_another_type_and_it_is_said(
    run_akunu: Run, tmp_path: Path
) -> None:
    def narrow(name: str, values: Any) -> Any:
        return values[..., :224] if name == "blk.0.ffn_gate.weight" else values

    source = rewritten(tmp_path / "narrow.gguf", narrow)
    done = run_akunu("quantize", str(source), str(tmp_path / "q.gguf"), "Q4_K_M")
    assert done.returncode == 0, done.stderr
    assert (
        "Q5_0 in place of Q4_K, whose blocks do not fit these rows: blk.0.ffn_gate" in done.stderr
    )
    message = refused(
        run_akunu, source, tmp_path / "r.gguf", "Q4_0", "--tensor", "blk.0.ffn_gate.weight=Q4_K"
    )
    assert "blk.0.ffn_gate.weight cannot be Q4_K: its rows have 224 numbers" in message


def test_a_file_that_is_quantised_already_is_taken_only_when_asked(
    run_akunu: Run, tmp_path: Path
) -> None:
    target = tmp_path / "q.gguf"
    message = refused(run_akunu, EMBER, target, "Q4_0")
    assert "is quantised already, as Q8_0" in message
    assert "--allow-requantize" in message
    assert not target.exists()
    quantised(run_akunu, EMBER, target, "Q4_0", "--allow-requantize")
    with akunu.load(target) as model:
        assert model.generate("1, 2, 3,", max_tokens=2).text


@pytest.mark.parametrize(
    ("type_name", "words"),
    [
        ("IQ2_XS", "akunu does not write IQ2_XS"),
        ("TQ1_0", "akunu does not write TQ1_0"),
        ("Q4_X", "there is no type 'Q4_X'"),
    ],
)
def test_types_that_are_not_made_are_refused_by_name(
    run_akunu: Run, ember_f16: Path, tmp_path: Path, type_name: str, words: str
) -> None:
    message = refused(run_akunu, ember_f16, tmp_path / "q.gguf", type_name)
    assert words in message
    assert "Q4_K_M" in message


@each_line(
    ("options", "words"),
    [
        (["--tensor", "blk.0.ffn_up.weight"], "must be NAME=TYPE"),
        (["--tensor", "no.such=Q8_0"], "no.such, which the model does not have"),
        (["--tensor", "blk.0.ffn_up.weight=Q9"], "--tensor blk.0.ffn_up.weight is 'Q9'"),
        (["--tensor", "output_norm.weight=Q8_0"], "output_norm.weight cannot be Q8_0: it is one-"),
        (["--output-type", "IQ1_S"], "--output-type is 'IQ1_S'"),
        (["--threads", "0"], "--threads is 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    run_akunu: Run, ember_f16: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    assert words in refused(run_akunu, ember_f16, tmp_path / "q.gguf", "Q8_0", *options)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_overwritten_unless_forced(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    target = tmp_path / "q.gguf"
    target.write_bytes(b"mine")
    assert "exists already; --force" in refused(run_akunu, ember_f16, target, "Q8_0")
    assert target.read_bytes() == b"mine"
    quantised(run_akunu, ember_f16, target, "Q8_0", "--force")
    assert target.read_bytes()[:4] == b"GGUF"
    again = refused(run_akunu, target, target, "Q4_0", "--force", "--allow-requantize")
    assert "is the file to read" in again
    link = tmp_path / "link.gguf"
    link.symlink_to(target)
    assert "is the file to read" in refused(
        run_akunu, target, link, "Q4_0", "--force", "--allow-requantize"
    )


def test_a_pipe_or_a_device_is_never_replaced_by_a_file(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    message = refused(run_akunu, ember_f16, pipe, "Q8_0", "--force")
    assert f"{pipe} is a device, a pipe or a socket; name a file" in message
    assert pipe.is_fifo()


def test_a_source_that_is_cut_off_or_has_no_numbers_leaves_nothing(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(ember_f16.read_bytes()[:-100_000])
    assert "cut.gguf" in refused(run_akunu, cut, tmp_path / "q.gguf", "Q4_0")

    def broken(name: str, values: Any) -> Any:
        if name == "blk.5.ffn_up.weight":
            values[3, 7] = np.nan
        return values

    source = rewritten(tmp_path / "nan.gguf", broken)
    message = refused(run_akunu, source, tmp_path / "q.gguf", "Q4_0")
    assert "blk.5.ffn_up.weight, row 3: column 7 is not a number" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.gguf", "nan.gguf"]


def test_a_folder_that_cannot_be_written_is_named(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    assert "is not a folder" in refused(run_akunu, ember_f16, tmp_path / "no" / "q.gguf", "Q4_0")
    assert "is a folder" in refused(run_akunu, ember_f16, tmp_path, "Q4_0")
    where = "/proc/q.gguf"  # not even root may
    assert f"{where} cannot be written" in refused(run_akunu, ember_f16, where, "Q4_0")


def test_a_disk_with_too_little_room_is_found_out_before(tmp_path: Path) -> None:
    with (
        pytest.raises(akunu.AkunuError, match=r"its disk has .* MiB free"),
        written_whole(tmp_path / "q.gguf", 1 << 60, force=False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_leaves_nothing(ember_f16: Path, tmp_path: Path) -> None:
    def few_bytes() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    done = subprocess.run(
        [*COMMAND, "quantize", ember_f16, tmp_path / "q.gguf", "Q8_0"],
        capture_output=True, text=True, env=ENVIRONMENT, preexec_fn=few_bytes, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "q.gguf could not be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing(ember_f16: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "quantize", ember_f16, tmp_path / "q.gguf", "IQ4_XS", "--threads", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert list(tmp_path.iterdir()) == []


def test_an_importance_matrix_changes_what_counts_and_is_named_in_the_file(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    name = "blk.2.ffn_up.weight"
    matrix = tmp_path / "imatrix.gguf"
    writer = gguf.GGUFWriter(matrix, "imatrix")
    importance = np.where(np.arange(256) % 4 == 0, 9.0, 0.1).astype(np.float32)
    writer.add_array("imatrix.datasets", ["some.txt"])
    writer.add_uint32("imatrix.chunk_count", 3)
    writer.add_tensor(f"{name}.in_sum2", importance)
    writer.add_tensor(f"{name}.counts", np.ones(1, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    plain, weighed = tmp_path / "plain.gguf", tmp_path / "weighed.gguf"
    quantised(run_akunu, ember_f16, plain, "Q4_K_S", "--tensor", f"{name}=Q2_K")
    done = run_akunu(
        "quantize", str(ember_f16), str(weighed), "Q4_K_S", "--tensor", f"{name}=Q2_K",
        "--imatrix", str(matrix),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--imatrix has no numbers for token_embd.weight" in done.stderr

    def values(path: Path) -> Any:
        tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == name)
        return dequantize(tensor.data, tensor.tensor_type)

    exact = values(ember_f16)
    errors = [(importance * (values(path) - exact) ** 2).sum() for path in (plain, weighed)]
    assert errors[1] < errors[0]
    fields = gguf.GGUFReader(weighed).fields
    assert fields["quantize.imatrix.file"].contents() == "imatrix.gguf"
    assert fields["quantize.imatrix.dataset"].contents() == "some.txt"
    assert fields["quantize.imatrix.entries_count"].contents() == 1
    assert fields["quantize.imatrix.chunks_count"].contents() == 3


def test_an_importance_matrix_of_another_model_is_refused(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    matrix = tmp_path / "imatrix.dat"
    name = b"blk.2.ffn_up.weight"
    head = np.array([1, len(name)], "<i4").tobytes() + name + np.array([1, 100], "<i4").tobytes()
    matrix.write_bytes(head + np.ones(100, np.float32).tobytes())
    message = refused(run_akunu, ember_f16, tmp_path / "q.gguf", "Q4_K_S", "--imatrix", matrix)
    assert (
        "blk.2.ffn_up.weight has 100 numbers, its rows have 256: it belongs to another model"
        in message
    )


def test_a_size_is_kept_to_the_byte_and_filled(
    run_akunu: Run, ember_f16: Path, tmp_path: Path
) -> None:
    target = tmp_path / "q.gguf"
    facts = quantised(run_akunu, ember_f16, target, "--bits", "4.5")
    assert 4.4 < facts["bits_per_weight"] <= 4.5
    size = target.stat().st_size - 1000
    facts = quantised(run_akunu, ember_f16, target, "--bytes", size, "--force")
    assert 0.99 * size < target.stat().st_size <= size
    assert len(facts["formats"]) > 2
    with akunu.load(target) as model:
        assert model.generate("1, 2, 3,", max_tokens=2).text


def test_either_a_type_or_a_size_is_needed(run_akunu: Run, ember_f16: Path, tmp_path: Path) -> None:
    target = tmp_path / "q.gguf"
    needed = "set one of TYPE, --bits and --bytes"
    assert needed in refused(run_akunu, ember_f16, target)
    assert needed in refused(run_akunu, ember_f16, target, "Q4_0", "--bits", "4")
    assert "--bits is 40" in refused(run_akunu, ember_f16, target, "--bits", "40")
    assert "--bytes is 0; it must be 1" in refused(run_akunu, ember_f16, target, "--bytes", "0")


def test_a_size_that_is_too_small_is_told_in_its_own_unit(run_akunu: Run, tmp_path: Path) -> None:
    # A model smaller than Ember saves time: each call measures every format on every tensor.
    source, target = tmp_path / "f16.gguf", tmp_path / "q.gguf"
    build("llama-256", source, seed=1, weight_format="f16")
    message = refused(run_akunu, source, target, "--bits", "1")
    found = re.search(r"the smallest mix has (\d\.\d\d) bits per weight; the limit is 1", message)
    assert found, message
    quantised(run_akunu, source, target, "--bits", found[1])
    message = refused(run_akunu, source, target, "--bytes", "10", "--force")
    found = re.search(r"the smallest file has (\d+) bytes; the limit is 10", message)
    assert found, message
    quantised(run_akunu, source, target, "--bytes", found[1], "--force")
    assert target.stat().st_size == int(found[1])
