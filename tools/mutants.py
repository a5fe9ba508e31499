"""Small faults, one at a time: which of them does the suite notice?

All faults are compiled into one build, each behind a switch; AKUNU_MUTANT=17 turns number 17 on.
So a fault costs no build, and a run without one tells which test files pass through it.

    python -m tools.mutants plant CLONE --count 200   edits the sources of a clone
    python -m tools.mutants drop CLONE 12 40          takes back those that the compiler refuses
    python -m tools.mutants reach CLONE               runs each test file once, without a fault
    python -m tools.mutants run CLONE --results FILE  turns on one after the other

Between the first and the third, CLONE is built, with AKUNU_WERROR=OFF.

A fault is noticed when a test fails, hangs or crashes. The files that pass through it are run until
one fails, the quickest first, for as long as --most-seconds says: FILE, a CSV, has what happened.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

GROUPS = {
    "kernels": ["backend/cpu/kernels/**/*.h", "backend/cpu/kernels/**/*.cpp"],
    "scheduler": ["src/inference/scheduler*.cpp", "src/inference/composer.cpp", "src/cache/*.cpp"],
    "readers": ["src/weight/*.cpp"],
    "masks": [
        f"src/inference/{name}.cpp"
        for name in ("masks", "text_masks", "constraint", "llguidance", "scheduler_masks", "queue")
    ]
    + ["src/text/token_matcher.cpp", "src/text/expression.cpp"],
}
# Whose tests are run: those that see the engine from near.
FOLDERS = ("tests/kernels/", "tests/models/", "tests/unit/")
# What takes the place of an operator that stands between spaces.
SWAPS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    " * ": " + ",
    " / ": " * ",
    " % ": " / ",
}
SWITCH = """#pragma once
// Written by tools/mutants.py: which fault is on, and which of them this process passed through.
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <unistd.h>
struct AkunuMutants {
  bool passed[MOST] = {};
  int on = -1;
  AkunuMutants() {
    if (const char* text = std::getenv("AKUNU_MUTANT")) on = std::atoi(text);
  }
  ~AkunuMutants() {
    const char* folder = std::getenv("AKUNU_MUTANTS_PASSED");
    if (!folder) return;
    char path[4096];
    std::snprintf(path, sizeof path, "%s/%d", folder, int(getpid()));
    std::FILE* file = std::fopen(path, "a");
    for (int i = 0; file && i < MOST; ++i)
      if (passed[i]) std::fprintf(file, "%d\\n", i);
    if (file) std::fclose(file);
  }
};
inline AkunuMutants akunu_mutants;
constexpr bool akunu_mutant(int number) {
  if (std::is_constant_evaluated()) return false;
  akunu_mutants.passed[number] = true;
  return akunu_mutants.on == number;
}
"""
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()([^;=]*(?:[<>=!]=[^;=]*)*)(\).*)$")
RETURN = re.compile(r"^(\s*return )([^{}?]+)(;)$")
DECLARED = re.compile(
    r"^(\s*(?:const )?(?:auto|u?int\d*_?t?|size_t|float|bool) \w+ = )([^{}?]+)(;)$"
)
ASSIGNED = re.compile(r"^(\s*)([\w.\[\]>-]+ [-+*|&]?= [^{}?]+;|[\w.:>-]+\([^{}]*\);)$")


@dataclass
class Mutant:
    """A fault: where it is, and both texts of its line."""

    number: int
    group: str
    file: str
    line: int
    before: str
    after: str


@dataclass(frozen=True)
class Result:
    """What happened when a fault was on."""

    number: int
    group: str
    place: str
    fault: str
    outcome: str  # noticed, not noticed, out of time, not passed through
    by: str
    seconds: int


def is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            return False
    return depth == 0


def swapped(expression: str, drawn: random.Random) -> str | None:
    """The expression with one operator changed."""
    places = [
        (match.start(), old)
        for old in SWAPS
        for match in re.finditer(re.escape(old), expression)
        if '"' not in expression
    ]
    if not places:
        return None
    at, old = drawn.choice(places)
    return expression[:at] + SWAPS[old] + expression[at + len(old) :]


def faulty(line: str, number: int, drawn: random.Random) -> tuple[str, str] | None:
    """A line with a switch in it, and what it says with the switch on."""
    switch = f"akunu_mutant({number})"
    for form in (CONDITION, RETURN, DECLARED):
        match = form.match(line)
        if match and is_balanced(match[2]) and " = " not in match[2] and "constexpr" not in line:
            other = swapped(match[2], drawn)
            if other:
                return f"{match[1]}{switch} ? ({other}) : ({match[2]}){match[3]}", other
    match = ASSIGNED.match(line)
    if match and is_balanced(match[2]) and not match[2].startswith(("return", "check(")):
        return f"{match[1]}{{ if (!{switch}) {match[2]} }}", f"(left out) {match[2]}"
    return None


def candidates(clone: Path, patterns: list[str]) -> list[tuple[Path, int]]:
    """Lines at which a statement of one line begins."""
    found = []
    for pattern in patterns:
        for path in sorted(clone.glob(pattern)):
            lines = path.read_text(encoding="utf-8").split("\n")
            for index in range(1, len(lines)):
                previous = lines[index - 1].strip()
                if not previous or previous.endswith((";", "{", "}")):
                    found.append((path, index))
    return found


def plant(clone: Path, count: int) -> list[Mutant]:
    drawn = random.Random(54)
    mutants: list[Mutant] = []
    for group, patterns in GROUPS.items():
        places = candidates(clone, patterns)
        drawn.shuffle(places)
        for path, index in places:
            if sum(mutant.group == group for mutant in mutants) == count // len(GROUPS):
                break
            lines = path.read_text(encoding="utf-8").split("\n")
            made = faulty(lines[index], len(mutants), drawn)
            if made is None:
                continue
            name = str(path.relative_to(clone))
            before = lines[index]
            mutants.append(Mutant(len(mutants), group, name, index + 1, before, made[1]))
            lines[index] = made[0]
            path.write_text("\n".join(lines), encoding="utf-8")
    switch = clone / "src" / "mutants.h"
    switch.write_text(SWITCH.replace("MOST", str(len(mutants))), encoding="utf-8")
    cmake = clone / "CMakeLists.txt"
    cmake.write_text(
        cmake.read_text(encoding="utf-8").replace(
            "find_package(Threads REQUIRED)",
            f'add_compile_options(-include "{switch}")\nfind_package(Threads REQUIRED)',
        ),
        encoding="utf-8",
    )
    return mutants


def listed(clone: Path) -> list[Mutant]:
    return [Mutant(**each) for each in json.loads((clone / "mutants.json").read_text())]


def write_list(clone: Path, mutants: list[Mutant]) -> None:
    (clone / "mutants.json").write_text(json.dumps([asdict(each) for each in mutants], indent=1))


def drop(clone: Path, numbers: list[int]) -> None:
    """Take back faults that do not compile."""
    mutants = listed(clone)
    for mutant in mutants:
        if mutant.number in numbers:
            path = clone / mutant.file
            lines = path.read_text(encoding="utf-8").split("\n")
            lines[mutant.line - 1] = mutant.before
            path.write_text("\n".join(lines), encoding="utf-8")
    write_list(clone, [each for each in mutants if each.number not in numbers])


def run_tests(clone: Path, file: str, environment: dict[str, str], limit: float) -> str | None:
    """The first failure of a test file; None where it passes."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, file],
            cwd=clone,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"{file} (did not end)"
    if run.returncode in (0, 5):
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return found[1] if found else f"{file} (exit status {run.returncode})"


