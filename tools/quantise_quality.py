"""How far quantised files are from the model they were made of, ours beside llama.cpp's.

    python -m tools.quantise_quality MODEL.gguf --types Q4_0,Q4_K_M --text TEXT

The model is in F32, F16 or BF16. Of each type two files are written to a temporary folder, with the
same formats for the same tensors: one by `akunu quantize`, one with llama.cpp's rows (the wheel
xllamacpp). Both run in akunu; KL divergence is the mean over the tokens of a text, in nats. With
`--imatrix FILE` both have that importance matrix; `--bytes` gives ours the best mix of the size
that the file of each type has.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tools.compare.divergence import divergence
from tools.compare.quantise import quantised_rows
from tools.compare.texts import Chunks, read_text

import akunu
from akunu import _core
from akunu.convert.importance import ImportanceMatrix
from akunu.convert.quantizing import Quantization, Step, Wishes
from akunu.convert.recipes import recipe_named
from akunu.convert.sizing import wishes_for_size
from akunu.convert.sources import GgufSource

TYPES = (
    "Q8_0,Q6_K,Q5_K_M,Q5_K_S,Q5_1,Q5_0,Q4_K_M,Q4_K_S,Q4_1,Q4_0,IQ4_NL,IQ4_XS,MXFP4,Q3_K_L,Q3_K_M,"
    "Q3_K_S,Q2_K,Q2_K_S"
)
Means = Mapping[str, NDArray[np.float32]]


class PeerQuantization(Quantization):
    """The same file with llama.cpp's rows."""

    means: Means | None = None

    def data_of(self, step: Step, *, threads: int) -> NDArray[np.uint8]:
        """The bytes of one tensor."""
        plan, source = step.plan, step.source
        if not step.is_changed or _core.gguf_block(plan.type_name)[1] == 1:
            return super().data_of(step, threads=threads)
        shape = (plan.rows, plan.k)
        values = _core.dequantize(plan.name, source.data, source.type_name, shape)
        importance = None if self.means is None else self.means.get(plan.name)
        return quantised_rows(values, plan.type_name, importance).reshape(-1)


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


def qualities(
    model: Path,
    types: list[str],
    chunks: Chunks,
    means: Means | None = None,
    *,
    mixed: bool = False,
) -> list[Quality]:
    """Measure each type; `mixed`: ours is the best mix of as many bytes."""
    reference = logits_of(model, chunks)
    source = GgufSource(model)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.gguf")

        def measured(work: Quantization) -> float:
            work.write(path, force=True)
            return kl_divergence(reference, path, chunks)

        for name in types:
            wishes = Wishes(recipe=recipe_named(name))
            peer = PeerQuantization(source, wishes, means)
            peer.means = means
            if mixed:
                size = peer.size
                wishes = wishes_for_size(source, wishes, file_bytes=size, importance=means)
                wishes = replace(wishes, allow_requantize=False)
            ours = Quantization(source, wishes, means)
            found.append(Quality(name, ours.bits_per_weight, measured(ours), measured(peer)))
            show(found[-1])
    return found


def show(each: Quality) -> None:
    """A line of the table."""
    print(
        f"| `{each.type_name}` | {each.bits:.2f} | {each.ours:.5f} | {each.theirs:.5f} "
        f"| {each.ratio:.3f} |"
    )
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--text", default="dialogues", help="a file, or: dialogues, random")
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--imatrix", type=Path)
    parser.add_argument("--bytes", action="store_true", help="ours: the best mix of that size")
    given = parser.parse_args()
    with akunu.load(given.model, context=16) as loaded:
        text = read_text(loaded.tokenizer, given.text, length=given.length, n_chunks=given.chunks)
    means = None if given.imatrix is None else ImportanceMatrix.read(given.imatrix).means
    print("| type | bits per weight | KL, akunu | KL, llama.cpp | ratio |\n|---|---|---|---|---|")
    qualities(given.model, given.types.split(","), text.chunks, means, mixed=given.bytes)


if __name__ == "__main__":
    main()
