"""The engine's logits against Hugging Face transformers, live, and how far mistakes move them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine import (
    BOUND_F16_CACHE,
    BOUND_F32_CACHE,
    MUTATION_FACTOR,
    PATHS,
    chunked,
    opened,
    relative_error,
)
from golden_values import N_TOKENS
from mutations import MUTATIONS, applicable
from numpy_forward import NumpyModel, Variant
from random_models import KINDS, ModelCase, random_tokens

pytestmark = pytest.mark.oracle

Cases = Callable[..., ModelCase]
Logits = Callable[..., Any]
Measured = Callable[[str, str, float], None]


def tokens_of(case: ModelCase) -> list[int]:
    """Other tokens than the golden ones."""
    return random_tokens(case.spec, N_TOKENS, seed=2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_forward_pass_in_double_is_that_of_hugging_face(
    model_case: Cases, oracle_logits: Logits, measured: Measured, kind: str
) -> None:
    case = model_case(kind)
    error = relative_error(
        NumpyModel(case.path).logits(tokens_of(case)), oracle_logits(case, tokens_of(case))
    )
    measured("NumPy in double", kind, error)
    assert error <= 1e-5  # float32 against double: about 1e-6 was measured


@pytest.mark.parametrize(("kv_type", "bound"), [("f32", BOUND_F32_CACHE), ("f16", BOUND_F16_CACHE)])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_hugging_face(
    model_case: Cases,
    oracle_logits: Logits,
    measured: Measured,
    kind: str,
    path: str,
    kv_type: str,
    bound: float,
) -> None:
    case = model_case(kind)
    with opened(case.path, kv_type=kv_type) as model:
        logits = chunked(model, tokens_of(case), *PATHS[path])
    error = relative_error(logits, oracle_logits(case, tokens_of(case)))
    measured(f"engine, {kv_type} cache", f"{kind} {path}", error)
    assert error <= bound


@pytest.mark.parametrize(("kind", "name"), applicable(KINDS, tuple(KINDS)))
def test_a_mistake_in_the_file_moves_the_logits_far_beyond_the_bound(
    model_case: Cases,
    oracle_logits: Logits,
    measured: Measured,
    tmp_path: Path,
    kind: str,
    name: str,
) -> None:
    """The engine runs a file that makes it compute the mistake; the oracle is right."""
    case = model_case(kind)
    mutated = MUTATIONS[name].build(case, tmp_path / "mutated.gguf")
    with opened(mutated.path) as model:
        logits = model.logits(tokens_of(case))
    error = relative_error(logits, oracle_logits(case, tokens_of(case)))
    measured(f"mistake in the file: {name}", kind, error)
    assert error >= MUTATION_FACTOR * BOUND_F32_CACHE


@pytest.mark.parametrize("offset", [-1, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_off_by_one_is_far_beyond_the_bound(
    model_case: Cases, oracle: Any, measured: Measured, kind: str, offset: int
) -> None:
    """The oracle makes the mistake; the engine is right."""
    case = model_case(kind)
    hf = oracle.load(case.spec, case.weights)
    mistaken = oracle.logits(hf, tokens_of(case), mask_offset=offset)
    in_double = NumpyModel(case.path).logits(tokens_of(case), Variant(mask_offset=offset))
    assert relative_error(in_double, mistaken) <= 1e-5  # it is the mistake that it claims to be
    with opened(case.path) as model:
        logits = model.logits(tokens_of(case))
    error = relative_error(logits, mistaken)
    measured(f"mistake in the oracle: mask {offset:+d}", kind, error)
    assert error >= MUTATION_FACTOR * BOUND_F32_CACHE
