"""tools/compare with a real llama.cpp; what it measures here says nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.make_synthetic import Shape, write

pytestmark = pytest.mark.oracle

REPOSITORY = Path(__file__).resolve().parents[2]


def test_speed_prints_a_table_and_saves_every_measurement(peer: str, tmp_path: Path) -> None:
    model, output = tmp_path / "model.gguf", tmp_path / "result.json"
    shape = Shape(
        architecture="qwen3", n_layers=2, dim=64, n_heads=2, n_kv_heads=1, head_dim=32,
        ffn_dim=128, vocab_size=2000, qk_norm=True,
    )  # fmt: skip
    write(model, shape, "Q8_0")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tools.compare", "speed", model, "--peer", peer),
            *("--tests", "pp600,tg8,tg8@40", "-r", "3", "-t", "1", "-o", output),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "CPU :" in done.stderr  # the peer's system info
    rows = [line for line in done.stdout.splitlines() if line.startswith("| model.gguf")]
    assert [row.split(" | ")[1] for row in rows] == ["pp600", "tg8", "tg8 @ d40"]
    result = json.loads(output.read_text())
    assert result["threads"] == 1
    for test in result["tests"]:
        for side in ("akunu", "peer"):
            assert len(test[f"{side}_seconds"]) == 3
            assert all(0 < seconds < 60 for seconds in test[f"{side}_seconds"])
