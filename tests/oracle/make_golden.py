"""Writes tests/models/golden/*.npz: logits of the random models by Hugging Face in float32.

    python tests/oracle/make_golden.py

`test_golden_is_current.py` makes them again and compares.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "models"))

import golden_values
import hf_model
import numpy as np
import torch
import transformers
from random_models import ODD_KINDS, ModelCase, build, random_tokens


def recipe(case: ModelCase) -> dict[str, str]:
    """How the values came about."""
    return {
        "kind": case.kind,
        "spec": repr(case.spec),
        "seed": str(case.seed),
        "weights": "random_models.random_weights(spec, seed=seed), float32",
        "tokens": f"random_models.random_tokens(spec, {golden_values.N_TOKENS}, seed=seed)",
        "oracle": "transformers, eager attention, float32, CPU, no cache, teacher-forced",
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ODD_KINDS:
            case = build(kind, Path(folder) / f"{kind}.gguf", seed=golden_values.SEED)
            tokens = random_tokens(case.spec, golden_values.N_TOKENS, seed=golden_values.SEED)
            logits = hf_model.logits(hf_model.load(case.spec, case.weights), tokens)
            path = golden_values.save(kind, tokens, logits, case.weights, recipe(case))
            print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
