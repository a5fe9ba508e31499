"""What a forward pass over a few generated rows costs beside one of a single row.

    python -m tools.few_rows measure MODEL.gguf ... -o few-rows.json
    python -m tools.few_rows report few-rows.json --write docs/reference/benchmarks.md

Drafts that are verified and texts that are generated side by side are such rows. Each pass ends
with the logits of all its rows; those of the last of PASSES passes are copied out to an array,
which counts.
"""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path
from typing import Any

from tools.measured_table import run_tool

import akunu

BEGIN, END = "<!-- few rows: begin -->", "<!-- few rows: end -->"
ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
PASSES = 16  # of a measurement
ROUNDS = 7  # of measurements, all numbers of rows in turn


def measured(path: Path) -> dict[str, Any]:
    """Seconds of a pass for each number of rows, one for each round."""
    seconds: dict[int, list[float]] = {n: [] for n in ROWS}
    chooser = random.Random(1)
    model: Any = akunu.load(path, context=512)
    try:
        for _ in range(ROUNDS + 1):
            for n, taken in seconds.items():
                tokens = [chooser.randrange(256, 4096) for _ in range(n * PASSES)]
                start = time.perf_counter()
                model._native.logits_chunked(
                    tokens, chunks=[n] * PASSES, roles="generated", first=n * (PASSES - 1)
                )
                taken.append((time.perf_counter() - start) / PASSES)
    finally:
        model.close()
    return {"model": path.name, "seconds": {str(n): taken[1:] for n, taken in seconds.items()}}


def rows(results: list[dict[str, Any]]) -> list[str]:
    """The table's lines: medians, in times of a single row's."""
    lines = [
        "| model | one row, ms | " + " | ".join(f"{n} rows" for n in ROWS[1:]) + " |",
        "|---|" + "---:|" * len(ROWS),
    ]
    for result in results:
        medians = {n: statistics.median(result["seconds"][str(n)]) for n in ROWS}
        cells = [f"{medians[n] / medians[1]:.2f}" for n in ROWS[1:]]
        lines.append(f"| {result['model']} | {1e3 * medians[1]:.1f} | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    return run_tool(
        __doc__,
        "time passes of each model",
        lambda model: [measured(model)],
        rows,
        begin=BEGIN,
        end=END,
    )


if __name__ == "__main__":
    raise SystemExit(main())
