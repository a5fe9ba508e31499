"""Counts tests for .ci/run.

count.py add FOLDER NAME [JUNIT_FILE ...]   note the tests in these files (none: one that passed)
count.py total FOLDER --failed-steps N      print the sum; exit 1 where a test or step failed, or
                                            no test ran
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

COUNTED = ("passed", "failed", "skipped")


def read_junit(path: Path, failed: list[str]) -> dict[str, int]:
    """How many tests had each outcome; appends the names of those that failed."""
    counts = dict.fromkeys(COUNTED, 0)
    if not path.exists():  # the program that writes it did not get that far
        failed.append(f"{path.name} was not written")
        return {**counts, "failed": 1}
    for case in ElementTree.parse(path).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"} or case.get("status") == "fail":
            counts["failed"] += 1
            failed.append(f"{case.get('classname')}: {case.get('name')}")
        elif "skipped" in outcomes:
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts


def add(folder: Path, name: str, files: list[Path]) -> None:
    counts = dict.fromkeys(COUNTED, 0)
    failed: list[str] = []
    for path in files:
        for outcome, number in read_junit(path, failed).items():
            counts[outcome] += number
    if not files:
        counts["passed"] = 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({**counts, "names of failed": failed}))


def total(folder: Path, failed_steps: int) -> int:
    counts = dict.fromkeys(COUNTED, 0)
    for path in sorted(folder.glob("*.json")):
        step = json.loads(path.read_text())
        print(f"{path.stem:<28} " + ", ".join(f"{step[each]} {each}" for each in COUNTED))
        for outcome in COUNTED:
            counts[outcome] += step[outcome]
        for test in step["names of failed"]:
            print(f"  failed: {test}")
    counts["failed"] = max(counts["failed"], failed_steps)
    if counts["passed"] + counts["failed"] == 0:
        print("no test ran")
        counts["failed"] = 1
    print()
    print(", ".join(f"{counts[each]} {each}" for each in COUNTED))
    return 1 if counts["failed"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Counts tests for .ci/run.")
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add")
    adding.add_argument("folder", type=Path)
    adding.add_argument("name")
    adding.add_argument("files", type=Path, nargs="*")
    summing = commands.add_parser("total")
    summing.add_argument("folder", type=Path)
    summing.add_argument("--failed-steps", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.command == "add":
        add(arguments.folder, arguments.name, arguments.files)
        return 0
    return total(arguments.folder, arguments.failed_steps)


if __name__ == "__main__":
    sys.exit(main())
