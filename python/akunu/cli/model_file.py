"""The content of a model file, in plain Python types that JSON can hold."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from akunu.common.metadata import printable
from akunu.storage.model_files import ModelFiles, TensorFacts

_SHOWN_ITEMS: Final = 5  # of an array


def metadata_of(file: ModelFiles) -> dict[str, Any]:
    """Return all keys and values; arrays abbreviated, NaN, infinity and odd bytes as text."""
    return {printable(key): _plain(file[key]) for key in file.keys()}  # noqa: SIM118 - not a dict


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "null"
    if isinstance(value, (list, tuple, np.ndarray)):
        first = [_plain(item) for item in value[:_SHOWN_ITEMS]]
        return {"length": len(value), "first": first}
    return value


def format_totals(tensors: Sequence[TensorFacts]) -> list[dict[str, Any]]:
    """Return per number format how many tensors, numbers and bytes there are, most bytes first."""
    counts: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        counts[tensor.type_name] += 1
        numbers[tensor.type_name] += math.prod(tensor.shape)
        sizes[tensor.type_name] += tensor.size
    return [
        {"format": name, "tensors": counts[name], "parameters": numbers[name], "bytes": size}
        for name, size in sizes.most_common()
    ]


def parameter_count(tensors: Sequence[TensorFacts]) -> int:
    """Return how many numbers all tensors have together."""
    return sum(math.prod(tensor.shape) for tensor in tensors)


def weight_bytes(tensors: Sequence[TensorFacts]) -> int:
    """Return how many bytes all tensors have together."""
    return sum(tensor.size for tensor in tensors)


def short_count(count: float) -> str:
    """Return a number as people write it.

    >>> short_count(596_049_920), short_count(8_030_261_248), short_count(999)
    ('596.05 M', '8.03 B', '999')
    """
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= limit:
            return f"{count / limit:.2f} {unit}"
    return f"{count:.0f}"
