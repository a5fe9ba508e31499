"""Models are built once per run and format."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from golden_values import SEED
from random_models import ModelCase, case_cache


@pytest.fixture(scope="session")
def model_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelCase]:
    """`model_case(kind, weight_format="f32")`: the random model, as a file."""
    return case_cache(tmp_path_factory.mktemp("models"), seed=SEED)