def reach(clone: Path) -> None:
    """Which test files pass through which fault, and what each takes."""
    path = clone / "reach.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for test in sorted((clone / "tests").rglob("test_*.py")):
        name = str(test.relative_to(clone))
        if name in found or not name.startswith(FOLDERS):
            continue
        folder = clone / "passed" / name.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        failed = run_tests(clone, name, {"AKUNU_MUTANTS_PASSED": str(folder)}, 900)
        passed = {int(line) for each in folder.iterdir() for line in each.read_text().split()}
        found[name] = {
            "seconds": time.monotonic() - started,
            "passed": sorted(passed),
            "failed": failed,
        }
        path.write_text(json.dumps(found))
        print(
            f"{name}: {len(passed)} faults, {found[name]['seconds']:.0f} s, {failed or 'green'}",
            flush=True,
        )


def tests_of(mutant: Mutant, found: dict[str, dict]) -> Iterator[tuple[str, float]]:
    """Green test files that pass through the fault, the quickest first."""
    through = [
        (each["seconds"], name)
        for name, each in found.items()
        if mutant.number in each["passed"] and not each["failed"]
    ]
    for seconds, name in sorted(through):
        yield name, seconds


def turn_on(clone: Path, mutant: Mutant, found: dict[str, dict], most_seconds: float) -> Result:
    started = time.monotonic()
    outcome, by = "not passed through", ""
    for name, seconds in tests_of(mutant, found):
        outcome = "not noticed"
        if time.monotonic() - started > most_seconds:
            outcome = "out of time"
            break
        failed = run_tests(clone, name, {"AKUNU_MUTANT": str(mutant.number)}, 60 + 4 * seconds)
        if failed:
            outcome, by = "noticed", failed
            break
    place = f"{mutant.file}:{mutant.line}"
    took = round(time.monotonic() - started)
    return Result(mutant.number, mutant.group, place, mutant.after.strip(), outcome, by, took)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["plant", "drop", "reach", "run"])
    parser.add_argument("clone", type=Path)
    parser.add_argument("numbers", type=int, nargs="*", help="of faults to drop")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--most-seconds", type=float, default=120)
    arguments = parser.parse_args()
    clone = arguments.clone.resolve()
    if arguments.what == "plant":
        mutants = plant(clone, arguments.count)
        write_list(clone, mutants)
        print(Counter(mutant.group for mutant in mutants))
    elif arguments.what == "drop":
        drop(clone, arguments.numbers)
    elif arguments.what == "reach":
        reach(clone)
    else:
        found = json.loads((clone / "reach.json").read_text())
        results: Path = arguments.results
        done: set[int] = set()
        if results.exists():
            with results.open(encoding="utf-8") as file:
                done = {int(row["number"]) for row in csv.DictReader(file)}
        with results.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Result)])
            if not done:
                writer.writeheader()
            for mutant in listed(clone):
                if mutant.number in done:
                    continue
                result = turn_on(clone, mutant, found, arguments.most_seconds)
                writer.writerow(asdict(result))
                file.flush()
                print(f"{result.number} {result.place}: {result.outcome} {result.by}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
