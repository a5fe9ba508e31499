"""The pages on adding options: their steps in a copy of the repository, and the tests there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import akunu

ROOT = Path(__file__).parents[2]
FOLDERS = ("python", "tools", "docs", "include", "bindings", "src")


def copied(folder: Path) -> Path:
    """Return a copy of what an option is written in, with the native module beside it."""
    copy = folder / "akunu"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for native in Path(akunu.__file__).parent.glob("_core*.so"):
        shutil.copy(native, copy / "python" / "akunu")
    return copy


def run(copy: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'python'}{os.pathsep}{copy}"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["sampling-option", "load-option"])
def test_a_page_says_all_that_there_is_to_do(page: str, tmp_path: Path) -> None:
    copy = copied(tmp_path)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    run(copy, *git, "init", "--quiet")
    run(copy, *git, "add", "--all", "--force")
    run(copy, *git, "commit", "--quiet", "-m", "before")
    text = (ROOT / "docs" / "adding" / f"{page}.md").read_text()
    for number, block in enumerate(re.findall(r"^```diff\n(.*?)^```$", text, re.M | re.S)):
        patch = tmp_path / f"{number}.patch"
        patch.write_text(block)
        run(copy, "git", "apply", "--unidiff-zero", "--recount", str(patch))
    by_hand = run(copy, "git", "diff", "--name-only").split()
    (name, test) = re.findall(
        r"^`(tests/\S+\.py)`:\n\n[^\n]*\n```python\n(.*?)^```$", text, re.M | re.S
    )[0]
    (copy / name).parent.mkdir(parents=True)
    (copy / name).write_text(test)
    assert len(by_hand) + 1 <= 3  # with the test
    run(copy, sys.executable, "-m", "tools.options")
    run(copy, sys.executable, "-m", "tools.request_fields")
    print(run(copy, "git", "diff", "--stat", "HEAD"))  # pytest -s shows it
    run(copy, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name)


NUMBER = """\
    epsilon_cutoff: float = option(
        0.0, Numbers(0.0, 1.0), "Drop tokens less likely than this.", packed="f"
    )
"""
SIZE = """\
    pages_of_text: int | None = option(
        None, Integers(1, 9, "or None"), "Pages that a text may have.", packed="I"
    )
"""


def test_a_number_that_the_engine_reads_is_written_everywhere(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    for name, before, number in (
        ("sampling_options.py", "    seed: int | None = option(", NUMBER),
        ("load_options.py", "    prediction_head: bool = option(", SIZE),
    ):
        path = copy / "python" / "akunu" / "options" / name
        path.write_text(path.read_text().replace(before, number + before))
    run(copy, sys.executable, "-m", "tools.options")
    run(copy, sys.executable, "-m", "tools.request_fields")
    for name, file, text in (
        ("rows.h", "src/core", "  float epsilon_cutoff = 0;\n"),
        ("kernel_structs.cpp", "src/python", "min_tokens, epsilon_cutoff, seed_low"),
        ("sampling_options.inc", "src/capi", "given.epsilon_cutoff, 0.0f, 1.0f, 0.0f,"),
        ("types.h", "include/akunu", "  float epsilon_cutoff;\n  /* end of sampling"),
        ("Options.swift", "bindings/swift/Sources/Akunu", "given.epsilon_cutoff = epsilonCutoff"),
        ("arguments.py", "python/akunu/options", "    epsilon_cutoff: float | None\n"),
        ("guide.md", "docs", "| `epsilon_cutoff` | `0.0` | Drop tokens"),
        ("request-fields.md", "docs", "| `epsilon_cutoff` | drop tokens"),
        ("context_plan.h", "src/inference", "  std::optional<uint32_t> pages_of_text = {};\n"),
        ("load_options.inc", "src/python", 'take(given, "pages_of_text", options.pages_of_text)'),
        ("load_options.inc", "src/capi", "options.pages_of_text = given.pages_of_text;"),
        ("types.h", "include/akunu", "  uint32_t pages_of_text;\n  /* end of load"),
        ("Options.swift", "bindings/swift/Sources/Akunu", "public var pagesOfText: Int?\n"),
        ("serving.md", "docs", "| `pages_of_text` |  | Pages that a text may have. |"),
    ):
        assert text in (copy / file / name).read_text(), (name, text)
    # C's fields stay where they were.
    header = (ROOT / "include" / "akunu" / "types.h").read_text()
    fields = header.partition("written by tools/options.py: sampling */")[2]
    assert fields.partition("  /* end of")[0] in (copy / "include/akunu/types.h").read_text()
