"""Writes tests/models/golden_families/*.json: logits of the dense families by transformers.

python tests/oracle/make_dense_golden.py [FAMILIES]

A family that is in no table of the tests begins as such a file with nothing but `described`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "models"))
sys.path.append(str(Path(__file__).parents[2]))  # tools

import hf_model
import random_decoders as rnd
import torch
import transformers
from dense_golden import N_COLUMNS, POSITIONS, TOKENS, DenseGolden, descriptions, save
from safetensors import safe_open


def golden_of(directory: Path, logits: Any, described: dict[str, Any] | None = None) -> DenseGolden:
    """What the model of a directory computes."""
    shapes: dict[str, list[int]] = {}
    with safe_open(directory / "model.safetensors", "np") as file:
        for name in sorted(file.keys()):
            shapes[name] = list(file.get_slice(name).get_shape())
    chosen = logits[list(POSITIONS), :N_COLUMNS]
    return DenseGolden(
        config=json.loads((directory / "config.json").read_text()),
        shapes=shapes,
        largest=float(abs(logits).max()),
        logits=[[float(f"{value:.7g}") for value in row] for row in chosen],
        transformers=transformers.__version__,
        described=described,
    )


def main() -> None:
    families = sys.argv[1:] or list(rnd.FAMILIES)
    if unknown := sorted(set(families) - set(rnd.FAMILIES)):
        raise SystemExit(f"no such families: {unknown}; there are {', '.join(rnd.FAMILIES)}")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for family in families:
            model = rnd.model_of(family)
            logits = hf_model.logits(model, TOKENS)
            folder_of = rnd.save(Path(folder) / family, model)
            save(family, golden_of(folder_of, logits, descriptions().get(family)))


if __name__ == "__main__":
    main()
