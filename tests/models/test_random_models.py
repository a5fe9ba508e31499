"""The model builder and the NumPy forward pass that other tests stand on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import gguf_file
import golden_values
import numpy as np
import pytest
from engine import relative_error
from mutations import MUTATIONS, applicable
from numpy_forward import NumpyModel, int8_per_32
from random_models import KINDS, ODD_KINDS, ModelCase, build, random_tokens, random_weights

from lines import each_line

Cases = Callable[..., ModelCase]


@each_line("kind", KINDS)
def test_every_kind_has_the_distributions_that_it_promises(kind: str) -> None:
    spec = KINDS[kind]
    for name, data in random_weights(spec, seed=1).items():
        assert data.dtype == np.float32
        if "norm" in name:
            assert 0.5 <= data.min() < 0.7
            assert 1.3 < data.max() <= 1.5
        elif data.ndim == 2:
            scaled_later = "embed" not in name or spec.is_gemma
            expected = data.shape[1] ** -0.5 if scaled_later else 1.0
            assert np.isclose(data.std(), expected, rtol=0.05)


def test_a_tensor_depends_on_the_seed_and_not_on_the_other_tensors() -> None:
    spec = KINDS["qwen2"]
    tied = random_weights(spec, seed=1)
    untied = random_weights(replace(spec, tied=False, qkv_bias=False), seed=1)
    assert tied.keys() != untied.keys()
    for name in tied.keys() & untied.keys():
        np.testing.assert_array_equal(tied[name], untied[name])
    other = random_weights(spec, seed=2)
    assert not any(np.array_equal(tied[name], other[name]) for name in tied)


def test_a_format_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows of 90 weights; q8_0 needs a multiple of 32"):
        build("qwen3", tmp_path / "model.gguf", seed=1, weight_format="q8_0")


@pytest.mark.slow  # of the tests' own tools
@pytest.mark.parametrize("weight_format", gguf_file.WEIGHT_FORMATS)
def test_the_weights_of_a_case_are_those_in_its_file(model_case: Cases, weight_format: str) -> None:
    case = model_case("qwen3-256", weight_format)
    stored = NumpyModel(case.path).tensors
    assert len(stored) == len(case.weights)
    for name, data in case.weights.items():
        np.testing.assert_array_equal(stored[gguf_file.gguf_name(name)], data)


def test_llama_rows_are_permuted_so_that_neighbours_rotate_together(model_case: Cases) -> None:
    case = model_case("llama-gqa")
    stored = NumpyModel(case.path).tensors["blk.1.attn_k.weight"]
    given = case.weights["model.layers.1.self_attn.k_proj.weight"]
    half = case.spec.head_dim // 2
    for head in range(case.spec.n_kv_heads):
        start = head * case.spec.head_dim
        for pair in range(half):
            np.testing.assert_array_equal(stored[start + 2 * pair], given[start + pair])
            np.testing.assert_array_equal(stored[start + 2 * pair + 1], given[start + half + pair])


def test_all_three_bands_of_llama_3_frequencies_occur() -> None:
    spec = KINDS["llama-factors"]
    divisors = spec.rope_divisors()
    assert divisors is not None
    assert spec.rope_factors is not None
    assert (divisors == 1).any()
    assert np.isclose(divisors, spec.rope_factors.factor).any()
    assert ((divisors > 1.01) & (divisors < spec.rope_factors.factor - 0.01)).any()


def test_the_file_has_a_tokenizer_with_a_token_for_every_row(model_case: Cases) -> None:
    case = model_case("qwen3")
    fields = gguf.GGUFReader(case.path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    assert len(set(tokens)) == case.spec.vocab_size
    merges = fields["tokenizer.ggml.merges"].contents()
    assert all(merge.replace(" ", "") in tokens for merge in merges)


@each_line("kind", ODD_KINDS)
def test_the_forward_pass_in_double_equals_the_golden_values(model_case: Cases, kind: str) -> None:
    golden = golden_values.load(kind)
    logits = NumpyModel(model_case(kind).path).logits(golden.tokens)
    # The golden values are float32 sums: about 1e-6 was measured, 1e-5 leaves room for nothing
    # but another order of summation.
    assert relative_error(logits[golden.positions], golden.logits) <= 1e-5


@pytest.mark.slow  # of the tests' own tools
@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, n) for k, n in applicable(KINDS, ODD_KINDS) if MUTATIONS[n].variant is not None],
)
def test_a_mutated_file_says_what_the_mistake_computes(
    model_case: Cases, tmp_path: Path, kind: str, name: str
) -> None:
    case = model_case(kind)
    tokens = random_tokens(case.spec, golden_values.N_TOKENS, seed=1)
    mutated = MUTATIONS[name].build(case, tmp_path / "mutated.gguf")
    expected = NumpyModel(case.path).logits(tokens, MUTATIONS[name].variant)
    assert relative_error(NumpyModel(mutated.path).logits(tokens), expected) <= 1e-6


def test_rounding_to_int8_keeps_zeros_and_the_largest_of_each_group() -> None:
    x = np.zeros((1, 64))
    x[0, 32:] = np.arange(32) - 20.0
    rounded = int8_per_32(x)
    assert (rounded[0, :32] == 0).all()
    assert np.isclose(rounded[0, 32], -20.0)
    assert np.abs(rounded - x).max() <= 20.0 / 127 / 2 * 1.0001
