""".ci/run leaves a step out only when nothing that it read differs from its last green run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STAMPS = Path(__file__).parents[2] / ".ci" / "stamps.py"


class Clone:
    """A repository of a few files, and a step that has been stamped."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        self.stamp = folder / "step.json"
        self.root.mkdir()
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.root, check=True)

    def put(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", name)
        return path

    def stamps(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, STAMPS, *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def watch(self) -> None:
        assert self.stamps("watch", self.root).returncode == 0

    def write(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.stamps("write", self.stamp, self.root, *arguments)

    def is_unchanged(self, *arguments: str) -> bool:
        asked = self.stamps("unchanged", self.stamp, self.root, *arguments)
        assert not asked.stderr
        return asked.returncode == 0

    def is_unchanged_with(self, name: str) -> bool:
        """With another line in that file, which may be new; it is as before when this returns."""
        path = self.root / name
        before = path.read_text() if path.exists() else None
        path.write_text((before or "") + "\n")
        found = self.is_unchanged()
        path.unlink() if before is None else path.write_text(before)
        return found


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.fixture
def read(clone: Clone) -> Clone:
    """A step has read one file of two, and names another."""
    used = clone.put("src/used.txt", "1")
    clone.put("src/unused.txt", "1")
    clone.put("named.txt", "1")
    clone.watch()
    used.read_text()
    wrote = clone.write("--read", "--file", "named.txt", "--text", "run it")
    if "not known which files" in wrote.stdout:
        pytest.skip("this file system keeps no access times (noatime)")
    assert wrote.returncode == 0, wrote.stderr
    return clone


def test_a_step_without_a_stamp_runs(clone: Clone) -> None:
    assert not clone.is_unchanged()


def test_what_was_not_read_may_change(read: Clone) -> None:
    assert read.is_unchanged("--text", "run it")
    read.put("src/unused.txt", "2")
    read.put("src/new.txt", "2")
    assert read.is_unchanged("--text", "run it")


def test_what_was_read_may_not_change(read: Clone) -> None:
    read.put("src/used.txt", "2")
    assert not read.is_unchanged("--text", "run it")
    read.put("src/used.txt", "1")
    assert read.is_unchanged("--text", "run it")


def test_what_was_read_may_not_be_deleted(read: Clone) -> None:
    (read.root / "src" / "used.txt").unlink()
    assert not read.is_unchanged("--text", "run it")


def test_what_is_named_may_not_change(read: Clone) -> None:
    read.put("named.txt", "2")
    assert not read.is_unchanged("--text", "run it")


def test_another_step_is_a_change(read: Clone) -> None:
    assert not read.is_unchanged("--text", "run it otherwise")


def test_a_module_that_python_keeps_compiled_was_read(clone: Clone) -> None:
    clone.put("package/used.py", "")
    clone.put("package/unused.py", "")
    run = [sys.executable, "-c", "import used"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(run, cwd=clone.root / "package", check=True, env=environment)
    clone.watch()
    subprocess.run(run, cwd=clone.root / "package", check=True, env=environment)
    wrote = clone.write("--read")
    if "not known which files" in wrote.stdout:
        pytest.skip("this file system keeps no access times (noatime)")
    clone.put("package/unused.py", "x = 1")
    assert clone.is_unchanged()
    clone.put("package/used.py", "x = 1")
    assert not clone.is_unchanged()


def test_a_step_that_read_nothing_gets_no_stamp(clone: Clone) -> None:
    clone.put("unused.txt", "1")
    clone.watch()
    assert "not known which files" in clone.write("--read").stdout
    assert not clone.stamp.exists()


def test_what_a_build_read_may_not_change(clone: Clone, tmp_path: Path) -> None:
    """A build of one library of two, and of a file that a generator makes."""
    clone.put(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.22)\nproject(p CXX)\n"
        "file(GLOB used CONFIGURE_DEPENDS used/*.cpp)\nadd_library(used STATIC ${used})\n"
        "file(GLOB unused CONFIGURE_DEPENDS unused/*.cpp)\nadd_library(unused STATIC ${unused})\n"
        "add_custom_command(OUTPUT made.txt DEPENDS made.sh DEPFILE made.d\n"
        "  COMMAND sh ${CMAKE_SOURCE_DIR}/made.sh ${CMAKE_SOURCE_DIR})\n"
        "add_custom_target(made DEPENDS made.txt)\n",
    )
    clone.put("used/one.cpp", '#include "one.h"\n')
    clone.put("used/one.h", '#pragma once\n#include "two.h"\n')
    clone.put("used/two.h", "#pragma once\n")
    clone.put("unused/one.cpp", '#include "one.h"\n')
    clone.put("unused/one.h", "#pragma once\n")
    clone.put("made.sh", 'touch made.txt; echo "made.txt: $1/made.sh $1/made.in" >made.d\n')
    clone.put("made.in", "read by made.sh\n")
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake with ninja")
    build = str(tmp_path / "build")
    for command in (
        ["cmake", "-S", str(clone.root), "-B", build, "-G", "Ninja"],
        ["cmake", "--build", build, "--target", "used", "made"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    wrote = clone.write("--ninja", f"{build}:used,made")
    assert wrote.returncode == 0, wrote.stderr
    assert clone.is_unchanged()
    read = ("used/one.cpp", "used/one.h", "used/two.h", "made.sh", "made.in", "CMakeLists.txt")
    assert [name for name in read if clone.is_unchanged_with(name)] == []
    assert clone.is_unchanged_with("unused/one.cpp")
    assert clone.is_unchanged_with("unused/one.h")
    assert clone.is_unchanged_with("unused/two.cpp")
    assert not clone.is_unchanged_with("used/new.cpp")
