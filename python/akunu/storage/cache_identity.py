"""What keys and values in a cache depend on, next to their tokens: model, layout, computation."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from akunu.model_facts import ModelConfig

if TYPE_CHECKING:
    from akunu import _core


class KeyedModel(Protocol):
    """A model whose keys and values are kept in files: `akunu.Model`."""

    @property
    def config(self) -> ModelConfig:
        """What the file says about the model."""

    @property
    def path(self) -> Path:
        """The model's file or directory."""

    @property
    def context(self) -> int:
        """Tokens that a text may have."""

    @property
    def _digest(self) -> str: ...

    def _open(self) -> _core.NativeModel: ...


def layout_of(native: _core.NativeModel) -> list[Any]:
    """Return how the cache lays keys and values out, as JSON has it."""
    layout: list[Any] = json.loads(json.dumps(native.cache_layout))  # with lists for tuples
    return layout


def kv_type_of(native: _core.NativeModel) -> str:
    """Return the format of keys and values."""
    # kv_type does not apply to groups of states and of convolution inputs: they are float32.
    for group in native.cache_layout:
        if group["kind"] != "states" and not group["kind"].startswith("inputs"):
            return str(group["format"])
    return "f16"


def akunu_version() -> str:
    """Return the version of this package."""
    from akunu import __version__  # asked for at each call: reading it at import takes its time

    return __version__


def computed_on(native: _core.NativeModel) -> dict[str, str]:
    """Return what the bits of keys and values depend on next to model and format."""
    device = native.computes_on
    return {
        "akunu": akunu_version(),
        "device": device["backend"],
        # The name of a GPU matters, too: it decides the order in which sums are added up.
        "level": device["level"] or device["name"],
        "rotation": hashlib.blake2b(native.frequencies, digest_size=16).hexdigest(),
    }
