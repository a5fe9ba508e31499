"""What drawing a token costs, at a vocabulary of 151,936, by one thread of the CPU.

    python -m tools.sampling_cost measure MODEL.gguf ... -o sampling.json
    python -m tools.sampling_cost report sampling.json --write docs/reference/benchmarks.md

The kernel gets logits of a text that the model wrote, of as many tokens as a large vocabulary has:
they are stretched over the logarithm of the rank, so that few are likely, as before, and many are
not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.measured_table import run_tool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "kernels"))
from harness import Run, make_step, pack_params

import akunu
from akunu import _core

BEGIN, END = "<!-- sampling: begin -->", "<!-- sampling: end -->"
VOCAB_SIZE = 151_936
POSITIONS = 16  # of a text, whose logits are sampled
RUNS, STEPS = 12, 4  # of each; the fastest run counts: others use the machine as well
PROMPT = "The keeper of the lighthouse wrote in his diary that the winter had been hard."
TOKENS = 32
WARM = {"temperature": 0.8}
SETTINGS: dict[str, dict[str, float]] = {
    "greedy": {},
    "temperature 0.8, as all below": WARM,
    "top_k 40, top_p 0.95, min_p 0.05": {**WARM, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
    "top_p 0.9": {**WARM, "top_p": 0.9},
    "min_p 0.05": {**WARM, "min_p": 0.05},
    "typical_p 0.9": {**WARM, "typical_p": 0.9},
    "top_n_sigma 1": {**WARM, "top_n_sigma": 1.0},
    "xtc_probability 1": {**WARM, "xtc_probability": 1.0},
    "repetition_penalty 1.1": {**WARM, "repetition_penalty": 1.1},
    "dry_multiplier 0.8": {**WARM, "dry_multiplier": 0.8},
}


def stretched(logits: NDArray[np.float32], chooser: np.random.Generator) -> NDArray[np.float32]:
    """The logits of a row, spread over more tokens, in any order."""
    best_first = np.sort(logits)[::-1]
    share = np.log(len(logits)) / np.log(VOCAB_SIZE)
    ranks = np.exp(np.log1p(np.arange(VOCAB_SIZE)) * share) - 1
    spread = np.interp(ranks, np.arange(len(logits)), best_first).astype(np.float32)
    return chooser.permutation(spread)


def kernel_seconds(logits: NDArray[np.float32], draw: int, setting: dict[str, float]) -> float:
    """The fastest of the runs, by one thread, behind a text of 1,000 tokens."""
    n_log = 1024
    step = make_step([Run(0, 1000, 1)])
    step.rows["head_row"], step.rows["draw"] = 0, draw
    for name, value in setting.items():
        step.sequences[name] = value
    log = np.random.default_rng(1).integers(0, VOCAB_SIZE, (1, n_log)).astype(np.uint32)
    runs = [
        _core.run_operation(
            "sample",
            operands={0: logits[None], 1: log, 2: np.zeros(1, np.uint32)},
            params=pack_params("sample", VOCAB_SIZE, n_log),
            rows=step.rows.tobytes(),
            spans=step.spans.tobytes(),
            pages=step.pages,
            sequences=step.sequences.tobytes(),
            repeat=STEPS,
        )["seconds"]
        for _ in range(RUNS)
    ]
    return float(min(runs)) / STEPS


def measured(path: Path) -> list[dict[str, Any]]:
    """A result for each setting: seconds of the kernel at each position."""
    chooser = np.random.default_rng(1)
    with akunu.load(path, context=512, threads=1) as model:
        prompt = model.tokenizer.encode(PROMPT)
        tokens = list(model.generate(prompt, max_tokens=TOKENS, seed=1, **WARM).token_ids)
        logits = model.logits(prompt + tokens)[len(prompt) :][:POSITIONS]
    rows = [stretched(row, chooser) for row in logits]
    return [
        {
            "model": path.name,
            "setting": name,
            "kernel": [kernel_seconds(row, draw, setting) for draw, row in enumerate(rows)],
        }
        for name, setting in SETTINGS.items()
    ]


def rows(results: list[dict[str, Any]]) -> list[str]:
    """The table's lines."""
    lines = ["| logits of | sampling | median, µs | 90 % below |", "|---|---|---:|---:|"]
    for result in results:
        median, most = (1e6 * float(np.quantile(result["kernel"], q)) for q in (0.5, 0.9))
        cells = [result["model"], result["setting"], f"{median:.0f}", f"{most:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    help_text = "write a text and sample its logits with every setting"
    return run_tool(__doc__, help_text, measured, rows, begin=BEGIN, end=END)


if __name__ == "__main__":
    raise SystemExit(main())
