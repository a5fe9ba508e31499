"""SmolLM2 as MLX quantises it, beside MLX itself.

AKUNU_MLX_PYTHON names an interpreter with the packages mlx-lm and mlx (on Linux `mlx[cpu]`).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu

pytestmark = [pytest.mark.real, pytest.mark.oracle]

# mlx-lm reads rope_theta where transformers 5 writes rope_parameters; akunu reads both.
_CONVERT = """
import json
import sys
import mlx.core as mx
import numpy as np
from mlx_lm import convert, load
source, folder, bits, mode, tokens = sys.argv[1:]
convert(source, mlx_path=folder, quantize=True, q_bits=int(bits), q_mode=mode,
        q_group_size=32 if mode == "mxfp4" else 64, dtype="float32")
config = json.load(open(folder + "/config.json"))
config["rope_theta"] = config["rope_parameters"]["rope_theta"]
json.dump(config, open(folder + "/config.json", "w"))
model, _ = load(folder)
logits = model(mx.array([[int(token) for token in tokens.split(",")]])).astype(mx.float32)
np.save(folder + ".npy", np.array(logits[0]))
"""
TEXT = "The license applies to all parts of the Program, and to any work based on it."


@pytest.fixture(scope="module")
def mlx_python() -> str:
    """An interpreter that has MLX."""
    python = os.environ.get("AKUNU_MLX_PYTHON")
    if not python:
        pytest.skip("AKUNU_MLX_PYTHON names no interpreter with mlx-lm")
    return python


@pytest.mark.parametrize(
    ("bits", "mode"),
    [(3, "affine"), (4, "affine"), (6, "affine"), (8, "affine"), (4, "mxfp4")],
    ids=lambda value: str(value),
)
def test_logits_are_those_of_mlx(
    saved: Any, mlx_python: str, tmp_path: Path, bits: int, mode: str
) -> None:
    source, folder = saved("float32"), tmp_path / "mlx"
    tokens = akunu.Tokenizer.from_directory(source).encode(TEXT)
    listed = ",".join(map(str, tokens))
    subprocess.run(
        [mlx_python, "-c", _CONVERT, str(source), str(folder), str(bits), mode, listed],
        check=True,
        capture_output=True,
    )
    expected = np.load(f"{folder}.npy")
    with akunu.load(folder, context=512, kv_type="f32") as model:
        ours = model.logits(tokens)
    error = float(np.abs(ours - expected).max() / np.abs(expected).max())
    print(bits, mode, error)
    assert error <= 1e-2
