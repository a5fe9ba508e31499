"""Does the suite notice when a mended fault comes back?

Takes commits that mended a fault, takes back what each changed in the source (not in the tests),
installs that, and runs tests until the first one fails: those in the files that the commit touched,
then those of the same part, then all others. A commit whose change no test notices needs a test.

    python -m tools.revert_fixes --list                   which commits could be taken back now
    python -m tools.revert_fixes FOLDER --results FILE    take them back, one after the other

FOLDER is made: a clone of this repository with an environment and a build of its own, so that each
commit compiles only what it changes. FILE is a CSV with a line for each commit; commits that it has
already are left out, so that a run can be continued.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIXES = ROOT / "tests" / "mended_faults.txt"
SOURCE = ("src", "backend", "python/akunu", ":!python/akunu/data", ":!*.md", ":!*.pyi")
INSTALL = ("--no-build-isolation", "--quiet", "--config-settings")
TAKE_BACK = ("apply", "--reverse", "--3way")
HANGS_AFTER = 900  # seconds
OPTIONS = "cmake.define.AKUNU_METAL_EMULATOR=ON"

# Where tests of a part of the source are, beside those that the commit touched.
PARTS = {
    "python/akunu/server": ("tests/server",),
    "python/akunu/cli": ("tests/e2e",),
    "python/akunu/hub": ("tests/hub",),
    "python/akunu": ("tests/unit", "tests/e2e"),
    "src/files": ("tests/unit", "tests/models"),
    "src": ("tests/models", "tests/e2e"),
    "backend": ("tests/kernels", "tests/models"),
}


@dataclass(frozen=True)
class Result:
    """What happened when a commit's change was taken back."""

    commit: str
    subject: str
    lines: int  # of source, added and removed
    outcome: str  # noticed, survived, does not build
    by: str  # the first test that failed
    seconds: int


def git(*arguments: str, folder: Path = ROOT, text: str | None = None) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, input=text, check=True, capture_output=True, text=True
    ).stdout


def source_files(commit: str) -> list[str]:
    return git("diff", "--name-only", f"{commit}^", commit, "--", *SOURCE).split()


def source_change(commit: str) -> str:
    return git("diff", f"{commit}^", commit, "--", *SOURCE)


def changed_lines(change: str) -> int:
    return len(re.findall(r"^[+-](?![+-]{2} )", change, re.MULTILINE))


def still_applies(change: str) -> bool:
    """Whether all of a change can be taken back, moved lines included."""
    with tempfile.TemporaryDirectory() as folder:
        index = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        subprocess.run(["git", "read-tree", "HEAD"], cwd=ROOT, env=index, check=True)
        command = ["git", *TAKE_BACK, "--cached"]
        run = subprocess.run(
            command, cwd=ROOT, env=index, input=change, text=True, capture_output=True
        )
    return run.returncode == 0


def listed_commits() -> list[str]:
    """The commits of the list, newest first."""
    lines = FIXES.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def tests_of(commit: str) -> Iterator[list[str]]:
    """Groups of test files and folders, in the order in which they are run."""
    touched = git("diff", "--name-only", f"{commit}^", commit, "--", "tests").split()
    own = [
        name for name in touched if re.search(r"/test_\w+\.py$", name) and (ROOT / name).exists()
    ]
    if own:
        yield own
    near: list[str] = []
    for path in source_files(commit):
        part = next(folders for prefix, folders in PARTS.items() if path.startswith(prefix))
        near += [folder for folder in part if folder not in near]
    yield near
    yield ["tests"]


class Bench:
    """A clone with an environment, where changes are taken back."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "clone"
        self.python = folder / "venv" / "bin" / "python"
        if not self.clone.exists():
            git("clone", "--quiet", str(ROOT), str(self.clone))
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
            self.pip("install", "--quiet", "scikit-build-core>=0.11,<2", "pybind11>=3,<4")
            self.pip("install", *INSTALL, OPTIONS, "--editable", f"{self.clone}[test]")

    def pip(self, *arguments: str) -> None:
        subprocess.run([self.python, "-m", "pip", *arguments], cwd=self.clone, check=True)

    def install(self) -> bool:
        try:
            self.pip("install", "--no-deps", *INSTALL, OPTIONS, "--editable", ".")
        except subprocess.CalledProcessError:
            return False
        return True

    def first_failure(self, paths: Sequence[str]) -> str | None:
        """The first test that fails; None where none does."""
        options = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider")
        try:
            run = subprocess.run(
                [self.python, "-m", "pytest", *options, *paths],
                cwd=self.clone,
                capture_output=True,
                text=True,
                timeout=HANGS_AFTER,
            )
        except subprocess.TimeoutExpired:
            return f"{' '.join(paths)} (did not end)"
        if run.returncode in (0, 5):  # all passed, or these files have only tests that are left out
            return None
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
        return found[1] if found else run.stdout.strip().splitlines()[-1]

    def take_back(self, commit: str, only_own: bool) -> Result:
        started = time.monotonic()
        change = source_change(commit)
        git("reset", "--quiet", "--hard", folder=self.clone)
        git(*TAKE_BACK, folder=self.clone, text=change)
        outcome, by = "survived", ""
        if re.search(r"^[+]{3} b/(src|backend)/", change, re.MULTILINE) and not self.install():
            outcome = "does not build"
        else:
            for paths in islice(tests_of(commit), 1 if only_own else None):
                failed = self.first_failure(paths)
                if failed:
                    outcome, by = "noticed", failed
                    break
        subject = git("log", "-1", "--format=%s", commit).strip()
        took = round(time.monotonic() - started)
        return Result(commit, subject, changed_lines(change), outcome, by, took)


def append(path: Path, result: Result) -> None:
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Result)])
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(result))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--commit", action="append", help="only this one; may be repeated")
    parser.add_argument("--count", type=int, default=40, help="the newest of the list; default: 40")
    parser.add_argument("--own", action="store_true", help="only tests that the commit touched")
    arguments = parser.parse_args()
    listed = arguments.commit or listed_commits()
    commits = [each for each in listed if still_applies(source_change(each))]
    commits = commits[: arguments.count]
    if arguments.list:
        for commit in commits:
            print(git("log", "-1", "--format=%h %s", commit).strip())
        return 0
    if not arguments.folder or not arguments.results:
        parser.error("a folder and --results, or --list")
    done: set[str] = set()
    if arguments.results.exists():
        with arguments.results.open(encoding="utf-8") as file:
            done = {row["commit"] for row in csv.DictReader(file)}
    bench = Bench(arguments.folder.resolve())
    survived = 0
    for commit in commits:
        if commit in done:
            continue
        result = bench.take_back(commit, arguments.own)
        append(arguments.results, result)
        print(f"{result.commit} {result.outcome} {result.by} ({result.seconds} s)", flush=True)
        survived += result.outcome == "survived"
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
