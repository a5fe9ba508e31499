"""Sampling options for the tests of what proposes tokens: a text's own past, a model, a head."""

from __future__ import annotations

from typing import Any, Final

AUTO: Final = 2**32 - 1
"""`speculation` of the engine: it chooses how many."""
CHOICES: Final[dict[str, dict[str, Any]]] = {
    "greedy": {},
    "cool": {"temperature": 0.3, "seed": 5},
    "hot": {"temperature": 1.5, "seed": 6, "top_p": 0.9},
    "penalties": {"temperature": 0.5, "seed": 7, "repetition_penalty": 1.2},
    "dry": {"dry_multiplier": 0.4, "frequency_penalty": 0.1},
    "min-tokens": {"min_tokens": 30},
}
"""Sampling options; those of the last three depend on the tokens that were generated before."""
