"""The committed golden values are what the oracle says today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import golden_values
import numpy as np
import pytest
from engine import relative_error
from random_models import ODD_KINDS, ModelCase, random_tokens

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("kind", ODD_KINDS)
def test_golden_values_are_made_again(
    model_case: Callable[..., ModelCase], oracle_logits: Callable[..., Any], kind: str
) -> None:
    case = model_case(kind)
    golden = golden_values.load(kind)
    assert golden.recipe["spec"] == repr(case.spec)
    assert golden.tokens == random_tokens(
        case.spec, golden_values.N_TOKENS, seed=golden_values.SEED
    )
    assert tuple(golden.positions) == golden_values.POSITIONS
    np.testing.assert_allclose(
        golden_values.fingerprint(case.weights), golden.fingerprint, rtol=1e-6
    )
    logits = oracle_logits(case, golden.tokens)[list(golden_values.POSITIONS)]
    # Float32 sums in another order (another processor, another BLAS) differ by about 1e-6 here:
    # the distance of the oracle from double precision. 1e-5 allows that, and is a twentieth of the
    # engine's bound.
    assert relative_error(logits, golden.logits) <= 1e-5
