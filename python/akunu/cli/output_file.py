"""What `akunu convert` and `akunu quantize` share: writing a model file and reporting on it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from akunu import _core
from akunu.cli.model_file import format_totals
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import bytes_text, write_facts
from akunu.convert.quantizing import Quantization
from akunu.options.engine_limits import MAX_THREADS

_NAMED: Final = 3  # the others are counted


def available_threads() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return the number of threads of --threads, or one per core; raises UsageError."""
    if threads is None:
        return min(available_threads(), MAX_THREADS)
    if not 1 <= threads <= MAX_THREADS:
        raise console.UsageError(f"--threads is {threads}; it must be 1 to {MAX_THREADS}")
    return threads


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def write_made(work: Quantization, target: Path, *, threads: int, force: bool) -> None:
    """Write the file with its progress on stderr; raises what `Quantization.write` raises."""
    at = 0

    def describe() -> str:
        step = work.steps[at]
        n = f"{at + 1} of {len(work.steps)}"
        return f"tensor {n}: {step.plan.name}, {step.plan.type_name}"

    def on_step(number: int) -> None:
        nonlocal at
        at = number

    with Progress(describe):
        work.write(target, threads=threads, force=force, on_step=on_step)


def report_made(
    path: Path, target: Path, work: Quantization, seconds: float, *, as_json: bool
) -> None:
    """Report on stdout which file was made, its size and its formats."""
    before = sum(Path(part).stat().st_size for part in work.file.parts)
    formats = format_totals(_core.GgufFile(target).tensors)
    if as_json:
        facts = {
            "source": str(path),
            "source_bytes": before,
            "target": str(target),
            "type": work.wishes.recipe.name,
            "bytes": work.size,
            "bits_per_weight": work.bits_per_weight,
            "seconds": seconds,
            "formats": formats,
            "fallbacks": {
                step.plan.name: {"wished": step.wished, "format": step.plan.type_name}
                for step in work.steps
                if step.fell_back
            },
        }
        json.dump(facts, sys.stdout, ensure_ascii=False, indent=2)
        print()
        return
    shown = ", ".join(f"{each['tensors']} in {each['format']}" for each in formats)
    write_facts(
        "",
        [
            ("written", str(target)),
            ("size", f"{bytes_text(work.size)} of {bytes_text(before)}"),
            ("bits per weight", f"{work.bits_per_weight:.2f}"),
            ("tensors", shown),
            ("time", f"{seconds:.1f} s"),
        ],
    )
