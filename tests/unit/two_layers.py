"""Writes the model of two layers that the C++ drivers run under sanitizers.

    python tests/unit/two_layers.py MODEL.gguf

Random weights: drivers know nothing of what a model says. As many positions as the packaged model
has, and more tokens than drivers name.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
sys.path.append(str(Path(__file__).parents[2]))  # tools

from random_models import build

if __name__ == "__main__":
    size = {"n_layers": 2, "vocab_size": 1536, "context_length": 1024}
    build("qwen3-32", Path(sys.argv[1]), seed=1, weight_format="q8_0", **size)
