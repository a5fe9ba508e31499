"""What a build compiles, and the CPU seconds that each file takes.

    python -m tools.build_time measure -o build.log     builds the package from nothing
    python -m tools.build_time report build.log --write docs/reference/benchmarks.md
    python -m tools.build_time check build.log          fails when it is a tenth over the record
    python -m tools.build_time record build.log         makes it the record

Any other build is measured with this launcher before its compiler, or before ccache:

    export CMAKE_CXX_COMPILER_LAUNCHER="python3;$PWD/tools/build_time.py;launch;$PWD/build.log"

Machines differ in speed, and so does one from minute to minute. So the launcher also compiles
build_time_unit.cpp, after every sixteenth file, and `check` counts in units of that: it includes
nothing of akunu.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
UNIT = ROOT / "tools/build_time_unit.cpp"
RECORD = ROOT / "tools/build_time.json"  # units of each group
LEVELS = "generic,avx2"
MOST = 1.1  # times what is recorded
BEGIN, END = "<!-- build time: begin -->", "<!-- build time: end -->"
Log = list[tuple[str, float]]  # objects, and CPU seconds


def cpu_seconds(command: list[str]) -> tuple[int, float]:
    """Run a command; its exit status, and user and system time of it and what it started."""
    _, status, usage = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def append(log: Path, name: str, seconds: float) -> int:
    """A line of the log; how many it has."""
    with log.open("a+", encoding="utf-8") as lines:
        lines.write(f"{seconds:.2f}\t{name}\n")
        lines.flush()
        lines.seek(0)
        return len(lines.readlines())


def launch(log: Path, command: list[str]) -> int:
    """Compile a file, and note what it took; every sixteenth time compile the unit as well."""
    code, seconds = cpu_seconds(command)
    if code == 0 and "-c" in command and "-o" in command:
        n_lines = append(log, command[command.index("-o") + 1], seconds)
        if n_lines % 17 == 8:
            compiler = next(word for word in command if re.search(r"[+][+][-\d.]*$", word))
            with tempfile.TemporaryDirectory() as folder:
                unit = [compiler, "-std=c++20", "-O2", "-c", str(UNIT), "-o", f"{folder}/unit.o"]
                code, seconds = cpu_seconds(unit)
            append(log, "unit", seconds)
    return code


def read_log(path: Path) -> Log:
    """The last time that each object was compiled, and every time of the unit."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    # CMake tries the compiler under names that it draws.
    lines = [line for line in lines if "cmTC_" not in line[1]]
    objects = {name: float(seconds) for seconds, name in lines if name != "unit"}
    units = [("unit", float(seconds)) for seconds, name in lines if name == "unit"]
    if not objects or not units:
        raise SystemExit(f"{path}: nothing was compiled, or fewer than eight files")
    return [*objects.items(), *units]


def unit_of(log: Log) -> float:
    """CPU seconds of the unit."""
    return median(seconds for name, seconds in log if name == "unit")


def group_of(name: str) -> str:
    """The target that an object belongs to."""
    found = re.search(r"CMakeFiles/(\w+)\.dir/", name)
    return found[1].removeprefix("akunu_") if found else name


def by_group(log: Log) -> dict[str, float]:
    """CPU seconds of each target."""
    groups: dict[str, float] = defaultdict(float)
    for name, seconds in log:
        if name != "unit":
            groups[group_of(name)] += seconds
    return dict(sorted(groups.items(), key=lambda group: -group[1]))


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


def rows(log: Log) -> list[str]:
    """The tables: targets, and the objects that take longest."""
    groups = by_group(log)
    total, unit = sum(groups.values()), unit_of(log)
    lines = ["| target | CPU seconds | share |", "|---|--:|--:|"]
    lines += [f"| {name} | {s:.1f} | {100 * s / total:.0f} % |" for name, s in groups.items()]
    lines += [f"| together | {total:.0f} | {total / unit:.0f} units |", ""]
    lines += ["| the longest files | CPU seconds |", "|---|--:|"]
    objects = sorted((entry for entry in log if entry[0] != "unit"), key=lambda entry: -entry[1])
    for name, seconds in objects[:12]:
        file = name.split(".dir/")[-1].removesuffix(".o")
        lines.append(f"| {group_of(name)}: {file} | {seconds:.1f} |")
    return lines


def check(log: Log) -> int:
    """Compare with the record, but for targets that it lacks: machines have other levels."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    unit, groups = unit_of(log), by_group(log)
    if missing := recorded.keys() - groups.keys():
        print(f"not compiled: {', '.join(sorted(missing))}")
        return 1
    units = {name: groups[name] / unit for name in recorded}
    for name, before in recorded.items():
        print(f"{name:24} {before:7.1f} {units[name]:7.1f}  x {units[name] / before:.2f}")
    before, now = sum(recorded.values()), sum(units.values())
    print(f"{'together':24} {before:7.1f} {now:7.1f}  x {now / before:.2f}, at most {MOST}")
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
        units = {name: round(seconds / unit_of(log), 2) for name, seconds in by_group(log).items()}
        RECORD.write_text(json.dumps(units, indent=1) + "\n", encoding="utf-8")
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
