"""Deliberate mistakes, written into the model file.

Each file makes a correct engine compute what an engine with that mistake would compute from the
right file, so it shows that the comparison is able to fail. (A shifted causal mask cannot be
written into a file: there, the other side of the comparison makes the mistake.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf_file import deinterleave, interleave
from numpy_forward import Variant
from random_models import ModelCase, ModelSpec, Weights, build


def _always(spec: ModelSpec) -> bool:
    return True


def _nothing(spec: ModelSpec) -> dict[str, Any]:
    return {}


def _same(spec: ModelSpec, weights: Weights) -> Weights:
    return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One mistake: other numbers in the metadata, or other weights, or both."""

    applies: Callable[[ModelSpec], bool] = _always
    overrides: Callable[[ModelSpec], dict[str, Any]] = _nothing
    change: Callable[[ModelSpec, Weights], Weights] = _same
    variant: Variant | None = None  # the same mistake in `numpy_forward`, where it has it

    def build(self, case: ModelCase, path: Path) -> ModelCase:
        """`case` again, with the mistake, at `path`."""
        return build(
            case.kind,
            path,
            seed=case.seed,
            weight_format=case.weight_format,
            change=self.change,
            **self.overrides(case.spec),
        )


def _other_rope_style(spec: ModelSpec, weights: Weights) -> Weights:
    """Reorder Q and K so that the file's own style rotates the pairs of the other one."""
    reorder = interleave if spec.architecture == "llama" else deinterleave
    heads = {"q_proj": spec.n_heads, "k_proj": spec.n_kv_heads, "q_norm": 1, "k_norm": 1}
    changed = dict(weights)
    for name, data in weights.items():
        for part, n_heads in heads.items():
            if f".{part}." in name:
                changed[name] = reorder(data, n_heads)
    return changed


def _modulo_heads(spec: ModelSpec, weights: Weights) -> Weights:
    """Move query heads, with their columns of the output, to where h % n_kv_heads puts them."""
    order = [
        head
        for kv_head in range(spec.n_kv_heads)
        for head in range(spec.n_heads)
        if head % spec.n_kv_heads == kv_head
    ]
    rows = np.arange(spec.q_dim).reshape(spec.n_heads, -1)[order].ravel()
    changed = dict(weights)
    for name, data in weights.items():
        if ".q_proj." in name:
            changed[name] = data[rows]
        elif name.endswith("o_proj.weight"):
            changed[name] = np.ascontiguousarray(data[:, rows])
    return changed


def _unscaled_embedding(spec: ModelSpec, weights: Weights) -> Weights:
    """What the engine multiplies by sqrt(dim) is divided by it; the head keeps its own."""
    table = weights["model.embed_tokens.weight"]
    scaled = table / np.float32(np.sqrt(spec.dim))
    return {**weights, "model.embed_tokens.weight": scaled, "lm_head.weight": table}


def _one_added_again(spec: ModelSpec, weights: Weights) -> Weights:
    return {name: data + np.float32("norm" in name) for name, data in weights.items()}


def _filled(ending: str, value: float) -> Callable[[ModelSpec, Weights], Weights]:
    def change(spec: ModelSpec, weights: Weights) -> Weights:
        assert any(name.endswith(ending) for name in weights)
        return {
            name: np.full_like(data, value) if name.endswith(ending) else data
            for name, data in weights.items()
        }

    return change


