"""How far quantised files are from the model they were made of, ours beside llama.cpp's.

    python -m tools.quantise_quality MODEL.gguf --types Q4_0,Q4_K_M --text TEXT

The model is in F32, F16 or BF16. Of each type two files are written to a temporary folder, one by
`akunu quantize`, one with llama.cpp's rows (`tools.compare.quantise`, from the wheel xllamacpp).
Both run in akunu; KL divergence is the mean over the tokens of a text, in nats.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tools.compare.divergence import divergence
from tools.compare.quantise import quantise_by_rows
from tools.compare.texts import Chunks, read_text

import akunu
from akunu.making.quantizing import Quantization, Wishes
from akunu.making.recipes import recipe_named
from akunu.making.sources import GgufSource

TYPES = "Q8_0,Q6_K,Q5_K_M,Q5_K_S,Q5_1,Q5_0,Q4_K_M,Q4_K_S,Q4_1,Q4_0,Q3_K_L,Q3_K_M,Q3_K_S,Q2_K"


@dataclass(frozen=True, slots=True)
class Quality:
    """A type's two files."""

    type_name: str
    bits: float
    ours: float
    """KL divergence from the model."""
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def logits_of(model: Path, chunks: Chunks) -> list[np.ndarray]:
    with akunu.load(model, context=len(chunks[0]) + 1) as loaded:
        return [loaded.logits(chunk) for chunk in chunks]


def kl_divergence(reference: list[np.ndarray], model: Path, chunks: Chunks) -> float:
    other = logits_of(model, chunks)
    rows = [divergence(a, b) for a, b in zip(reference, other, strict=True)]
    return float(np.concatenate(rows).mean())


def qualities(model: Path, types: list[str], chunks: Chunks) -> list[Quality]:
    """Measure each type."""
    reference = logits_of(model, chunks)
    file = GgufSource(model)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.gguf"), Path(folder, "theirs.gguf")
        for name in types:
            work = Quantization(file, Wishes(recipe=recipe_named(name)))
            work.write(ours, force=True)
            quantise_by_rows(model, theirs, name)
            found.append(
                Quality(
                    name,
                    work.bits_per_weight,
                    kl_divergence(reference, ours, chunks),
                    kl_divergence(reference, theirs, chunks),
                )
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--text", default="dialogues", help="a file, or: dialogues, random")
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    given = parser.parse_args()
    with akunu.load(given.model, context=16) as loaded:
        text = read_text(loaded.tokenizer, given.text, length=given.length, n_chunks=given.chunks)
    print("| type | bits per weight | KL, akunu | KL, llama.cpp | ratio |\n|---|---|---|---|---|")
    for each in qualities(given.model, given.types.split(","), text.chunks):
        print(
            f"| `{each.type_name}` | {each.bits:.2f} | {each.ours:.5f} | {each.theirs:.5f} "
            f"| {each.ratio:.2f} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
