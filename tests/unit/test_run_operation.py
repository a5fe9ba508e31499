"""The border of `_core.run_operation`: what it refuses, what it catches, which level runs."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from akunu import _core, errors
from arithmetic import available_levels
from lines import each_line

N_ROWS, K, N = 3, 64, 5


def make_rows(n: int, sequence: int = 0) -> bytes:
    rows = np.zeros(n, _core.step_dtypes()["row"])
    rows["sequence"], rows["flags"], rows["last_position"] = sequence, 1, 100
    rows["position"] = rows["draw"] = rows["head_row"] = np.arange(n)
    rows["kv_length"] = rows["position"] + 1
    rows["adapter"] = 0xFFFFFFFF
    return rows.tobytes()


def run_matmul(**changes: Any) -> dict[Any, Any]:
    numbers = np.random.default_rng(1)
    weight = numbers.integers(-8, 8, (N, K)).astype(np.float32)
    call: dict[str, Any] = {
        "operation": "matmul",
        "operands": {
            "input": numbers.integers(-8, 8, (N_ROWS, K)).astype(np.float32),
            "weight": ("f32", N, K, weight.view(np.uint8)),
            "out": np.zeros((N_ROWS, N), np.float32),
        },
        "params": struct.pack("<4I", N, K, 0, 0),
        "rows": make_rows(N_ROWS),
        **changes,
    }
    call["operands"] |= changes.get("also", {})
    call.pop("also", None)
    result = _core.run_operation(**call)
    result["expected"] = call["operands"]["input"] @ weight.T
    return result


@each_line("threads", [1, 2, 3])
@each_line("device", [d["backend"] for d in _core.devices()])
def test_it_runs_the_operation_and_returns_what_was_written(device: str, threads: int) -> None:
    result = run_matmul(device=device, threads=threads)
    out = result[2].view(np.float32).reshape(N_ROWS, N)
    np.testing.assert_array_equal(out, result["expected"])  # small integers: sums are exact
    assert 0 not in result, "operands that are only read are not returned"
    assert result["statuses"] == {}
    assert result["rows"].tobytes() == make_rows(N_ROWS)


def test_rows_outside_the_pass_stay_unwritten() -> None:
    result = run_matmul(first_row=1, n_rows=1)
    out = result[2].reshape(N_ROWS, N * 4)
    assert np.all(out[[0, 2]] == 0xFF)
    np.testing.assert_array_equal(out[1].view(np.float32), result["expected"][1])


def test_a_write_next_to_an_operand_is_caught() -> None:
    short = np.zeros(N_ROWS * N - 1, np.float32)
    with pytest.raises(errors.DeviceError, match="wrote outside operand out"):
        run_matmul(also={"out": short})


@each_line(
    ("changes", "message"),
    [
        ({"operation": "matmull"}, "no operation 'matmull'"),
        ({"device": "abacus"}, 'no device "abacus"; known are auto'),
        ({"isa": "sse9"}, "not one of generic"),
        ({"threads": 257}, "256 or fewer"),
        ({"cache": "f17"}, "no format 'f17'"),
        ({"activation": "f17"}, "possible are f32, f16, bf16, q8_32"),
        ({"row_class": "all"}, "possible are single, few, many"),
        ({"extent": "columns"}, "possible are rows and head_rows"),
        ({"params": b"\0" * 12}, "takes 16 bytes of parameters, got 12"),
        ({"rows": b"\0" * 65}, "expected a multiple of 64"),
        ({"spans": b"\0" * 15}, "expected a multiple of 16"),
        ({"n_rows": 4}, "rows 0 to 4 are not all there: 3"),
        ({"spans": struct.pack("<4I", 0, 2, 2, 0)}, "a span's rows 2 to 4"),
        ({"rows": make_rows(3, 7), "sequences": bytes(256)}, "sequence 7 of 1"),
        ({"also": {"wieght": np.zeros(1)}}, "no operand wieght"),
        ({"also": {3: np.zeros(1)}}, "no operand 3"),
        ({"also": {"input": [1.0]}}, "input must be an array"),
        ({"also": {"input": np.zeros((4, 4)).T[1:]}}, "C-contiguous"),
        ({"also": {"weight": np.zeros(4)}}, r"tuple \(format, rows, k, bytes\)"),
        ({"also": {"weight": ("q4_0", 1, 33, np.zeros(18, np.uint8))}}, "multiple of 32"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_wrong_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        run_matmul(**changes)


def test_a_missing_kernel_and_a_missing_operand_are_named() -> None:
    with pytest.raises(errors.UnsupportedModelError, match="no kernel matmul"):
        run_matmul(activation="bf16")
    with pytest.raises(errors.ArgumentError, match="matmul needs operand input"):
        _core.run_operation("matmul", operands={}, params=bytes(16), rows=make_rows(1))


def test_devices_say_what_they_are() -> None:
    cpu = next(device for device in _core.devices() if device["backend"] == "cpu")
    assert cpu["level"] in available_levels()
    assert cpu["name"]
    assert cpu["reason"]
    assert 1 <= cpu["workers"] <= 256
    assert 0 < cpu["available_bytes"] <= cpu["memory_bytes"]


def test_the_environment_forces_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKUNU_CPU_ISA", "generic")
    assert next(d for d in _core.devices() if d["backend"] == "cpu")["level"] == "generic"
    monkeypatch.setenv("AKUNU_CPU_ISA", "mmx")
    with pytest.raises(errors.ArgumentError, match=r'"mmx" .from AKUNU_CPU_ISA.'):
        _core.devices()
