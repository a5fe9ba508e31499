"""Models whose layers are one part alone (Nemotron-H): how files say it, what the cache keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS, changed
from engine import finished, start
from recurrent_models import PAGE, check_cache, check_refusal

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from akunu.errors import ModelFormatError

# Of the golden model: two layers that scan, two that attend, two feed-forward networks.
CONVOLVED = 6 * 32 + 2 * 2 * 48
STATE = 6 * 32 * 48
ATTENTION = 2 * 2 * 2 * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("nemotron-h"))


def test_feed_forward_layers_keep_nothing(folder: Path) -> None:
    check_cache(folder, layers=2, convolved=CONVOLVED, state=STATE, of_position=ATTENTION)


def test_the_pattern_of_older_files_says_the_same(folder: Path) -> None:
    with akunu.load(folder, context=PAGE) as model:
        expected = model.logits(TOKENS[:30])
    changed(folder, layers_block_type=None, hybrid_override_pattern="M-*-M*")
    with akunu.load(folder, context=PAGE) as model:
        np.testing.assert_array_equal(model.logits(TOKENS[:30]), expected)
        assert not any("akunu does not know" in note for note in model.notes)


def test_a_published_config_is_read_without_a_word(folder: Path) -> None:
    """Keys as those of Nemotron-Nano-9B-v2, beside the numbers of the model."""
    changed(
        folder,
        layers_block_type=None,
        hybrid_override_pattern="M-*-M*",
        attention_head_dim=32,
        rms_norm_eps=0.03,
        time_step_limit=[0.0, float("inf")],
        torch_dtype="bfloat16",
    )
    with akunu.load(folder, context=PAGE) as model:
        assert not any("akunu does not know" in note for note in model.notes), model.notes
    changed(folder, rms_norm_eps=0.3)
    with pytest.raises(ModelFormatError, match=r"rms_norm_eps is 0.3\d*; layer_norm_epsilon is"):
        akunu.load(folder)


def test_a_file_of_gguf_and_texts_that_go_on(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["Q8_0"])).write(target)
    with (
        akunu.load(target, context=512, prefix_cache=False) as cold,
        akunu.load(target, context=512) as warm,
    ):
        prompt = TOKENS[:200]
        for _ in range(3):
            text = finished(start(cold, prompt, 8))
            generation = start(warm, prompt, 8)
            assert finished(generation) == text
            prompt = [*prompt, *text, 7]
        assert generation.cached_tokens > 200
        session = warm.session()
        session.append(TOKENS[:60])
        first = session.generate(max_tokens=10).token_ids
        session.rewind(40)
        session.append(TOKENS[40:60])
        assert session.generate(max_tokens=10).token_ids == first


MIXED = ["linear_attention", "mlp", "full_attention", "mlp", "linear_attention"]
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "experts": (
        {"layers_block_type": [*MIXED, "moe"]},
        "akunu has experts in all feed-forward layers, or in none",
    ),
    "experts of older files": (
        {"layers_block_type": None, "hybrid_override_pattern": "M-*-ME"},
        'hybrid_override_pattern is "M-*-ME"; akunu has experts in all feed-forward layers',
    ),
    "another letter": (
        {"layers_block_type": None, "hybrid_override_pattern": "M-*-MX"},
        'config.json: hybrid_override_pattern is "M-*-MX"; akunu has M for a scan',
    ),
    "experts of latents": (
        {"layers_block_type": None, "hybrid_override_pattern": "ME*EM*", "moe_latent_size": 64},
        "moe_latent_size is 64; akunu has experts as wide as the residual",
    ),
    "no list": ({"layers_block_type": None}, "config.json: num_hidden_layers is missing"),
    "no list, but a number": (
        {"layers_block_type": None, "num_hidden_layers": 6},
        "config.json: layers_block_type is missing",
    ),
    "another number of layers": (
        {"num_hidden_layers": 7},
        "config.json lists 6 layers and has 7",
    ),
    "another activation": ({"mlp_hidden_act": "silu"}, 'mlp_hidden_act is "silu"; akunu has relu2'),
    "another order": (
        {"layers_block_type": ["mlp", *MIXED]},
        "tensor layers.0.",
    ),
    "groups": ({"n_groups": 4}, "6 heads of a scan, of 32 numbers, do not go into 4 groups"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])
