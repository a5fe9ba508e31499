"""Models whose layers scan beside their attention (Falcon-H1): what is kept, what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS
from recurrent_models import check_cache, check_refusal

import akunu
from akunu.errors import UnsupportedModelError

# Of the golden model: four layers, of 6 heads of 32 numbers with states of 48 in 2 groups.
LAYERS, HEADS, HEAD_DIM, STATE = 4, 6, 32, 48
CONVOLVED = HEADS * HEAD_DIM + 2 * 2 * STATE
ATTENTION = LAYERS * 2 * 2 * 16  # keys and values of a position


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("falcon-h1"))


def test_each_layer_keeps_states_and_positions(folder: Path) -> None:
    check_cache(
        folder,
        layers=LAYERS,
        convolved=CONVOLVED,
        state=HEADS * HEAD_DIM * STATE,
        of_position=ATTENTION,
    )


def test_each_layer_sees_all_positions(folder: Path) -> None:
    with akunu.load(folder, context=256) as model:
        assert model.config.windows == (0,) * LAYERS


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"mamba_n_heads": 5}, "config.json: mamba_d_head is 32; mamba_n_heads heads of that"),
    "the length of a scan": ({"mamba_d_ssm": None}, "are not 1024 numbers"),
    "a norm before the gate": (
        {"mamba_norm_before_gate": True},
        "mamba_norm_before_gate is true; akunu has the gate before the norm",
    ),
    "biases": ({"projectors_bias": True}, "akunu has no biases beside factors"),
    "a factor of 0": ({"key_multiplier": 0}, "key_multiplier is 0; it must be above 0"),
    "too few factors": ({"ssm_multipliers": [1, 1]}, "ssm_multipliers is a list; 5 numbers"),
    "a factor of a list": ({"mlp_multipliers": [1, -1]}, "mlp_multipliers is a list; it must be"),
    "no norm": ({"mamba_rms_norm": False}, "layers.0.mamba.norm.weight"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])


def test_a_published_config_is_read_without_a_word(folder: Path) -> None:
    """Keys as those of Falcon-H1-0.5B-Instruct, beside the numbers of the model."""
    dense_golden.changed(
        folder,
        head_dim=16,
        mamba_use_mlp=True,
        mlp_expansion_factor=8,
        rope_parameters=None,
        rope_scaling=None,
        rope_theta=1e11,
        time_step_limit=None,
        torch_dtype="bfloat16",
    )
    with akunu.load(folder, context=256) as model:
        assert not any("akunu does not know" in note for note in model.notes), model.notes
        assert model.config.rope_theta == np.float32(1e11)


def test_factors_may_be_left_out(folder: Path) -> None:
    """Then they are 1, as an explicit 1 is."""
    config = json.loads((folder / "config.json").read_text())
    ones = {
        key: [1.0] * len(value) if isinstance(value, list) else 1.0
        for key, value in config.items()
        if key.endswith(("_multiplier", "_multipliers"))
    }
    assert len(ones) == 9
    found = []
    for factors in (ones, dict.fromkeys(ones)):
        (folder / "config.json").write_text(json.dumps(config | factors))
        with akunu.load(folder, context=256) as model:
            found.append(model.logits(TOKENS[:40]))
    np.testing.assert_array_equal(found[0], found[1])


def test_directories_of_mlx_are_refused(tmp_path: Path) -> None:
    """Which weights were multiplied there depends on the version of mlx_lm."""
    golden = dense_golden.load("falcon-h1")
    shapes = {
        name: [shape[0], shape[2], 1] if name.endswith("conv1d.weight") else shape
        for name, shape in golden.shapes.items()
    }
    folder = dense_golden.write(tmp_path / "model", dataclasses.replace(golden, shapes=shapes))
    with pytest.raises(UnsupportedModelError, match="use the directory that it was made from"):
        akunu.load(folder)
