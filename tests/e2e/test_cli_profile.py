"""`akunu profile`: the commands of a step and their times."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter

import akunu
from akunu import _core
from akunu.cli.commands.profile import by_kind
from akunu.cli.measuring.bench_plan import Test as Step
from akunu.cli.measuring.operation_counts import OperationModel as WorkModel
from lines import each_line

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_every_command_of_a_step_is_there(run_akunu: Run, ember: akunu.Model) -> None:
    done = run_akunu("profile", "-r", "2", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    labels = [command["label"] for command in facts["commands"]]
    assert labels == [*ember._native.labels("single"), "sample", "advance"]
    assert all(command["seconds"] > 0 for command in facts["commands"])
    layers = ember.config.n_layers
    assert {kind["count"] for kind in facts["kinds"]} == {1, layers}
    times = [kind["seconds"] for kind in facts["kinds"]]
    assert times == sorted(times, reverse=True)
    assert sum(times) == pytest.approx(sum(c["seconds"] for c in facts["commands"]))


def test_the_table_adds_up(run_akunu: Run) -> None:
    done = run_akunu("profile", "-p", "20", "-d", "30", "-r", "1")
    assert done.returncode == 0, done.stderr
    header, *rows, last = [line.split() for line in done.stdout.splitlines()]
    assert header == ["command", "count", "µs", "each", "ms", "share"]
    assert last[0] == "all"
    assert last[-1] == "100.0%"
    assert float(last[-2]) == pytest.approx(
        sum(float(row[-2]) for row in rows), abs=0.001 * len(rows)
    )


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["-d", "1024"], "tg1 @ d1024 takes 1025 positions; the model has 1024"),
        (["-p", "25", "-d", "1000"], "pp25 @ d1000 takes 1025 positions; the model has 1024"),
    ],
)
def test_a_step_beyond_the_models_positions_is_refused(
    run_akunu: Run, arguments: list[str], refusal: str
) -> None:
    done = run_akunu("profile", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert refusal in done.stderr


def test_shares_are_of_what_the_same_run_measured(run_akunu: Run, ember: akunu.Model) -> None:
    done = run_akunu("profile", "-d", "40", "-r", "1", "--roofline", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    work = WorkModel.of(_core.GgufFile(ember.path).tensors, ember.config, "f16", 1)
    step = Step(0, 1, 40)
    counted = 0
    for kind in facts["kinds"]:
        todo = work.command_work(kind["name"], step)
        assert ("read_gb_per_s" in kind) == (todo.read_bytes > 0)
        if todo.read_bytes > 0:
            rate = todo.read_bytes / kind["seconds"] / 1e9
            assert kind["read_gb_per_s"] == pytest.approx(rate)
            assert kind["bandwidth_share"] == pytest.approx(rate / facts["limits"]["read_gb_per_s"])
            counted += kind["count"]
    # Of a layer: q, k and v, attention, its output, gate and up, down; and the logits.
    assert counted == 5 * ember.config.n_layers + 1

    table = run_akunu("profile", "-r", "1", "--roofline").stdout.splitlines()
    assert table[0].split()[-6:] == ["GB/s", "of", "reads", "Gop/s", "of", "peak"]
    assert table[-1].startswith("limits measured here")


def test_a_delta_rule_has_a_gate_of_its_own(tmp_path: Path, ember: akunu.Model) -> None:
    """Its command and that of a feed-forward network have one label: gate."""
    rows = {"attn_qkv": 64, "attn_gate": 32, "ssm_alpha": 4, "ffn_gate": 48}
    writer = GGUFWriter(tmp_path / "delta.gguf", "qwen35")
    for name, n in rows.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((n, 16), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensors = _core.GgufFile(str(tmp_path / "delta.gguf")).tensors
    work, step = WorkModel.of(tensors, ember.config, "f16", 1), Step(0, 1, 0)
    assert work.command_work("qkv, gate, a", step).read_bytes == 4 * (64 + 32 + 4) * 16
    assert work.command_work("gate, up, activation", step).read_bytes == 4 * 48 * 16


def test_what_is_before_a_step_has_been_computed(ember: akunu.Model) -> None:
    """Pages that nobody has written are one page of zeros, in a processor's first cache."""
    # One process for each: memory that was once used stays with it.
    script = (
        "import sys; from akunu import _core;"
        "_core.profile(sys.argv[1], device='cpu', kv_type='f32', depth=int(sys.argv[2]));"
        "print(next(x.split()[1] for x in open('/proc/self/status') if x.startswith('VmHWM')))"
    )

    def peak_kib(depth: int) -> int:
        done = subprocess.run(
            [sys.executable, "-c", script, str(ember.path), str(depth)],
            check=True,
            capture_output=True,
            text=True,
        )
        return int(done.stdout)

    config = ember.config
    depth = config.context_length - 1
    kv_kib = 2 * 4 * config.n_layers * config.n_kv_heads * config.head_dim * depth / 1024
    # A layer's first position may bring a page of 2 MiB with it, and others' first ones.
    assert peak_kib(depth) - peak_kib(0) > 0.5 * kv_kib


@each_line(
    ("arguments", "words"),
    [
        (["-r", "0"], "-r is 0; it must be 1 or more"),
        (["-p", "-1"], "-p is -1; it must be 0 or more"),
        (["-p", "100000"], "pp100000 takes 100000 positions; the model has 1024"),
        (["-d", "100000000"], "takes 100000001 positions; the model has 1024"),
        (["--device", "abacus"], 'no device "abacus"'),
    ],
)
def test_what_makes_no_sense_is_one_line(run_akunu: Run, arguments: list[str], words: str) -> None:
    done = run_akunu("profile", *arguments)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_kind_is_a_label_without_its_layer() -> None:
    labels = ["embedding", "layer 0 q, k, v", "layer 0 down", "layer 1 q, k, v", "layer 1 down"]
    kinds = by_kind([{"label": label, "seconds": 1.0} for label in labels], Step(0, 1, 0))
    assert Counter({kind.name: kind.count for kind in kinds}) == {
        "embedding": 1,
        "q, k, v": 2,
        "down": 2,
    }
