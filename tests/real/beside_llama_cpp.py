"""What the tests of real models ask of llama.cpp, and how far akunu is from it."""

from __future__ import annotations

import sys
from math import exp, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tools.compare.engine_process import EngineProcess


def tokens_of_llama_cpp(model: Path, texts: list[str]) -> list[list[int]]:
    """Return llama.cpp's tokens of each text, without those that it adds."""
    with EngineProcess(sys.executable, "llama_cpp_tokens", model, context=64, threads=1) as engine:
        return list(engine.ask({"texts": texts})["tokens"])


def difference_of_costs(
    ours: NDArray[np.float64], theirs: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the mean difference of the costs of tokens, in nats, and its standard error."""
    difference = ours - theirs
    mean, standard_error = float(difference.mean()), float(difference.std()) / sqrt(len(difference))
    print(f"perplexity {exp(ours.mean()):.3f}, llama.cpp {exp(theirs.mean()):.3f}")
    print(f"a token {mean:+.4f} nats, standard error {standard_error:.4f}")
    return mean, standard_error
