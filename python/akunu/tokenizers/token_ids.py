"""Token ids that callers give, as the engine takes them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from akunu.common.quoting import shorten
from akunu.errors import ArgumentError


def token_ids(
    tokens: Sequence[SupportsIndex],
    vocab_size: int,
    argument: str,
    wanted: str = "token ids, a flat sequence of int",
) -> NDArray[np.uint32]:
    """Return ids as the engine takes them; ArgumentError names the first bad one."""
    if isinstance(tokens, str):
        raise ArgumentError(
            f"{argument} is str; it must be {wanted} (model.tokenizer.encode(text) gives them)"
        )
    if isinstance(tokens, (bytes, bytearray, memoryview)):
        raise ArgumentError(
            f"{argument} is {type(tokens).__name__}; it must be {wanted} "
            "(decode bytes with .decode())"
        )
    ids = _array_of(tokens)
    if ids is None:
        raise ArgumentError(f"{argument} is {shorten(tokens)}; it must be {wanted}")
    if not ids.size:
        return np.empty(0, dtype=np.uint32)
    bad = np.flatnonzero((ids < 0) | (ids >= vocab_size))
    if bad.size:
        raise ArgumentError(
            f"{argument}[{bad[0]}] is {ids[bad[0]]}; token ids of this model go from 0 to "
            f"{vocab_size - 1}"
        )
    return ids.astype(np.uint32)


def _array_of(tokens: object) -> NDArray[Any] | None:
    """Return a flat sequence of integers as an array, None where it is something else."""
    listed = tokens if isinstance(tokens, Sequence) else None
    if listed is None and not hasattr(tokens, "__array__"):
        return None  # a set has no order, and a generator would be empty the next time
    try:
        array = np.asarray(tokens)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths
        return None
    if array.ndim == 1 and (array.dtype.kind in "iu" or not array.size):
        return array
    if listed is None or array.ndim != 1 or array.dtype.kind not in "fO":
        return None
    # Integers that NumPy has no common type for, or that are too large for any.
    try:
        return np.array([operator.index(token) for token in listed], dtype=object)
    except TypeError:
        return None
