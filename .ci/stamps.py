"""Stamps of steps that passed: which files a step read, and the hash of them.

stamps.py unchanged STAMP ROOT [--text TEXT]    exit 0 if nothing differs since the last green run
stamps.py watch ROOT                            before a step: forget when each file was last read
stamps.py write STAMP ROOT [--text TEXT] [--ninja BUILD[:TARGET,...]] [--read] [--file NAME]
                                                after it: note what it read

Inputs are files of the repository ROOT. What a build read, ninja knows: compilers and generators
write dependency files, CMake lists its own inputs and its globs. `--read` adds every file that was
read since `watch`, in whichever language and process: the file system keeps access times.
`--file` adds one that neither sees. TEXT is the step itself: its commands, and which tests it runs.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FORGOTTEN = 946684800 * 10**9  # 2000-01-01: so old that the file system notes the next read


@dataclass(frozen=True)
class Inputs:
    """Files, as paths below the root, and patterns: a new file that matches one is a change."""

    files: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()

    def __or__(self, other: Inputs) -> Inputs:
        return Inputs(self.files | other.files, self.patterns | other.patterns)

    def hash(self, root: Path, text: str) -> str | None:
        """None where a file is missing."""
        total = hashlib.sha256(text.encode())
        for pattern in sorted(self.patterns):
            names = sorted(str(path.relative_to(root)) for path in root.glob(pattern))
            total.update(json.dumps([pattern, names]).encode())
        for name in sorted(self.files):
            if not (root / name).is_file():
                return None
            content = hashlib.sha256((root / name).read_bytes()).hexdigest()
            total.update(json.dumps([name, content]).encode())
        return total.hexdigest()


def read_stamp(path: Path) -> tuple[str, Inputs]:
    stamp = json.loads(path.read_text())
    files = {
        f"{folder}/{name}" if folder else name
        for folder, names in stamp["files"].items()
        for name in names
    }
    return stamp["hash"], Inputs(frozenset(files), frozenset(stamp["patterns"]))


def write_stamp(path: Path, digest: str, inputs: Inputs) -> None:
    """A line for each folder, so that a change of the list is a small diff."""
    folders: dict[str, list[str]] = {}
    for name in sorted(inputs.files):
        folder, _, file = name.rpartition("/")
        folders.setdefault(folder, []).append(file)
    lines = ",\n".join(f"    {json.dumps(f)}: {json.dumps(n)}" for f, n in sorted(folders.items()))
    patterns = json.dumps(sorted(inputs.patterns))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'{{\n  "hash": "{digest}",\n  "patterns": {patterns},\n  "files": {{\n{lines}\n  }}\n}}\n'
    )


def is_unchanged(path: Path, root: Path, text: str) -> bool:
    if not path.exists():
        print(f"{path.name} is not there: no green run is known")
        return False
    digest, inputs = read_stamp(path)
    current = inputs.hash(root, text)
    if current != digest:
        missing = [name for name in sorted(inputs.files) if not (root / name).is_file()]
        print(
            f"{path.stem}: changed since its last green run" + "".join(f"; no {m}" for m in missing)
        )
        return False
    print(
        f"{path.stem}: unchanged since its last green run: {digest[:16]}, {len(inputs.files)} files"
    )
    return True


@functools.cache
def tracked(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def below(root: Path, folder: Path, names: Iterable[str]) -> frozenset[str]:
    """Those of the names, relative to the folder, that are files of the root."""
    known = set(tracked(root))
    paths = {
        os.path.relpath(os.path.realpath(folder / name), os.path.realpath(root)) for name in names
    }
    return frozenset(paths & known)


def ninja_inputs(build: Path, root: Path, targets: list[str]) -> Inputs:
    """What a build that has just run has read; of the targets only, if there are some."""

    def ninja(*arguments: str) -> list[str]:
        command = ["ninja", "-C", str(build), *arguments]
        listed = subprocess.run(command, check=True, capture_output=True, text=True)
        return [line.strip() for line in listed.stdout.splitlines()]

    read = set(ninja("-t", "inputs", *(targets or ["all"])))
    # What CMake has read: of implicit inputs, which newer ninjas do not list, `query` tells.
    read.update(line.lstrip("| ") for line in ninja("-t", "query", "build.ninja"))
    # Dependency files of compilers, which ninja keeps: "OUTPUT: #deps N, ..." and N lines. Then
    # those of generators, which CMake keeps.
    read.update(line for line in ninja("-t", "deps") if ": #deps " not in line)
    for depfile in (build / "CMakeFiles" / "d").glob("*.d"):
        rule = depfile.read_text().replace("\\\n", " ").partition(": ")[2]
        read.update(name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", rule))
    files = below(root, build, read)
    patterns = set()
    verified = build / "CMakeFiles" / "VerifyGlobs.cmake"
    globs = re.findall(
        r'file\(GLOB(?:_RECURSE)? NEW_GLOB [^"]*"([^"]*)"\)\s*set\(OLD_GLOB\s*([^)]*)\)',
        verified.read_text() if verified.exists() else "",
    )
    for pattern, matched in globs:
        if below(root, build, re.findall(r'"([^"]*)"', matched)) & files:
            patterns.add(os.path.relpath(pattern, root))
    return Inputs(files, frozenset(patterns))


def places(root: Path, name: str) -> list[Path]:
    """Where a file is read from: there, or installed in the clone's environment, or compiled."""
    found = [root / name]
    if name.startswith("python/"):
        site_packages = (root / ".venv" / "lib").glob("python*/site-packages")
        found += [each / name.removeprefix("python/") for each in site_packages]
    if name.endswith(".py"):
        found += [
            compiled
            for source in list(found)
            for compiled in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")
        ]
    return [path for path in found if path.is_file()]


