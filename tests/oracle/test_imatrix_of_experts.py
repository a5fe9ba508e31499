"""Importance of experts: the mean squares of what transformers' own experts were given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_experts as rnd
import torch
from dense_golden import TOKENS
from family_case import Case
from gguf import GGUFReader

from akunu import _core
from akunu.cli.main import main
from akunu.convert.importance import ImportanceMatrix

pytestmark = pytest.mark.oracle

FEW = TOKENS[:6]  # so that some experts are never chosen

# What an expert's down projection is given: (module, weight of gate and up, bias, rows).
_HIDDEN = {
    "qwen3-moe": lambda experts, e, x: _silu_gated(x @ experts.gate_up_proj[e].T),
    "gpt-oss": lambda experts, e, x: experts._apply_gate(
        x @ experts.gate_up_proj[e] + experts.gate_up_proj_bias[e]
    ),
}


def _silu_gated(both: Any) -> Any:
    gate, up = both.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def squares_of_transformers(family: str, tokens: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By GGUF's names: sums of squares [experts, k], and how many rows they are of."""
    model = rnd.model_of(family)
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def look(layer: int) -> Any:
        def hook(experts: Any, inputs: tuple[Any, ...]) -> None:
            x, chosen = inputs[0].reshape(-1, inputs[0].shape[-1]), inputs[1]
            n = experts.num_experts
            rows = [x[(chosen == e).any(dim=-1)].double() for e in range(n)]
            hidden = [_HIDDEN[family](experts, e, rows[e].float()).double() for e in range(n)]
            counts = np.array([len(each) for each in rows])
            for kind, of in (("gate", rows), ("up", rows), ("down", hidden)):
                sums = np.stack([each.square().sum(0).numpy() for each in of])
                found[f"blk.{layer}.ffn_{kind}_exps.weight"] = (sums, counts)

        return hook

    for number, layer in enumerate(model.model.layers):
        layer.mlp.experts.register_forward_pre_hook(look(number))
    with torch.no_grad():
        model(torch.tensor([list(tokens)]))
    return found


@pytest.fixture(scope="module", params=list(_HIDDEN))
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, oracle: Any
) -> Case:
    return Case(rnd, request.param, tmp_path_factory.mktemp("imatrix"), oracle)


@pytest.mark.parametrize("device", ["cpu", "metal-emulated"])
def test_squares_of_each_expert_are_those_of_transformers(case: Case, device: str) -> None:
    expected = squares_of_transformers(case.family, FEW)
    observer = _core.InputObserver(
        os.fspath(case.gguf("F32")), context=len(FEW), device=device, threads=2
    )
    observer.add(list(FEW))
    squares = observer.squares
    assert any((counts == 0).any() for _, counts in expected.values())
    for name, (sums, counts) in expected.items():
        ours, rows = squares[name]
        assert rows.tolist() == counts.tolist(), name
        # The cache holds keys and values in F16: two thousandths, as test_logits.py allows.
        np.testing.assert_allclose(ours, sums, rtol=2e-2, atol=1e-3 * sums.max(), err_msg=name)
    router, rows = squares["blk.1.ffn_gate_inp.weight"]
    assert (router.shape, rows.tolist()) == ((1, 96), [len(FEW)])


def test_a_longer_text_adds_to_what_was_seen(case: Case) -> None:
    observer = _core.InputObserver(os.fspath(case.gguf("F32")), context=len(FEW), device="cpu")
    observer.add(list(FEW))
    once = observer.squares
    observer.add(list(FEW))
    for name, (sums, rows) in observer.squares.items():
        # Sums in double; of rows that are added to others, each addition rounds anew.
        np.testing.assert_allclose(sums, 2 * once[name][0], rtol=2 * len(FEW) * 2.0**-53)
        np.testing.assert_array_equal(rows, 2 * once[name][1])


def test_experts_that_were_never_chosen_are_told_and_count_evenly(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, made = case.gguf("F32"), tmp_path / "imatrix.gguf", tmp_path / "q8.gguf"
    observer = _core.InputObserver(os.fspath(source), context=len(FEW), device="cpu")
    observer.add(list(FEW))
    squares = observer.squares
    matrix = ImportanceMatrix.of_squares(squares, ("t.txt",), 1)
    matrix.write(target, {name: rows for name, (_, rows) in squares.items()}, len(FEW), force=False)

    tensors = {each.name: each.data for each in GGUFReader(target).tensors}
    for name, (sums, rows) in squares.items():
        np.testing.assert_allclose(tensors[f"{name}.in_sum2"], sums, rtol=1e-6)
        np.testing.assert_array_equal(tensors[f"{name}.counts"].reshape(-1), rows)
    read = ImportanceMatrix.read(target)
    n_unseen = sum(int((rows == 0).sum()) for _, rows in squares.values())
    n_experts = sum(len(rows) for _, rows in squares.values() if len(rows) > 1)
    assert read.unseen == matrix.unseen
    assert sum(read.unseen.values()) == n_unseen > 0
    name = next(iter(read.unseen))
    is_unseen = squares[name][1] == 0
    np.testing.assert_array_equal(read.means[name][is_unseen], 1)

    assert main(["quantize", str(source), str(made), "Q8_0", "--imatrix", str(target)]) == 0
    said = capsys.readouterr().err
    assert f"no token went to {n_unseen} of {n_experts} experts' matrices" in said