MUTATIONS: dict[str, Mutation] = {
    # Where most layers have another base, one layer must be felt through them.
    "rope-base-too-high": Mutation(
        overrides=lambda spec: {
            "rope_theta": spec.rope_theta * (2 if spec.architecture == "gemma3" else 1.05)
        }
    ),
    "windowed-rope-base-5-percent": Mutation(
        applies=lambda spec: spec.architecture == "gemma3",
        overrides=lambda spec: {"windowed_rope_theta": (spec.windowed_rope_theta or 10000) * 1.05},
    ),
    "rope-style": Mutation(change=_other_rope_style, variant=Variant(swap_rope_style=True)),
    "rope-factors-ignored": Mutation(
        applies=lambda spec: spec.rope_factors is not None,
        overrides=lambda spec: {"rope_factors": None},
    ),
    "rope-linear-factor-ignored": Mutation(
        applies=lambda spec: spec.rope_linear_factor != 1.0,
        overrides=lambda spec: {"rope_linear_factor": 1.0},
    ),
    "epsilon-of-its-own": Mutation(overrides=lambda spec: {"norm_epsilon": 1e-5}),
    "q-bias-dropped": Mutation(
        applies=lambda spec: spec.qkv_bias, change=_filled("q_proj.bias", 0.0)
    ),
    "k-bias-dropped": Mutation(
        applies=lambda spec: spec.qkv_bias, change=_filled("k_proj.bias", 0.0)
    ),
    "v-bias-dropped": Mutation(
        applies=lambda spec: spec.qkv_bias, change=_filled("v_proj.bias", 0.0)
    ),
    "output-bias-dropped": Mutation(
        applies=lambda spec: spec.output_bias, change=_filled("o_proj.bias", 0.0)
    ),
    **{
        f"{part}-bias-dropped": Mutation(
            applies=lambda spec: spec.ffn_bias, change=_filled(f"{part}_proj.bias", 0.0)
        )
        for part in ("gate", "up", "down")
    },
    "q-norm-weight-ignored": Mutation(
        applies=lambda spec: spec.qk_norm, change=_filled("q_norm.weight", 1.0)
    ),
    "k-norm-weight-ignored": Mutation(
        applies=lambda spec: spec.qk_norm, change=_filled("k_norm.weight", 1.0)
    ),
    "attention-post-norm-weight-ignored": Mutation(
        applies=lambda spec: spec.post_norms,
        change=_filled("post_attention_layernorm.weight", 1.0),
    ),
    "ffn-post-norm-weight-ignored": Mutation(
        applies=lambda spec: spec.post_norms,
        change=_filled("post_feedforward_layernorm.weight", 1.0),
    ),
    "embedding-scale-ignored": Mutation(
        applies=lambda spec: spec.is_gemma,
        overrides=lambda spec: {"tied": False},
        change=_unscaled_embedding,
    ),
    "one-added-to-norms-again": Mutation(
        applies=lambda spec: spec.is_gemma, change=_one_added_again
    ),
    "attention-soft-cap-ignored": Mutation(
        applies=lambda spec: spec.attention_soft_cap is not None,
        overrides=lambda spec: {"attention_soft_cap": 0.0},
    ),
    "logit-soft-cap-ignored": Mutation(
        applies=lambda spec: spec.logit_soft_cap is not None,
        overrides=lambda spec: {"logit_soft_cap": 0.0},
    ),
    "attention-scale-ignored": Mutation(
        applies=lambda spec: spec.attention_scale is not None,
        overrides=lambda spec: {"attention_scale": None},
    ),
    "window-ignored": Mutation(
        applies=lambda spec: spec.window is not None, overrides=lambda spec: {"window": 100000}
    ),
    **{
        f"window-{offset:+d}": Mutation(
            applies=lambda spec: spec.window is not None,
            overrides=lambda spec, offset=offset: {"window": spec.window + offset},
        )
        for offset in (-1, 1)
    },
    "windows-in-the-other-layers": Mutation(
        applies=lambda spec: spec.window is not None,
        overrides=lambda spec: {"window_pattern": tuple(not each for each in spec.windowed)},
    ),
    "one-rope-base-for-all-layers": Mutation(
        applies=lambda spec: spec.architecture == "gemma3",
        overrides=lambda spec: {"windowed_rope_theta": spec.rope_theta},
    ),
    "gqa-modulo": Mutation(
        applies=lambda spec: 1 < spec.n_kv_heads < spec.n_heads,
        change=_modulo_heads,
        variant=Variant(modulo_heads=True),
    ),
}


def applicable(specs: dict[str, ModelSpec], kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    """Every (kind, mutation) that makes sense."""
    return [
        (kind, name)
        for kind in kinds
        for name, mutation in MUTATIONS.items()
        if mutation.applies(specs[kind])
    ]
