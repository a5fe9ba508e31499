"""Keys that published models with experts have, beside those that transformers writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_experts as rnd
from dense_golden import TOKENS
from engine import BOUND_F32_CACHE, opened, relative_error

from akunu.errors import UnsupportedModelError

pytestmark = pytest.mark.oracle

_TRAINED: dict[str, Any] = {
    "aux_loss_alpha": 0.001,
    "ep_size": 1,
    "moe_layer_freq": 1,
    "seq_aux": True,
}
# The family, and what its published config.json says that changes nothing.
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "DeepSeek-V2-Lite": ("deepseek2-lite-moe", {**_TRAINED, "scoring_func": "softmax"}),
    "DeepSeek-V2": ("deepseek2-moe-groups", {**_TRAINED, "scoring_func": "softmax"}),
    "DeepSeek-V3": (
        "deepseek3-moe",
        {
            **_TRAINED,
            "num_nextn_predict_layers": 0,
            "scoring_func": "sigmoid",
            "topk_method": "noaux_tc",
        },
    ),
    "Kimi K2": (
        "kimi-k2-moe",
        {
            **_TRAINED,
            "model_type": "kimi_k2",
            "num_nextn_predict_layers": 0,
            "scoring_func": "sigmoid",
            "topk_method": "noaux_tc",
        },
    ),
    "Kimi-Linear": (
        "kimi-linear-moe",
        {
            "first_k_dense_replace": 1,
            "head_dim": 72,
            "layer_types": None,
            "linear_attn_config": {
                "full_attn_layers": [3],
                "head_dim": 32,
                "kda_layers": [1, 2, 4],
                "num_heads": 6,
                "short_conv_kernel_size": 4,
            },
            "linear_conv_kernel_dim": None,
            "linear_head_dim": None,
            "linear_num_heads": None,
            "mla_use_nope": True,
            "mlp_layer_types": None,
            "moe_layer_freq": 1,
            "moe_router_activation_func": "sigmoid",
            "num_nextn_predict_layers": 0,
            "rope_scaling": None,
            "rope_theta": 10000.0,
            "use_grouped_topk": True,
        },
    ),
    "Nemotron 3 Nano": (
        "nemotron-h-moe",
        {
            "attention_head_dim": 32,
            "hybrid_override_pattern": "ME*EME",
            "layers_block_type": None,
            "mamba_ssm_cache_dtype": "float32",
            "moe_shared_expert_overlap": False,
            "n_shared_experts": 1,
            "time_step_limit": [0.0, float("inf")],
        },
    ),
    "Hunyuan-A13B": (
        "hunyuan-moe",
        {
            "attention_head_dim": 32,
            "capacity_factor": 1.0,
            "moe_drop_tokens": False,
            "moe_intermediate_size": [64] * 4,
            "moe_layer_num_skipped": 0,
            "moe_random_routing_dropped_token": False,
            "moe_topk": [3] * 4,
            "num_shared_expert": [1] * 4,
            "use_cla": False,
            "use_mixed_mlp_moe": True,
            "use_qk_norm": True,
        },
    ),
}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "other numbers in layers": (
        "hunyuan-moe",
        {"moe_topk": [3, 3, 2, 3]},
        "moe_topk is a list; akunu needs the same number in every layer",
    ),
    "two experts of all rows": (
        "hunyuan-moe",
        {"num_shared_expert": 2},
        "num_shared_expert is 2; akunu has 1",
    ),
    "softmax": (
        "deepseek3-moe",
        {"scoring_func": "softmax"},
        'scoring_func is "softmax"; akunu has "sigmoid" for deepseek_v3',
    ),
    "a softmax of Kimi-Linear": (
        "kimi-linear-moe",
        {"moe_router_activation_func": "softmax"},
        'moe_router_activation_func is "softmax"; akunu has "sigmoid" for kimi_linear',
    ),
    "a dense layer between others": (
        "kimi-linear-moe",
        {"mlp_layer_types": ["sparse", "dense", "sparse", "sparse"]},
        'akunu has "dense" layers first, and "sparse" ones behind',
    ),
    "positions": (
        "kimi-linear-moe",
        {"mla_use_nope": False},
        "mla_use_nope is false; akunu has the model without rotary positions",
    ),
    "stretched positions": (
        "kimi-linear-moe",
        {"rope_scaling": {"type": "yarn", "factor": 4.0}},
        "no number of this model rotates",
    ),
    "greedy": (
        "deepseek3-moe",
        {"topk_method": "greedy"},
        'topk_method is "greedy"; akunu has "noaux_tc"',
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_read_without_a_word(tmp_path: Path, name: str, oracle: Any) -> None:
    family, keys = PUBLISHED[name]
    model = rnd.model_of(family)
    folder = rnd.changed(rnd.save(tmp_path / "model", model), tmp_path / "changed", keys)
    with opened(folder, kv_type="f32") as opened_model:
        assert [note for note in opened_model.notes if "does not know" in note] == []
        logits = opened_model.logits(TOKENS[:40])
    assert relative_error(logits, oracle.logits(model, TOKENS[:40])) <= BOUND_F32_CACHE


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_computed_otherwise_is_refused(tmp_path: Path, case: str) -> None:
    family, keys, message = REFUSED[case]
    folder = rnd.save(tmp_path / "model", rnd.model_of(family))
    with (
        pytest.raises(UnsupportedModelError) as raised,
        opened(rnd.changed(folder, tmp_path / "changed", keys)),
    ):
        pass
    assert message in str(raised.value)
