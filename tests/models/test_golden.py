"""The engine against the committed logits of Hugging Face transformers (no torch needed here)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import golden_values
import numpy as np
import pytest
from engine import (
    BOUND_F16_CACHE,
    BOUND_F32_CACHE,
    GPU_PATHS,
    GPUS,
    MUTATION_FACTOR,
    PATHS,
    chunked,
    one_of_each,
    opened,
    relative_error,
)
from mutations import MUTATIONS, applicable
from numpy_forward import NumpyModel, Variant
from random_models import KINDS, ODD_KINDS, ModelCase

from lines import each_line

Cases = Callable[..., ModelCase]


@each_line("kind", ODD_KINDS)
def test_the_model_is_the_one_that_the_golden_values_are_of(model_case: Cases, kind: str) -> None:
    fingerprint = golden_values.fingerprint(model_case(kind).weights)
    np.testing.assert_allclose(fingerprint, golden_values.load(kind).fingerprint, rtol=1e-6)


@pytest.mark.nightly_emulated("f16")  # below is f32
@pytest.mark.parametrize(("kv_type", "bound"), [("f32", BOUND_F32_CACHE), ("f16", BOUND_F16_CACHE)])
@each_line("kind", ODD_KINDS)
def test_logits_are_those_of_hugging_face(
    model_case: Cases, device: str, kind: str, kv_type: str, bound: float
) -> None:
    golden = golden_values.load(kind)
    with opened(model_case(kind).path, device=device, kv_type=kv_type) as model:
        logits = model.logits(golden.tokens)
        assert logits.dtype == np.float32
        assert logits.shape == (len(golden.tokens), model_case(kind).spec.vocab_size)
        assert relative_error(logits[golden.positions], golden.logits) <= bound


@each_line("path", PATHS)
@each_line("kind", ODD_KINDS)
def test_logits_are_those_of_hugging_face_in_chunks_and_steps(
    model_case: Cases, cpu: str, kind: str, path: str
) -> None:
    golden = golden_values.load(kind)
    with opened(model_case(kind).path) as model:
        logits = chunked(model, golden.tokens, *PATHS[path])
    assert relative_error(logits[golden.positions], golden.logits) <= BOUND_F32_CACHE


# With each change those that have something of their own: windows, biases, norms, shared keys.
BY_WHAT_IS_OWN = sorted(ODD_KINDS, key=lambda kind: kind in ("llama", "llama-linear", "gemma"))


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("kind", "path"), one_of_each(BY_WHAT_IS_OWN, GPU_PATHS))
def test_logits_on_a_gpu_are_those_of_hugging_face_in_chunks_and_steps(
    model_case: Cases, gpu: str, kind: str, path: str
) -> None:
    golden = golden_values.load(kind)
    with opened(model_case(kind).path, device=gpu) as model:
        logits = chunked(model, golden.tokens, *GPU_PATHS[path])
    assert relative_error(logits[golden.positions], golden.logits) <= BOUND_F32_CACHE


@each_line(("kind", "name"), applicable(KINDS, ODD_KINDS))
def test_a_mistake_moves_the_logits_far_beyond_the_bound(
    model_case: Cases, tmp_path: Path, kind: str, name: str
) -> None:
    golden = golden_values.load(kind)
    mutated = MUTATIONS[name].build(model_case(kind), tmp_path / "mutated.gguf")
    with opened(mutated.path) as model:
        logits = model.logits(golden.tokens)
    error = relative_error(logits[golden.positions], golden.logits)
    assert error >= MUTATION_FACTOR * BOUND_F32_CACHE


@pytest.mark.slow  # tests/oracle/test_logits.py compares with a model whose mask is right
@pytest.mark.parametrize("offset", [-1, 1])
@pytest.mark.parametrize("kind", ODD_KINDS)
def test_a_mask_off_by_one_is_far_beyond_the_bound(
    model_case: Cases, kind: str, offset: int
) -> None:
    """The reference makes the mistake: no file can express it."""
    golden = golden_values.load(kind)
    path = model_case(kind).path
    mistaken = NumpyModel(path).logits(golden.tokens, Variant(mask_offset=offset))
    with opened(path) as model:
        logits = model.logits(golden.tokens)
    assert relative_error(logits, mistaken) >= MUTATION_FACTOR * BOUND_F32_CACHE
