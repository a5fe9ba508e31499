"""Files that keep several matrices in one tensor: the engine reads each where it lies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from engine import chunked, opened
from numpy.typing import NDArray
from random_models import ModelCase, build, random_tokens

import akunu
from lines import each_line

# Name in a file with a tensor for each: the tensor that it is part of, and which part from the top.
# These are phi3's.
_PARTS = {
    "attn_q": ("attn_qkv", 0),
    "attn_k": ("attn_qkv", 1),
    "attn_v": ("attn_qkv", 2),
    "ffn_gate": ("ffn_up", 0),
    "ffn_up": ("ffn_up", 1),
}
_COUNTS = {"attn_qkv": 3, "ffn_up": 2}


class FusingWriter(gguf.GGUFWriter):
    """Writes query, key and value as one tensor, and the gate above the rows of up."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting: dict[str, dict[int, NDArray[Any]]] = {}

    def add_tensor(self, name: str, tensor: NDArray[Any], **options: Any) -> None:
        *place, module, suffix = name.split(".")
        if module not in _PARTS:
            super().add_tensor(name, tensor, **options)
            return
        fused, index = _PARTS[module]
        whole = ".".join([*place, fused, suffix])
        parts = self._waiting.setdefault(whole, {})
        parts[index] = tensor
        if len(parts) == _COUNTS[fused]:
            together = np.concatenate([parts[i] for i in range(len(parts))])
            super().add_tensor(whole, together, **options)
            del self._waiting[whole]


Fused = Callable[..., ModelCase]


@pytest.fixture
def fused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fused:
    """`fused(kind, ...)`: what `build` makes, with fewer tensors."""

    def make(kind: str, **options: Any) -> ModelCase:
        with monkeypatch.context() as patch:
            patch.setattr(gguf, "GGUFWriter", FusingWriter)
            return build(kind, tmp_path / "fused.gguf", **options)

    return make


@each_line(
    ("kind", "options"),
    [
        ("llama-linear", {}),  # has a bias on each of the seven matrices
        ("llama-linear", {"vector_format": "f16"}),
        ("llama-32", {"weight_format": "q8_0"}),
        ("qwen2-32", {"weight_format": "q4_0"}),
        ("qwen3-256", {"weight_format": "q6_k"}),
    ],
    ids=["f32", "f16 biases", "q8_0", "q4_0", "q6_k"],
)
def test_a_model_with_fused_tensors_is_the_same_bit_for_bit(
    tmp_path: Path, fused: Fused, device: str, kind: str, options: dict[str, str]
) -> None:
    apart = build(kind, tmp_path / "apart.gguf", seed=5, **options)
    together = fused(kind, seed=5, **options)
    names = [tensor.name for tensor in gguf.GGUFReader(together.path).tensors]
    assert "blk.2.attn_qkv.weight" in names
    assert not any("attn_q." in name or "ffn_gate" in name for name in names)
    tokens = random_tokens(apart.spec, 25, seed=1)
    for chunks, roles in (([], "prompt"), ([16, 1, 8], "generated")):
        logits = []
        for case in (apart, together):
            with opened(case.path, device=device) as model:
                logits.append(chunked(model, tokens, chunks, roles))
        assert np.array_equal(logits[0], logits[1])


def test_rows_that_the_models_numbers_do_not_ask_for_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(FusingWriter):
        def add_tensor(self, name: str, tensor: NDArray[Any], **options: Any) -> None:
            if name == "blk.1.attn_v.weight":
                tensor = tensor[:-1]
            super().add_tensor(name, tensor, **options)

    monkeypatch.setattr(gguf, "GGUFWriter", Short)
    path = build("llama-32", tmp_path / "model.gguf", seed=1).path
    message = (
        "model.gguf: tensor blk.1.attn_qkv.weight has 159 rows; the model's numbers ask for 160: "
        "96 of attention.q, 32 of attention.k, 32 of attention.v"
    )
    with pytest.raises(akunu.ModelFormatError, match=message):
        akunu.load(path, device="cpu", context=256, threads=1)


def test_a_tensor_may_not_be_there_both_alone_and_as_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Twice(FusingWriter):
        def add_tensor(self, name: str, tensor: NDArray[Any], **options: Any) -> None:
            super().add_tensor(name, tensor, **options)
            if name == "blk.0.ffn_gate.weight":
                super(FusingWriter, self).add_tensor(name, tensor, **options)

    monkeypatch.setattr(gguf, "GGUFWriter", Twice)
    path = build("llama-32", tmp_path / "model.gguf", seed=1).path
    with pytest.raises(
        akunu.ModelFormatError, match=r"is layers\.0\.ffn\.gate\.weight, which the file has under"
    ):
        akunu.load(path, device="cpu", context=256, threads=1)