def watch(root: Path) -> None:
    for name in tracked(root):
        for path in places(root, name):
            os.utime(path, ns=(FORGOTTEN, path.stat().st_mtime_ns))


def read_since_watch(root: Path) -> Inputs:
    """Nothing where the file system keeps no access times (mounted with noatime)."""
    probe = root / ".git" / "akunu-stamps"
    probe.write_text("read me")
    os.utime(probe, ns=(FORGOTTEN, FORGOTTEN))
    probe.read_text()
    keeps_times = probe.stat().st_atime_ns > FORGOTTEN
    probe.unlink()
    read = [
        name
        for name in tracked(root)
        if keeps_times and any(path.stat().st_atime_ns > FORGOTTEN for path in places(root, name))
    ]
    return Inputs(frozenset(read))


def main() -> int:
    parser = argparse.ArgumentParser(description="Stamps of steps that passed, for .ci/run.")
    commands = parser.add_subparsers(dest="command", required=True)
    watching = commands.add_parser("watch")
    watching.add_argument("root", type=Path)
    comparing = commands.add_parser("unchanged")
    writing = commands.add_parser("write")
    for command in (comparing, writing):
        command.add_argument("stamp", type=Path)
        command.add_argument("root", type=Path)
        command.add_argument("--text", default="")
    writing.add_argument("--ninja", default=[], action="append", metavar="BUILD[:TARGET,...]")
    writing.add_argument("--read", action="store_true")
    writing.add_argument("--file", default=[], action="append", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.command == "watch":
        watch(arguments.root)
        return 0
    if arguments.command == "unchanged":
        return 0 if is_unchanged(arguments.stamp, arguments.root, arguments.text) else 1
    inputs = Inputs()
    if arguments.read:
        inputs = read_since_watch(arguments.root)
        if not inputs.files:
            print(f"no stamp of {arguments.stamp.stem}: it is not known which files it read")
            return 0
    for build in arguments.ninja:
        folder, _, targets = build.partition(":")
        inputs |= ninja_inputs(Path(folder), arguments.root, [t for t in targets.split(",") if t])
    inputs |= Inputs(frozenset(arguments.file))
    digest = inputs.hash(arguments.root, arguments.text)
    assert digest is not None
    write_stamp(arguments.stamp, digest, inputs)
    print(f"{arguments.stamp}: {digest[:16]}, {len(inputs.files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
