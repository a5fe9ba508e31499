"""Small faults, one at a time: which of them does the suite notice?

All faults are compiled into one build, each behind a switch; AKUNU_MUTANT=17 turns number 17 on.
So a fault costs no build, and a run without one tells which test files pass through it.

    python -m tools.mutants plant CLONE --count 200   edits the sources of a clone
    python -m tools.mutants plant CLONE --like OTHER  the faults of another clone that fit
    python -m tools.mutants drop CLONE 12 40          takes back those that the compiler refuses
    python -m tools.mutants reach CLONE               runs each test file once, without a fault
    python -m tools.mutants run CLONE --results FILE  turns on one after the other

Before `reach`, CLONE is built, with AKUNU_WERROR=OFF, and installed where this Python finds it.
--workers says how many files, or faults, are run at once, each on two processors of its own.

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
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

GROUPS = {
    "kernels": ["backend/cpu/kernels/**/*.h", "backend/cpu/kernels/**/*.cpp"],
    "scheduler": ["src/inference/scheduler*.cpp", "src/inference/composer.cpp", "src/cache/*.cpp"],
    "readers": ["src/files/*.cpp", "src/files/*/*.cpp"],
    "masks": [
        f"src/inference/{name}.cpp"
        for name in ("masks", "text_masks", "constraint", "llguidance", "scheduler_masks", "queue")
    ]
    + ["src/text/token_matcher.cpp", "src/text/expression.cpp"],
}
# Whose tests are run.
FOLDERS = tuple(f"tests/{name}/" for name in ("models", "kernels", "unit", "e2e", "server"))
MOST_FILES_AT_ONCE = 8
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
    planted: str  # the line with the switch


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
            mutants.append(Mutant(len(mutants), group, name, index + 1, before, *reversed(made)))
            lines[index] = made[0]
            path.write_text("\n".join(lines), encoding="utf-8")
    return mutants


def plant_like(clone: Path, others: list[Mutant]) -> list[Mutant]:
    """The faults of another clone whose lines are here; of equal lines, at the nearest one."""
    mutants = []
    for other in others:
        path = clone / other.file
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        same = [index for index, line in enumerate(lines) if line == other.before]
        if same:
            index = min(same, key=lambda each: abs(each + 1 - other.line))
            lines[index] = other.planted
            path.write_text("\n".join(lines), encoding="utf-8")
            mutants.append(replace(other, line=index + 1))
    return mutants


def write_switch(clone: Path, mutants: list[Mutant]) -> None:
    switch = clone / "src" / "mutants.h"
    most = max(mutant.number for mutant in mutants) + 1
    switch.write_text(SWITCH.replace("MOST", str(most)), encoding="utf-8")
    cmake = clone / "CMakeLists.txt"
    cmake.write_text(
        cmake.read_text(encoding="utf-8").replace(
            "find_package(Threads REQUIRED)",
            f'add_compile_options(-include "{switch}")\nfind_package(Threads REQUIRED)',
        ),
        encoding="utf-8",
    )


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


def spread(calls: Iterable[Callable[[set[int]], object]], workers: int) -> Iterator:
    """What the calls return, as it comes. Each is given the processors that it may use."""
    processors = sorted(os.sched_getaffinity(0))
    free: SimpleQueue[set[int]] = SimpleQueue()
    for i in range(workers):
        free.put({processors[(i + j) % len(processors)] for j in range(2)})

    def run(call: Callable[[set[int]], object]) -> object:
        own = free.get()
        try:
            return call(own)
        finally:
            free.put(own)

    with ThreadPoolExecutor(workers) as pool:
        for done in as_completed([pool.submit(run, call) for call in calls]):
            yield done.result()


def run_tests(
    clone: Path, files: list[str], environment: dict[str, str], limit: float, processors: set[int]
) -> str | None:
    """The first failure of test files; None where they pass."""
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=clone,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # what a test started ends with it
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"{' '.join(files)} (did not end)"
    if process.returncode in (0, 5):
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return found[1] if found else f"{' '.join(files)} (exit status {process.returncode})"


def reach(clone: Path, workers: int) -> None:
    """Which test files pass through which fault, and what each takes."""
    path = clone / "reach.json"
    found = json.loads(path.read_text()) if path.exists() else {}

    def look(name: str, processors: set[int]) -> tuple[str, dict]:
        folder = clone / "passed" / name.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        environment = {"AKUNU_MUTANTS_PASSED": str(folder)}
        failed = run_tests(clone, [name], environment, 300, processors)
        seconds = time.monotonic() - started
        passed = {int(line) for each in folder.iterdir() for line in each.read_text().split()}
        return name, {"seconds": seconds, "passed": sorted(passed), "failed": failed}

    tests = [test for folder in FOLDERS for test in sorted((clone / folder).rglob("test_*.py"))]
    names = [name for test in tests if (name := str(test.relative_to(clone))) not in found]
    for name, seen in spread([partial(look, name) for name in names], workers):
        found[name] = seen
        path.write_text(json.dumps(found))
        took, failed = f"{seen['seconds']:.0f} s", seen["failed"] or "green"
        print(f"{name}: {len(seen['passed'])} faults, {took}, {failed}", flush=True)


def tests_of(mutant: Mutant, found: dict[str, dict]) -> Iterator[tuple[list[str], float]]:
    """Green test files that pass through the fault, some at once and the quickest first."""
    through = sorted(
        (each["seconds"], name)
        for name, each in found.items()
        if mutant.number in each["passed"] and not each["failed"]
    )
    n_files = 1  # mostly one is enough
    while through:
        some, through = through[:n_files], through[n_files:]
        yield [name for _, name in some], sum(seconds for seconds, _ in some)
        n_files = min(2 * n_files, MOST_FILES_AT_ONCE)


def turn_on(
    clone: Path, mutant: Mutant, found: dict[str, dict], most_seconds: float, processors: set[int]
) -> Result:
    started = time.monotonic()
    outcome, by = "not passed through", ""
    for files, seconds in tests_of(mutant, found):
        outcome = "not noticed"
        if time.monotonic() - started > most_seconds:
            outcome = "out of time"
            break
        environment = {"AKUNU_MUTANT": str(mutant.number)}
        failed = run_tests(clone, files, environment, 60 + 3 * seconds, processors)
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
    parser.add_argument("--like", type=Path, help="a clone with faults")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--most-seconds", type=float, default=120)
    arguments = parser.parse_args()
    clone = arguments.clone.resolve()
    if arguments.what == "plant":
        if arguments.like:
            mutants = plant_like(clone, listed(arguments.like))
        else:
            mutants = plant(clone, arguments.count)
        write_switch(clone, mutants)
        write_list(clone, mutants)
        print(Counter(mutant.group for mutant in mutants))
    elif arguments.what == "drop":
        drop(clone, arguments.numbers)
    elif arguments.what == "reach":
        reach(clone, arguments.workers)
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
            calls = [
                partial(turn_on, clone, mutant, found, arguments.most_seconds)
                for mutant in listed(clone)
                if mutant.number not in done
            ]
            for result in spread(calls, arguments.workers):
                writer.writerow(asdict(result))
                file.flush()
                print(f"{result.number} {result.place}: {result.outcome} {result.by}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
