"""The models inside the package, by the names that `akunu.load` knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PACKAGED_MODELS: Mapping[str, Path] = {
    "ember": Path(__file__).parents[1] / "data" / "ember-q8_0.gguf"
}
