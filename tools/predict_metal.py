"""What the Metal backend should reach on Apple GPUs: arithmetic, not measurements.

    python -m tools.predict_metal --write docs/reference/benchmarks.md

A step of one row reads every weight once, and a launch that waits for another costs a little time;
a prompt multiplies every weight with every row. The floor assumes the chip's full bandwidth or
arithmetic, the prediction the shares below.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from tools.make_synthetic import PRESETS, Shape
from tools.make_synthetic.recipes import tensor_format
from tools.make_synthetic.shapes import tensors
from tools.make_synthetic.writer import tensor_bytes

BEGIN, END = "<!-- predicted: begin -->", "<!-- predicted: end -->"


@dataclass(frozen=True, slots=True)
class Chip:
    """As Apple describes it; the clock of the GPU is what others have measured."""

    name: str
    bytes_per_second: float
    cores: int
    hertz: float

    @property
    def operations_per_second(self) -> float:
        """Float32: 128 multiplications and additions per core and cycle."""
        return self.cores * 128 * 2 * self.hertz


CHIPS = [
    Chip("M1, 8 cores", 68.25e9, 8, 1.278e9),
    Chip("M4 Pro, 20 cores", 273e9, 20, 1.578e9),
    Chip("M4 Max, 40 cores", 546e9, 40, 1.578e9),
]
SHAPES = ["Qwen3-0.6B", "Llama-3.2-1B", "Qwen3-4B", "Llama-3.1-8B"]
FORMATS = ["Q4_0", "Q4_K_M", "Q8_0", "F16"]

# What good kernels reach on such GPUs, by the published figures of other engines.
BANDWIDTH_SHARE = 0.85
ARITHMETIC_SHARE = 0.6
SECONDS_PER_LAUNCH = 2e-6  # behind a barrier, in a command buffer that is running
LAUNCHES_PER_LAYER = 6
LAUNCHES_BESIDE = 6  # embedding, angles, gather, norm and logits, sample, advance
PROMPT = 512


def weights_of(shape: Shape, recipe: str) -> tuple[int, int]:
    """Bytes that a step of one row reads, and numbers that a prompt's row multiplies."""
    read = multiplied = 0
    for tensor in tensors(shape):
        if tensor.name == "token_embd.weight" and not shape.tied:
            continue  # one row of it is looked up
        number_format = tensor_format(recipe, tensor, shape)
        read += tensor_bytes(tensor, number_format)
        if tensor.is_matrix and tensor.name not in ("token_embd.weight", "output.weight"):
            multiplied += tensor.rows * tensor.k
    return read, multiplied


def rows() -> list[str]:
    lines = [
        "| model | format | bytes a token | "
        + " | ".join(f"{chip.name}: tg floor, predicted | pp512 predicted" for chip in CHIPS)
        + " |",
        "|---|---|---:|" + "---:|---:|" * len(CHIPS),
    ]
    for name in SHAPES:
        shape = PRESETS[name]
        launches = LAUNCHES_PER_LAYER * shape.n_layers + LAUNCHES_BESIDE
        for recipe in FORMATS:
            n_bytes, numbers = weights_of(shape, recipe)
            cells = [name, recipe, f"{n_bytes / 1e9:.2f} GB"]
            for chip in CHIPS:
                floor = n_bytes / chip.bytes_per_second
                seconds = floor / BANDWIDTH_SHARE + launches * SECONDS_PER_LAUNCH
                # Half the rows before it, on average, in two products of every query head.
                attention = 4 * shape.n_layers * shape.q_dim * PROMPT / 2
                prompt = (2 * numbers + attention) / chip.operations_per_second / ARITHMETIC_SHARE
                cells += [f"{1 / floor:.0f}, {1 / seconds:.0f}", f"{1 / prompt:.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="a document with the two marks")
    arguments = parser.parse_args()
    table = "\n".join(rows())
    if arguments.write is None:
        print(table)
        return 0
    text = arguments.write.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    arguments.write.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
