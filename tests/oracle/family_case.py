"""What the oracle's tests of families share: a random model in all of its forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from dense_golden import TOKENS
from measured_errors import record as record_error
from numpy.typing import NDArray

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

Measured = Callable[[str, str, float], None]


def record(architecture: str, number_format: str, device: str, error: float) -> None:
    """For docs/reference/models.md, which has llama's from tests/models/test_every_format.py."""
    if architecture != "llama":
        record_error(architecture, number_format, device, error)


class Case:
    """One family's model: as transformers has it, as a directory, as GGUF files.

    `families`: random_decoders or random_experts.
    """

    def __init__(self, families: ModuleType, family: str, folder: Path, oracle: Any) -> None:
        self.family = family
        self.architecture: str = families.FAMILIES[family].architecture
        model = families.model_of(family)
        self.expected: NDArray[np.float32] = oracle.logits(model, TOKENS)
        self._folder = folder
        self.directory: Path = families.save(folder / "model", model)

    def gguf(self, recipe: str) -> Path:
        """The directory, converted."""
        target = self._folder / f"{recipe}.gguf"
        if not target.exists():
            source = DirectorySource(self.directory)
            Quantization(source, Wishes(recipe=RECIPES[recipe])).write(target)
        return target
