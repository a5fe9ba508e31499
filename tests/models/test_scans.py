"""Models whose layers scan (Mamba-2): what the cache keeps of them; nothing changes a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dense_golden
import pytest
from recurrent_models import check_cache, check_refusal

# Of the golden model: two layers that scan, of 6 heads of 32 numbers with states of 48 in 2 groups.
LAYERS, HEADS, HEAD_DIM, STATE = 2, 6, 32, 48
CONVOLVED = HEADS * HEAD_DIM + 2 * 2 * STATE
ATTENTION = 2 * 2 * 2 * 16  # keys and values of a position, in the two layers that attend


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("granitehybrid"))


def test_the_cache_keeps_inputs_and_two_states_in_f32(folder: Path) -> None:
    check_cache(
        folder,
        layers=LAYERS,
        convolved=CONVOLVED,
        state=HEADS * HEAD_DIM * STATE,
        of_position=ATTENTION,
    )


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"mamba_n_heads": 5}, "config.json: mamba_d_head is 32; heads of that length"),
    "groups": ({"mamba_n_groups": 4}, "6 heads of a scan, of 32 numbers, do not go into 4 groups"),
    "a state": ({"mamba_d_state": 257}, "the state of a scan has 257 numbers for each of a head"),
    "another state": ({"mamba_d_state": 32}, "layers.0.scan.in.weight is [582, 96]"),
    "a width of one": ({"mamba_d_conv": 1}, "the convolution before a scan is over 1 rows"),
    "limits": ({"time_step_limit": [0.1]}, "time_step_limit is a list; two numbers are needed"),
    "limits that cross": ({"time_step_limit": [2, 1]}, "the limits of a scan's steps of time are"),
    "another kind": (
        {"layer_types": ["mamba", "conv", "mamba", "attention"]},
        'config.json: layer_types holds "conv"',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])
