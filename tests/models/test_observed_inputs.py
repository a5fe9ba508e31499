"""What `_core.InputObserver` sees of matrices' inputs, against a forward pass in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy_forward import Array, NumpyModel, Variant
from random_models import ModelCase

from akunu import _core
from akunu.errors import ArgumentError

TOKENS = [5, 17, 3, 40, 8, 21, 30, 2, 11]


class RecordingModel(NumpyModel):
    """Keeps the squares of what its projections multiply, by the matrix's name."""

    def __init__(self, case: ModelCase) -> None:
        super().__init__(case.path)
        self.squares: dict[str, Array] = {}

    def _project(self, x: Array, name: str, variant: Variant) -> Array:
        before = self.squares.get(name + ".weight", 0.0)
        self.squares[name + ".weight"] = before + (x**2).sum(axis=0)
        return super()._project(x, name, variant)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3"])
@pytest.mark.parametrize("weight_format", ["f32", "f16"])
def test_squares_are_those_of_the_inputs(
    model_case: Callable[..., ModelCase], kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    reference = RecordingModel(case)
    observer = _core.InputObserver(case.path, context=16, device="cpu", threads=1)
    for tokens in (TOKENS, TOKENS[:4]):
        reference.logits(tokens, Variant(f16_cache=True))
        observer.add(tokens)
    # The head is not observed: an importance matrix has nothing of it.
    expected = {
        name: squares for name, squares in reference.squares.items() if name.startswith("blk.")
    }
    seen = observer.squares
    assert seen.keys() == expected.keys()
    for name, (sums, count) in seen.items():
        assert count == len(TOKENS) + 4
        difference = np.abs(sums - expected[name]).max() / expected[name].max()
        # Inputs themselves are floats; what made them may have been rounded, where weights are.
        assert difference < (1e-3 if weight_format == "f32" else 5e-3), name


def test_texts_that_do_not_fit_are_refused(model_case: Callable[..., ModelCase]) -> None:
    observer = _core.InputObserver(model_case("llama").path, context=8, device="cpu", threads=1)
    with pytest.raises(ArgumentError, match="a text of 9 tokens; the context holds 8"):
        observer.add([1] * 9)
    with pytest.raises(ArgumentError, match="a text of 0 tokens"):
        observer.add([])
    with pytest.raises(ArgumentError, match="token 1000000 is not in the vocabulary"):
        observer.add([1_000_000])
