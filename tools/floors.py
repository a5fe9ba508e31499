"""How close the CPU comes to what the machine can do: bandwidth, and rates of multiplication.

    python -m tools.floors measure MODEL.gguf ... -o benchmarks/floors.json
    python -m tools.floors report benchmarks/floors.json --write docs/performance.md

The floor of a test is the time that it takes at the limits which the same run measured (`akunu
bench --roofline`): the longer of reading and of multiplying.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.compare.report import replace_between

BEGIN, END = "<!-- floors: begin -->", "<!-- floors: end -->"
TESTS = ["-p", "512,4096", "-n", "64", "-r", "5"]

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
    command = [sys.executable, "-m", "akunu", "bench", *TESTS, "--roofline", "-o", "json"]
    done = subprocess.run([*command, str(model)], check=True, capture_output=True, text=True)
    return [
        {"model": model.name, "cpu_info": row["cpu_info"], **{key: row[key] for key in _KEPT}}
        for row in json.loads(done.stdout)
    ]


def rows(results: list[dict[str, Any]]) -> list[str]:
    lines = list(_HEADER)
    for row in results:
        share = max(row["bandwidth_share"], row["compute_share"])
        cells = [
            row["model"],
            f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}",
            f"{row['avg_ts']:.1f}",
            f"{row['avg_ts'] / share:.1f}",
            f"{100 * share:.0f} %",
            f"{row['read_gb_per_s']:.1f}",
            f"{row['gop_per_s']:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    first = results[0]
    limits = [row["limits"] for row in results]

    def between(key: str) -> str:
        values = [limit[key] for limit in limits]
        return f"{min(values):.1f} to {max(values):.1f}"

    lines += [
        "",
        f"{first['cpu_info']}, level {first['isa_level']}, {first['n_threads']} threads, "
        f"{first['test_time'][:10]}. Limits, measured once per model: reads "
        f"{between('read_gb_per_s')} GB/s, bf16 on the matrix unit {between('bf16_gop_per_s')} "
        f"Gop/s, int8 {between('int8_gop_per_s')}, float {between('float_gop_per_s')}.",
    ]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    measure = verbs.add_parser("measure", help="run `akunu bench` and keep the results")
    measure.add_argument("models", type=Path, nargs="+")
    measure.add_argument("-o", "--output", type=Path, required=True)
    report = verbs.add_parser("report", help="print the table, or write it into a document")
    report.add_argument("results", type=Path)
    report.add_argument("--write", type=Path, help="a document with the two marks")
    arguments = parser.parse_args()
    if arguments.verb == "measure":
        results = [row for model in arguments.models for row in measured(model)]
        arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        return 0
    table = "\n".join(rows(json.loads(arguments.results.read_text(encoding="utf-8"))))
    if arguments.write is None:
        print(table)
        return 0
    page = arguments.write.read_text(encoding="utf-8")
    text = replace_between(page, table, begin=BEGIN, end=END)
    arguments.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
