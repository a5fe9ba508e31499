"""What a build compiles, and the CPU seconds and memory that each file takes.

    python -m tools.build_time measure -o build.log     builds the package from nothing
    python -m tools.build_time report build.log --write docs/reference/benchmarks.md
    python -m tools.build_time check build.log          fails when it is a tenth over the record
    python -m tools.build_time record build.log         makes it the record

Any other build is measured with this launcher before its compiler, or before ccache:

    export CMAKE_CXX_COMPILER_LAUNCHER="python3;$PWD/tools/build_time.py;launch;$PWD/build.log"

Machines differ in speed, and so does one from minute to minute: a check of seconds fails on a busy
one. The compiler's memory is the same everywhere, and grows as its time does: with what it parses,
instantiates and generates. So `check` compares the sum of that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools/build_time.json"  # MiB of each group
LEVELS = "generic,avx2"
MOST = 1.1  # times what is recorded
BEGIN, END = "<!-- build time: begin -->", "<!-- build time: end -->"


class Cost(NamedTuple):
    """What compiling took."""

    seconds: float = 0.0  # of the CPU
    mib: float = 0.0  # the most memory of a process, summed over files

    def plus(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.mib + other.mib)


def launch(log: Path, command: list[str]) -> int:
    """Compile a file, and append a line to the log."""
    _, status, usage = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0 and "-c" in command and "-o" in command:
        name = command[command.index("-o") + 1]
        seconds, mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        with log.open("a", encoding="utf-8") as lines:
            lines.write(f"{seconds:.2f}\t{mib:.1f}\t{name}\n")
    return code


def read_log(path: Path) -> dict[str, Cost]:
    """What each object took, the last time that it was compiled."""
    costs = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        seconds, mib, name = line.split("\t")
        if "cmTC_" not in name:  # CMake tries the compiler under names that it draws
            costs[name] = Cost(float(seconds), float(mib))
    if not costs:
        raise SystemExit(f"{path}: nothing was compiled")
    return costs


def group_of(name: str) -> str:
    """The target that an object belongs to."""
    found = re.search(r"CMakeFiles/(\w+)\.dir/", name)
    return found[1].removeprefix("akunu_") if found else name


def by_group(log: dict[str, Cost]) -> dict[str, Cost]:
    """What each target took, the longest first."""
    groups: dict[str, Cost] = {}
    for name, cost in log.items():
        group = group_of(name)
        groups[group] = groups.get(group, Cost()).plus(cost)
    return dict(sorted(groups.items(), key=lambda group: -group[1].seconds))


def measure(output: Path) -> None:
    """Build the package from nothing, without a cache of objects."""
    output.unlink(missing_ok=True)
    launcher = f"{sys.executable};{Path(__file__).resolve()};launch;{output.resolve()}"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "CMAKE_CXX_COMPILER_LAUNCHER": launcher,
            "SKBUILD_BUILD_DIR": f"{folder}/build",
            "SKBUILD_CMAKE_DEFINE": f"AKUNU_CPU_LEVELS={LEVELS}",
        }
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(command, check=True, env=environment)


def rows(log: dict[str, Cost]) -> list[str]:
    """The tables: targets, and the objects that take longest."""
    groups = by_group(log)
    seconds = sum(cost.seconds for cost in groups.values())
    mib = sum(cost.mib for cost in groups.values())
    lines = ["| target | CPU seconds | share | MiB |", "|---|--:|--:|--:|"]
    lines += [
        f"| {name} | {cost.seconds:.1f} | {100 * cost.seconds / seconds:.0f} % | {cost.mib:.0f} |"
        for name, cost in groups.items()
    ]
    lines += [f"| together | {seconds:.0f} | | {mib:.0f} |", ""]
    lines += ["| the longest files | CPU seconds |", "|---|--:|"]
    for name, cost in sorted(log.items(), key=lambda entry: -entry[1].seconds)[:12]:
        file = name.split(".dir/")[-1].removesuffix(".o")
        lines.append(f"| {group_of(name)}: {file} | {cost.seconds:.1f} |")
    return lines


def check(log: dict[str, Cost]) -> int:
    """Compare with the record, but for targets that it lacks: machines have other levels."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    groups = by_group(log)
    if missing := recorded.keys() - groups.keys():
        print(f"not compiled: {', '.join(sorted(missing))}")
        return 1
    print(f"{'the memory of':24} {'record':>7} {'now':>7} MiB")
    for name, before in recorded.items():
        print(f"{name:24} {before:7.0f} {groups[name].mib:7.0f}  x {groups[name].mib / before:.2f}")
    before, now = sum(recorded.values()), sum(groups[name].mib for name in recorded)
    print(f"{'together':24} {before:7.0f} {now:7.0f}  x {now / before:.2f}, at most {MOST}")
    return int(now > MOST * before)


def main() -> int:
    """The command line."""
    if sys.argv[1:2] == ["launch"]:
        return launch(Path(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("measure").add_argument("-o", "--output", type=Path, required=True)
    for verb in ("report", "check", "record"):
        verbs.add_parser(verb).add_argument("log", type=Path)
    verbs.choices["report"].add_argument("--write", type=Path, help="a document with the two marks")
    arguments = parser.parse_args()
    if arguments.verb == "measure":
        measure(arguments.output)
        return 0
    log = read_log(arguments.log)
    if arguments.verb == "check":
        return check(log)
    if arguments.verb == "record":
        memory = {name: round(cost.mib) for name, cost in by_group(log).items()}
        RECORD.write_text(json.dumps(memory, indent=1) + "\n", encoding="utf-8")
        return 0
    table = "\n".join(rows(log))
    if arguments.write is None:
        print(table)
    else:
        from tools.compare.report import replace_between

        document = arguments.write.read_text(encoding="utf-8")
        arguments.write.write_text(
            replace_between(document, table, begin=BEGIN, end=END), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
