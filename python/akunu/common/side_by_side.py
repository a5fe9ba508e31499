"""Several prompts in one call: what counts as several, and how many are under way at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

# The engine runs 64 side by side; a few more wait, so that none of these places is empty.
SIDE_BY_SIDE = 80


def is_batch(given: object) -> bool:
    """Whether these are several prompts or conversations: a sequence of sequences or texts."""
    if isinstance(given, (str, bytes, bytearray, memoryview)) or not isinstance(given, Sequence):
        return False
    first = given[0] if len(given) else None
    return isinstance(first, (str, Sequence, np.ndarray)) and not isinstance(first, Mapping)
