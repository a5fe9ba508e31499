"""What the lines of a table share: the last results of a function, by the bits of its arguments.

A line draws the same numbers at every level of a device, so the reference is computed once.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any

import numpy as np

KEPT = 256
KEPT_BYTES = 2**27  # of all of them together


def key_of(value: Any) -> Any:
    """Equal for arguments with the same bits."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hash(value.tobytes())
    if isinstance(value, np.void):  # a record
        return value.tobytes()
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    if is_dataclass(value):
        return type(value), tuple(key_of(getattr(value, each.name)) for each in fields(value))
    if isinstance(value, (list, tuple)):
        return tuple(key_of(each) for each in value)
    return value


def arrays_of(value: Any) -> list[np.ndarray]:
    if is_dataclass(value):
        value = [getattr(value, each.name) for each in fields(value)]
    if isinstance(value, (list, tuple)):
        return [array for each in value for array in arrays_of(each)]
    return [value] if isinstance(value, np.ndarray) else []


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Results are shallow copies of read-only arrays. A generator continues as if it had drawn."""
    kept: OrderedDict[Any, tuple[Any, list[Any], int]] = OrderedDict()

    @wraps(function)
    def remembering(*given: Any, **named: Any) -> Any:
        key = key_of(given), tuple((name, key_of(value)) for name, value in named.items())
        generators = [each for each in given if isinstance(each, np.random.Generator)]
        if key not in kept:
            result = function(*given, **named)
            for array in arrays_of(result):
                array.flags.writeable = False
            n_bytes = sum(array.nbytes for array in arrays_of(result))
            kept[key] = result, [each.bit_generator.state for each in generators], n_bytes
            while len(kept) > 1 and (
                len(kept) > KEPT or sum(n for _, _, n in kept.values()) > KEPT_BYTES
            ):
                kept.popitem(last=False)
        kept.move_to_end(key)
        result, states, _ = kept[key]
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        return copy.copy(result)

    return remembering
