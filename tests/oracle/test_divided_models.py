"""Mixtures of experts on several devices together, here CPUs of this process, and transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine import BOUND_F32_CACHE, relative_error

from akunu import _core

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from random_experts import model_of, save  # noqa: E402


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["qwen3-moe", "qwen2-moe", "mixtral"])
def test_shares_of_experts_add_up(family: str, tmp_path: Path) -> None:
    model = model_of(family)
    folder = save(tmp_path / "model", model)
    tokens = [int(token) for token in np.random.RandomState(3).randint(0, 300, 60)]
    with torch.no_grad():
        expected = model(torch.tensor([tokens])).logits[0].numpy()
    native = _core.NativeLoad(
        folder,
        device="cpu",
        context=512,
        threads=1,
        kv_type="f32",
        kv_memory=None,
        gpus=2,
        prefix_cache=True,
        max_waiting=4,
    ).result()
    for chunks, role in (([30, 30], "prompt"), ([1] * 60, "generated"), ([15] * 4, "generated")):
        logits = native.logits_chunked(np.array(tokens, np.uint32), chunks=chunks, roles=role)
        assert relative_error(logits, expected) < BOUND_F32_CACHE
    native.close()
