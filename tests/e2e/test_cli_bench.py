"""`akunu bench`: llama-bench's lists, columns and keys; `--roofline`."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import astuple, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.cli.measuring.bench_plan import Test as Shape
from akunu.cli.measuring.bench_plan import numbers, pairs, plan
from akunu.cli.measuring.operation_counts import Matrices
from akunu.cli.measuring.operation_counts import OperationCounts as Work
from akunu.cli.measuring.operation_counts import OperationModel as WorkModel
from akunu.cli.measuring.roofline import Limits
from akunu.cli.terminal.console import UsageError
from arithmetic import available_levels
from lines import each_line

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# The keys that programs which read llama-bench's JSON ask for.
KEYS = (
    *("build_commit", "build_number", "cpu_info", "gpu_info", "backends", "model_filename"),
    *("model_type", "model_size", "model_n_params", "n_batch", "n_ubatch", "n_threads"),
    *("type_k", "type_v", "use_mmap", "n_prompt", "n_gen", "n_depth", "test_time"),
    *("avg_ns", "stddev_ns", "avg_ts", "stddev_ts"),
)


@each_line(
    ("given", "expected"),
    [
        (None, [7]),
        (["512"], [512]),
        (["1,2", "3"], [1, 2, 3]),
        (["1-4"], [1, 2, 3, 4]),
        (["1-8*2"], [1, 2, 4, 8]),
        (["0-64+32"], [0, 32, 64]),
        (["5-5"], [5]),
    ],
    ids=str,
)
def test_lists_and_ranges(given: list[str] | None, expected: list[int]) -> None:
    assert numbers("-p", given, 7) == expected


@each_line("text", ["", "x", "1,", "-1", "4-1", "0-8*2", "1-8*1", "1-8+0", "1.5"])
def test_lists_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^-p "):
        numbers("-p", [text], 7)


def test_a_range_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="values"):
        numbers("-p", ["0-99999999"], 7)


def test_tests_come_in_llama_benchs_order() -> None:
    names = [test.name for test in plan([8, 0], [4], pairs(["2,3"]), [0, 16])]
    assert names == ["pp8", "tg4", "pp2+tg3", "pp8 @ d16", "tg4 @ d16", "pp2+tg3 @ d16"]


def bench(run_akunu: Run, *arguments: str) -> str:
    done = run_akunu("bench", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-p", "100000"], "pp100000 takes 100000 positions; the model has 1024"),
        (["-p", "0", "-n", "512", "-d", "600"], "tg512 @ d600 takes 1112 positions; the model "),
        (["-t", "5000"], "--threads is 5000; it must be 1 to 256"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_what_the_model_cannot_take_is_said_before_anything_is_measured(
    run_akunu: Run, arguments: list[str], said: str
) -> None:
    done = run_akunu("bench", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr


def test_json_has_llama_benchs_keys(run_akunu: Run) -> None:
    arguments = ["-p", "8,16", "-n", "4", "-d", "0,32", "-pg", "8,4", "-r", "3", "-t", "1,2"]
    rows = json.loads(bench(run_akunu, *arguments, "-o", "json"))
    shapes = [(row["n_threads"], row["n_prompt"], row["n_gen"], row["n_depth"]) for row in rows]
    assert shapes == [
        (threads, *shape, depth)
        for threads in (1, 2)
        for depth in (0, 32)
        for shape in ((8, 0), (16, 0), (0, 4), (8, 4))
    ]
    for row in rows:
        assert set(KEYS) <= set(row)
        assert len(row["samples_ns"]) == len(row["samples_ts"]) == 3
        n_tokens = row["n_prompt"] + row["n_gen"]
        for ns, ts in zip(row["samples_ns"], row["samples_ts"], strict=True):
            assert ts == pytest.approx(n_tokens * 1e9 / ns)
        assert row["avg_ns"] == pytest.approx(statistics.fmean(row["samples_ns"]), abs=1)
        assert row["avg_ts"] == pytest.approx(statistics.fmean(row["samples_ts"]))
        assert row["stddev_ts"] == pytest.approx(statistics.stdev(row["samples_ts"]))


def test_the_model_is_described_as_in_the_file(run_akunu: Run) -> None:
    (row,) = json.loads(bench(run_akunu, "-p", "4", "-n", "0", "-r", "1", "-o", "json"))
    tensors = _core.GgufFile(row["model_filename"]).tensors
    assert row["model_size"] == sum(tensor.size for tensor in tensors)
    assert row["model_n_params"] == sum(int(np.prod(tensor.shape)) for tensor in tensors)
    assert row["model_type"].startswith("qwen3 ")
    assert row["model_type"].endswith(" Q8_0")


def test_csv_has_a_header_and_the_same_columns(run_akunu: Run) -> None:
    text = bench(run_akunu, "-p", "4", "-n", "2", "-r", "2", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["n_prompt"], row["n_gen"]) for row in rows] == [("4", "0"), ("0", "2")]
    assert set(KEYS) <= set(rows[0])


def test_markdown_is_a_table(run_akunu: Run) -> None:
    text = bench(run_akunu, "-p", "4", "-n", "2", "-r", "2")
    header, rule, *rest = text.splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (header, *rest[:2])]
    assert cells[0] == ["model", "size", "params", "backend", "threads", "test", "t/s"]
    assert [row[5] for row in cells[1:]] == ["pp4", "tg2"]
    assert cells[1][:4] == ["qwen3 10.49 M Q8_0", "10.66 MiB", "10.49 M", "CPU"]
    assert "±" in cells[1][6]
    assert set(rule) <= set("|-: ")
    assert rest[-1].startswith("build: akunu ")


def test_roofline_says_what_was_measured_and_achieved(run_akunu: Run) -> None:
    text = bench(run_akunu, "-p", "64", "-n", "16", "-r", "2", "-o", "json", "--roofline")
    prompt, generated = json.loads(text)
    for row in (prompt, generated):
        limits = row["limits"]
        assert limits["read_gb_per_s"] > 0.1
        assert limits["buffer_bytes"] >= 64 << 20
        assert min(limits["int8_gop_per_s"], limits["float_gop_per_s"]) > 0.1
        share = row["read_gb_per_s"] / limits["read_gb_per_s"]
        assert row["bandwidth_share"] == pytest.approx(share)
        assert 0 < row["compute_share"] < 1.5
    # Generating reads the weights for every token, a prompt once for all.
    assert generated["read_gb_per_s"] > prompt["read_gb_per_s"]
    assert prompt["gop_per_s"] > generated["gop_per_s"]
    (last_of_prompt,), (first_of_text,) = prompt["kernels"], generated["kernels"]
    assert {key: last_of_prompt[key] for key in ("n_prompt", "n_gen", "n_depth")} == {
        "n_prompt": 64,
        "n_gen": 0,
        "n_depth": 0,
    }
    assert first_of_text["n_gen"] == 1
    by_name = {kind["name"]: kind for kind in first_of_text["kinds"]}
    assert by_name["logits"]["bandwidth_share"] > by_name["logits"]["compute_share"] > 0
    assert "bandwidth_share" not in by_name["ffn norm"]


def test_the_table_with_shares_has_one_for_the_kernels_of_each_step(run_akunu: Run) -> None:
    table = bench(run_akunu, "-p", "600", "-n", "0", "-pg", "16,2", "-r", "1", "--roofline")
    lines = table.splitlines()
    assert "limits measured here" in lines[-1]
    threads = re.search(r"(\d+) threads", lines[-1])
    assert threads is not None
    prompt_rows = next(d["max_prompt_rows"] for d in _core.devices() if d["backend"] == "cpu")
    titles = [line for line in lines if line.endswith("each command alone")]
    assert titles == [
        f"{test}, {threads[0]}: {step}, each command alone"
        for test, step in (
            ("pp600", f"{prompt_rows} prompt rows after {600 - prompt_rows} positions"),
            ("pp16+tg2", "16 prompt rows after 0 positions"),
            ("pp16+tg2", "1 generated row after 16 positions"),
        )
    ]
    for title in titles:
        header, _, *rows = lines[lines.index(title) + 1 :]
        columns = [cell.strip() for cell in header.split("|")[1:-1]]
        assert columns == ["command", "count", "µs each", "GB/s", "of reads", "Gop/s", "of peak"]
        logits = next(row for row in rows if row.startswith("| logits "))
        assert all(cell.strip() for cell in logits.split("|")[1:-1])


def test_the_work_of_a_test_is_what_it_reads_and_multiplies(ember: akunu.Model) -> None:
    file = _core.GgufFile(ember.path)
    model = WorkModel.of(file.tensors, ember.config, "f16", 512)
    config = ember.config
    everything = sum(tensor.size for tensor in file.tensors)  # the head is the embedding
    kv_row = 2 * 2 * config.n_layers * config.n_kv_heads * config.head_dim
    one = model.work(Shape(0, 1, 0))
    assert one.read_bytes == everything + kv_row
    matrices = sum(int(np.prod(t.shape)) for t in file.tensors if len(t.shape) > 1)
    assert one.byte_operations == 2 * matrices
    assert one.float_operations == 4 * config.n_layers * config.n_heads * config.head_dim
    deep = model.work(Shape(0, 1, 99))
    assert deep.read_bytes - one.read_bytes == 99 * kv_row
    assert deep.float_operations == 100 * one.float_operations
    assert (deep.prompt_float_operations, deep.prompt_byte_operations) == (0, 0)
    prompt = model.work(Shape(100, 0, 0))
    assert prompt.read_bytes == everything + 100 * kv_row
    assert prompt.float_operations == 5050 * one.float_operations
    # On a matrix unit: all but the head, of which a prompt needs one row.
    head = next(t for t in file.tensors if t.name == "token_embd.weight")
    assert prompt.prompt_float_operations == prompt.float_operations
    assert prompt.prompt_byte_operations == prompt.byte_operations - 2 * int(np.prod(head.shape))


def test_weights_of_mlx_are_multiplied_twice_and_by_no_matrix_unit() -> None:
    tensors: Any = [
        SimpleNamespace(type_name="mlx4_64", shape=(8, 64), size=288),
        SimpleNamespace(type_name="Q4_0", shape=(2, 64), size=72),
    ]
    work = Matrices.of(tensors).work(prompt_rows=10, other_rows=1, readings=1)
    assert (work.byte_operations, work.float_operations) == (2 * 11 * (2 * 512 + 128), 0)
    assert work.prompt_byte_operations == work.prompt_tile_operations == 2 * 10 * 128


def test_layers_with_a_window_read_and_multiply_what_it_holds(ember: akunu.Model) -> None:
    """All layers but one see ten positions; the test says which of hundred positions those are."""
    file, n_layers = _core.GgufFile(ember.path), ember.config.n_layers
    config = replace(ember.config, windows=(10,) * (n_layers - 1) + (0,))

    def seen(shape: Shape) -> tuple[float, float]:
        """Keys and values that are read, and pairs that are multiplied, in layers' units."""
        windowed, full = (
            WorkModel.of(file.tensors, each, "f16", 512).work(shape)
            for each in (config, ember.config)
        )
        kv_row = 2 * 2 * config.n_kv_heads * config.head_dim
        pair = 4 * config.n_heads * config.head_dim
        return (
            (full.read_bytes - windowed.read_bytes) / kv_row / (n_layers - 1),
            (full.float_operations - windowed.float_operations) / pair / (n_layers - 1),
        )

    assert seen(Shape(0, 1, 9)) == (0, 0)
    assert seen(Shape(0, 1, 99)) == (90, 90)
    assert seen(Shape(0, 2, 98)) == (89 + 90, 89 + 90)
    # Rows 0 to 9 see all before them, then each ten; one step reads what all of its rows see.
    assert seen(Shape(100, 0, 0)) == (0, 5050 - (55 + 90 * 10))


