"""The importance matrix of SmolLM2 beside mean squares that transformers' layers were given."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.cli.main import main
from akunu.convert.importance import ImportanceMatrix

pytestmark = [pytest.mark.real, pytest.mark.oracle]

CHUNK = 128
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def test_mean_squares_are_those_of_transformers(
    saved: Any, transformers: Any, tmp_path: Path
) -> None:
    import torch

    folder = saved("float32")
    model_file, text, target = (tmp_path / name for name in ("m.gguf", "text.txt", "imatrix.gguf"))
    text.write_text((Path(__file__).parents[2] / "docs" / "glossary.md").read_text()[:3000])
    assert main(["convert", str(folder), str(model_file)]) == 0
    arguments = ["--context", str(CHUNK), "--chunks", "1", "--device", "cpu"]
    assert main(["imatrix", str(model_file), str(text), "-o", str(target), *arguments]) == 0
    means = ImportanceMatrix.read(target).means
    tokenizer = akunu.Tokenizer.from_gguf(model_file)
    chunk = tokenizer.encode(text.read_text())[:CHUNK]
    if tokenizer.add_bos and tokenizer.bos_id is not None:
        chunk[0] = tokenizer.bos_id
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    seen: dict[str, Any] = {}

    def watch(name: str) -> Any:
        return lambda module, inputs: seen.__setitem__(name, inputs[0][0].square().mean(0).numpy())

    for number, layer in enumerate(model.model.layers):
        for name, stem in NAMES.items():
            layer.get_submodule(name).register_forward_pre_hook(
                watch(f"blk.{number}.{stem}.weight")
            )
    with torch.no_grad():
        model(torch.tensor([chunk]))
    assert len(seen) == len(NAMES) * 30
    for name, expected in seen.items():
        found = means[name].reshape(-1)
        smallest = 1e-4 * expected.max()
        np.testing.assert_allclose(found, expected, rtol=2e-2, atol=smallest, err_msg=name)
