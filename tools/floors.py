"""How close the CPU comes to what the machine can do: bandwidth, and rates of multiplication.

    python -m tools.floors measure MODEL.gguf ... -o floors.json
    python -m tools.floors report floors.json --write docs/reference/benchmarks.md

The floor of a test is the time that it takes at the limits which the same run measured (`akunu
bench --roofline`): the longer of reading and of multiplying.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.measured_table import run_tool

BEGIN, END = "<!-- floors: begin -->", "<!-- floors: end -->"
TESTS = (
    ["-p", "512,4096", "-n", "64", "-r", "5"],
    ["-p", "0", "-n", "64", "-d", "4096", "-r", "5"],
)

_HEADER = (
    "| model | test | tok/s | floor, tok/s | share | reads, GB/s | multiplies, Gop/s |",
    "|---|---|---:|---:|---:|---:|---:|",
)
_KEPT = (
    *("isa_level", "n_threads", "n_prompt", "n_gen", "n_depth", "test_time", "samples_ns"),
    *("avg_ts", "read_gb_per_s", "gop_per_s", "bandwidth_share", "compute_share", "limits"),
)


def measured(model: Path) -> list[dict[str, Any]]:
    """The tests of one model, as `akunu bench` gives them, without what is this machine's own."""
    results = []
    for tests in TESTS:
        command = [sys.executable, "-m", "akunu", "bench", *tests, "--roofline", "-o", "json"]
        done = subprocess.run([*command, str(model)], check=True, capture_output=True, text=True)
        for row in json.loads(done.stdout):
            kept = {key: row[key] for key in _KEPT}
            results.append({"model": model.name, "cpu_info": row["cpu_info"], **kept})
    return results


def median_rate(row: dict[str, Any]) -> float:
    """Tokens per second of the median run: a run that touches memory first takes longer."""
    return (row["n_prompt"] + row["n_gen"]) * 1e9 / statistics.median(row["samples_ns"])


def rows(results: list[dict[str, Any]]) -> list[str]:
    lines = list(_HEADER)
    for row in results:
        rate = median_rate(row)
        faster = rate / row["avg_ts"]  # than the mean, which `akunu bench` gives the rest for
        share = max(row["bandwidth_share"], row["compute_share"]) * faster
        test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
        cells = [
            row["model"],
            f"{test} @ {row['n_depth']}" if row["n_depth"] else test,
            f"{rate:.1f}",
            f"{rate / share:.1f}",
            f"{100 * share:.0f} %",
            f"{row['read_gb_per_s'] * faster:.1f}",
            f"{row['gop_per_s'] * faster:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    first = results[0]
    limits = [row["limits"] for row in results]

    def between(key: str) -> str:
        values = [limit.get(key, 0.0) for limit in limits]
        return f"{min(values):.1f} to {max(values):.1f}" if max(values) > 0 else ""

    rates = {
        "bf16 on the matrix unit": between("bf16_gop_per_s"),
        "int8": between("int8_gop_per_s"),
        "int16": between("int16_gop_per_s"),
        "float": between("float_gop_per_s"),
    }
    (first_name, first_rate), *more = [(name, rate) for name, rate in rates.items() if rate]
    others = "".join(f", {name} {rate}" for name, rate in more)

    lines += [
        "",
        f"{first['cpu_info']}, level {first['isa_level']}, {first['n_threads']} threads, "
        f"{first['test_time'][:10]}. Limits, measured with every run: reads "
        f"{between('read_gb_per_s')} GB/s, {first_name} {first_rate} Gop/s{others}.",
    ]
    return lines


def main() -> int:
    return run_tool(
        __doc__, "run `akunu bench` and keep the results", measured, rows, begin=BEGIN, end=END
    )


if __name__ == "__main__":
    raise SystemExit(main())