@pytest.mark.parametrize("step", [Shape(0, 1, 30), Shape(20, 0, 7)], ids=["generated", "prompt"])
def test_the_work_of_the_commands_is_that_of_their_step(ember: akunu.Model, step: Shape) -> None:
    model = WorkModel.of(_core.GgufFile(ember.path).tensors, ember.config, "f16", 512)
    names = {re.sub(r"^layer \d+ ", "", label) for label in ember._native.labels("single")}
    together = sum((model.command_work(name, step) for name in names), Work())
    vectors = Work(read_bytes=model.vector_bytes)
    assert astuple(together + vectors) == pytest.approx(astuple(model.work(step)))
    assert model.command_work("ffn norm", step) == Work()
    assert model.command_work("gate, up, activation", step) == sum(
        (model.command_work(name, step) for name in ("gate", "up")), Work()
    )


def test_attention_of_prompts_is_held_against_the_units_that_it_uses(ember: akunu.Model) -> None:
    tensors = _core.GgufFile(ember.path).tensors
    model = WorkModel.of(tensors, ember.config, "f16", 512)
    rates = {"float": 4.0, "byte": 64.0, "pair": 0.0, "bfloat": 0.0}

    def computing(work: Work, **others: float) -> float:
        limits = {f"{name}_operations_per_second": x for name, x in (rates | others).items()}
        return Limits("level", 1, 1, read_bytes_per_second=1.0, **limits).seconds(work)[1]

    prompt, token = model.work(Shape(100, 0, 0)), model.work(Shape(0, 1, 99))
    codes = prompt.byte_operations / 64
    assert computing(prompt) == pytest.approx(prompt.float_operations / 4 + codes)
    assert computing(prompt, pair=32) == pytest.approx(prompt.float_operations / 32 + codes)
    assert computing(token, pair=32) == computing(token)  # generated rows stay with floats
    in_floats = WorkModel.of(tensors, ember.config, "f32", 512).work(Shape(100, 0, 0))
    assert computing(in_floats, pair=32) == computing(in_floats)


@pytest.mark.parametrize("level", available_levels())
def test_limits_are_measured_at_every_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKUNU_CPU_ISA", level)
    limits: dict[str, Any] = _core.measure_roofline("cpu", 1)
    assert (limits["level"], limits["workers"]) == (level, 1)
    tiles = _core.activation_kind("cpu", "q8_0", "many", level) == "bf16"
    assert (limits["bfloat_operations_per_second"] > 1e6) == tiles
    pairs = _core.activation_kind("cpu", "f16", "many", level) == "q16_32"
    assert (limits["pair_operations_per_second"] > 1e6) == pairs
    for name in ("read_bytes", "float_operations", "byte_operations"):
        assert limits[f"{name}_per_second"] > 1e6
    with pytest.raises(akunu.ArgumentError, match="abacus"):
        _core.measure_roofline("abacus")
    with pytest.raises(akunu.ArgumentError, match="threads"):
        _core.measure_roofline("cpu", 100_000)
