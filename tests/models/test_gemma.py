"""What Gemma's files may say, and what they leave to the family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import gguf_file
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, MUTATION_FACTOR, opened, relative_error
from golden_values import N_TOKENS, SEED
from numpy_forward import NumpyModel, Variant
from random_models import KINDS, ModelCase, ModelSpec, Weights, build, random_tokens

import akunu

Cases = Callable[..., ModelCase]


def large_scores(spec: ModelSpec, weights: Weights) -> Weights:
    """Queries and logits of the size that caps of 50 and 30 are felt at."""
    return {
        name: data * np.float32(40 if name.endswith(("q_proj.weight", "model.norm.weight")) else 1)
        for name, data in weights.items()
    }


def logits_of(path: Path, n: int = 40) -> Any:
    with opened(path) as model:
        return model.logits(random_tokens_of(model.config.vocab_size, n))


def random_tokens_of(vocab_size: int, n: int) -> list[int]:
    return np.random.RandomState(SEED).randint(0, vocab_size, n).tolist()


def test_caps_that_a_gemma_2_file_does_not_name_are_50_and_30(tmp_path: Path) -> None:
    def logits(name: str, attention: float | None, logit: float | None) -> Any:
        caps = {"attention_soft_cap": attention, "logit_soft_cap": logit}
        path = tmp_path / f"{name}.gguf"
        build("gemma2", path, seed=SEED, change=large_scores, **caps)
        return logits_of(path)

    unnamed = logits("unnamed", None, None)
    np.testing.assert_array_equal(logits("named", 50.0, 30.0), unnamed)
    assert relative_error(logits("other-attention", 49.0, 30.0), unnamed) > 1e-3
    assert relative_error(logits("other-logits", 50.0, 29.0), unnamed) > 1e-3


def test_a_gemma_3_file_without_a_window_has_one_rotary_base_and_no_window(tmp_path: Path) -> None:
    """As llama.cpp reads it."""
    path = tmp_path / "model.gguf"
    case = build("gemma3", path, seed=SEED, window=None)
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    pattern = (False,) * case.spec.n_layers
    all_full = tmp_path / "full.gguf"
    build("gemma3", all_full, seed=SEED, window_pattern=pattern)
    with opened(path) as model, opened(all_full) as full:
        np.testing.assert_array_equal(model.logits(tokens), full.logits(tokens))


@pytest.mark.parametrize(
    ("n_layers", "scale"), [(46, 72**-0.5), (45, 22**-0.5)], ids=["27B", "another"]
)
def test_the_largest_gemma_2_scales_attention_by_its_width(
    tmp_path: Path, n_layers: int, scale: float
) -> None:
    """dim / n_heads is 72 in this model, and head_dim 22; the file names no scale."""
    shape = {"n_layers": n_layers, "dim": 144, "n_heads": 2, "n_kv_heads": 1, "ffn_dim": 32}
    said, unsaid = tmp_path / "said.gguf", tmp_path / "unsaid.gguf"
    build("gemma2", said, seed=SEED, attention_scale=scale, **shape)
    build("gemma2", unsaid, seed=SEED, attention_scale=None, **shape)
    assert relative_error(logits_of(unsaid, 9), logits_of(said, 9)) <= BOUND_F32_CACHE
    other = tmp_path / "other.gguf"
    build("gemma2", other, seed=SEED, attention_scale=scale * 0.9, **shape)
    assert (
        relative_error(logits_of(other, 9), logits_of(said, 9)) > MUTATION_FACTOR * BOUND_F32_CACHE
    )


@pytest.mark.parametrize("mistake", ["other_activation", "scaled_windows"])
def test_a_mistake_that_no_file_can_express_is_far_beyond_the_bound(
    model_case: Cases, mistake: str
) -> None:
    """The reference makes it: SiLU for GELU, or windowed layers with scaled positions."""
    case = model_case("gemma3")
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    mistaken = NumpyModel(case.path).logits(tokens, Variant(**{mistake: True}))
    with opened(case.path) as model:
        logits = model.logits(tokens)
    assert relative_error(logits, mistaken) >= MUTATION_FACTOR * BOUND_F32_CACHE


def test_a_period_says_the_same_as_the_list_that_it_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = build(
        "gemma3",
        tmp_path / "list.gguf",
        seed=SEED,
        window_pattern=(True, True, False) * 2 + (True,),
    )
    write = gguf_file._write_numbers

    def with_period(writer: Any, spec: ModelSpec, weight_format: str) -> None:
        write(writer, spec, weight_format)
        writer.add_uint32("gemma3.attention.sliding_window_pattern", 3)

    monkeypatch.setattr(gguf_file, "_write_numbers", with_period)
    period = build("gemma3", tmp_path / "period.gguf", seed=SEED)
    tokens = random_tokens(listed.spec, 100, seed=SEED)
    with opened(listed.path) as one, opened(period.path) as other:
        np.testing.assert_array_equal(one.logits(tokens), other.logits(tokens))


@pytest.mark.parametrize("name", ["attention_soft_cap", "logit_soft_cap", "attention_scale"])
def test_a_negative_number_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = build("gemma2", tmp_path / "model.gguf", seed=SEED, **{name: -1.0}).path
    what = "attention scale" if name == "attention_scale" else "soft cap"
    with pytest.raises(akunu.ModelFormatError, match=f"the {what} is -1"):
        akunu.load(path, device="cpu")


@pytest.mark.parametrize(
    "missing", ["post_attention_layernorm", "post_feedforward_layernorm", "q_norm", "k_norm"]
)
def test_a_norm_that_the_family_has_may_not_be_missing(tmp_path: Path, missing: str) -> None:
    def without(spec: ModelSpec, weights: Weights) -> Weights:
        return {
            n: data
            for n, data in weights.items()
            if f"1.{missing}" not in n and f"1.self_attn.{missing}" not in n
        }

    path = build("gemma3", tmp_path / "model.gguf", seed=SEED, change=without).path
    with pytest.raises(akunu.ModelFormatError, match=r"layers\.1\..*norm\.weight is missing"):
        akunu.load(path, device="cpu")


def test_layers_may_have_numbers_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists in the file: feed-forward networks of three widths, and heads that are all alike."""
    widths = [160, 96, 128]

    def cut(spec: ModelSpec, weights: Weights) -> Weights:
        changed = dict(weights)
        for layer, width in enumerate(widths):
            prefix = f"model.layers.{layer}.mlp."
            for part in ("gate", "up"):
                changed[f"{prefix}{part}_proj.weight"] = weights[f"{prefix}{part}_proj.weight"][
                    :width
                ]
            down = weights[f"{prefix}down_proj.weight"][:, :width]
            changed[f"{prefix}down_proj.weight"] = np.ascontiguousarray(down)
        return changed

    monkeypatch.setattr(
        gguf.GGUFWriter,
        "add_feed_forward_length",
        lambda writer, n: writer.add_array("llama.feed_forward_length", widths),
    )
    monkeypatch.setattr(
        gguf.GGUFWriter,
        "add_head_count",
        lambda writer, n: writer.add_array("llama.attention.head_count", [n] * 3),
    )
    path = build("llama-32", tmp_path / "model.gguf", seed=SEED, change=cut).path
    tokens = random_tokens(KINDS["llama-32"], 100, seed=SEED)
    with opened(path) as model:
        assert model.config.ffn_dim == max(widths)
        logits = model.logits(tokens)
    # The reference knows one number of heads; it finds the widths in the tensors.
    monkeypatch.undo()
    plain = build("llama-32", tmp_path / "plain.gguf", seed=SEED, change=cut).path
    assert relative_error(logits, NumpyModel(plain).logits(tokens)) <= BOUND_F32_CACHE
