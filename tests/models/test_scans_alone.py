"""Mamba-2: a model all of whose layers scan, and whose cache keeps no keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS, changed
from recurrent_models import PAGE, check_cache, check_refusal

import akunu

# Of the golden model: four layers of 6 heads with 32 numbers and states of 48, in 2 groups.
LAYERS, INNER, STATE, GROUPS = 4, 6 * 32, 48, 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("mamba2"))


def test_the_cache_keeps_inputs_and_two_states(folder: Path) -> None:
    check_cache(folder, layers=LAYERS, convolved=INNER + 2 * GROUPS * STATE, state=INNER * STATE)


def test_a_published_config_is_read_without_a_word(folder: Path) -> None:
    """Keys as those of Codestral Mamba, beside the numbers of the model."""
    with akunu.load(folder, context=PAGE) as model:
        expected = model.logits(TOKENS[:30])
    changed(
        folder,
        norm_before_gate=False,
        rms_norm=True,
        time_step_limit=[0.0, float("inf")],
        torch_dtype="bfloat16",
        use_bias=False,
    )
    with akunu.load(folder, context=PAGE) as model:
        assert not any("akunu does not know" in note for note in model.notes), model.notes
        np.testing.assert_array_equal(model.logits(TOKENS[:30]), expected)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another length": ({"expand": 3}, "heads of that length are not expand * hidden_size"),
    "groups": ({"n_groups": 4}, "6 heads of a scan, of 32 numbers, do not go into 4 groups"),
    "a state": ({"state_size": 257}, "the state of a scan has 257 numbers"),
    "another state": ({"state_size": 24}, "layers.0.scan."),
    "a norm before": ({"norm_before_gate": True}, "akunu has the gate before the norm"),
    "no norm": ({"rms_norm": False}, "rms_norm is false"),
    "another activation": ({"hidden_act": "gelu"}, "akunu has silu for mamba2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])
