"""The code in the documents runs: every Python block, command line and docstring example."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet
from cli_support import CHECKOUT
from document_blocks import (
    COMMANDS,
    FENCE,
    Block,
    Session,
    all_pages,
    blocks_of,
    environment,
    running,
)
from document_files import make_files

import akunu
from lines import each_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = all_pages()


# They take seconds to measure, and what they print is read in test_cli_bench.py and its neighbours.
MEASURES = re.compile("^akunu (bench|benchmark|profile) ", re.MULTILINE)

# A line that a Python block prints, which stands after the call: `print(1 + 1)  # 2`.
SHOWN = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def scripts() -> list[ParameterSet]:
    """The `sh` blocks, but for those that install, which `.ci/run` runs."""
    blocks = [block for page in PAGES for block in running(page, "sh")]
    return [
        pytest.param(block, marks=[pytest.mark.slow] if is_nightly(block) else [])
        for block in blocks
        if not block.code.startswith("python3 -m venv")
    ]


def is_nightly(block: Block) -> bool:
    return block.page != "README.md" and MEASURES.search(block.code) is not None


@pytest.mark.parametrize("page", [page for page in PAGES if running(page, "python")])
def test_python_blocks_run_as_one_program(page: str, tmp_path: Path) -> None:
    make_files(page, tmp_path)
    code = "\n".join(block.code for block in running(page, "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    written = iter(done.stdout.splitlines())
    for line in SHOWN.findall(code):
        assert line in written, f"{page}: {line!r} is not printed, or in another order"


@pytest.mark.parametrize("script", scripts(), ids=str)
def test_blocks_of_commands_run(script: Block, tmp_path: Path) -> None:
    make_files(script.page, tmp_path)
    done = subprocess.run(
        ["sh", "-eu", "-c", script.code],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("page", [page for page in PAGES if running(page, "console")])
def test_sessions_write_what_the_page_shows(page: str, tmp_path: Path) -> None:
    make_files(page, tmp_path)
    session = Session(tmp_path)
    try:
        for block in running(page, "console"):
            session.run(block)
    finally:
        session.close()


@each_line("page", PAGES)
def test_every_block_runs_is_read_or_says_why_not(page: str) -> None:
    readers = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
    for block in blocks_of(page):
        if block.language in readers:
            readers[block.language](block.code)
        elif block.language in ("python", "sh", "console", "swift"):
            assert block.reason is None or len(block.reason.split()) >= 3, block
        else:
            assert block.language in ("text", "cpp", "diff"), f"{block}: what language is this?"
            assert not COMMANDS.search(block.code), f"{block}: has a command"


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    from tools.command_line import DOCUMENT, document

    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run: python -m tools.command_line"


def test_the_charts_are_those_of_the_results() -> None:
    from tools.speed_charts import FOLDER, charts

    for name, chart in charts().items():
        drawn = (FOLDER / name).read_text(encoding="utf-8")
        assert drawn == chart, "run: python -m tools.speed_charts"


def test_readme_has_the_two_commands_and_only_them() -> None:
    lines = [line for block in running("README.md", "sh") for line in block.code.splitlines()]
    installing = [line for line in lines if line.startswith("python3 -m venv")]
    assert len(installing) == 2
    assert installing[0].endswith("akunu chat")
    assert installing[1].endswith("pytest")


@each_line("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = CHECKOUT / page
    text = FENCE.sub("", path.read_text())
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), target


def test_the_page_of_the_api_has_every_public_name() -> None:
    page = (CHECKOUT / "docs/reference/api.md").read_text()
    shown = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    errors = {name for name in akunu.__all__ if name.endswith("Error")}
    assert "::: akunu.errors" in page  # all of them
    assert set(akunu.__all__) - errors - {"__version__"} <= shown


# They import Ray or LangChain, which are there where nightly tests have installed them.
OF_OTHERS = (
    *(f"akunu.ray.{name}" for name in ("application", "router", "run")),
    "akunu.langchain",
)


PACKAGE = Path(akunu.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
for name in ("akunu.__main__", *OF_OTHERS):
    del MODULES[name]
WITH_EXAMPLES = [name for name, path in MODULES.items() if ">>> " in path.read_text("utf-8")]


def examples_are_true(name: str) -> int:
    """How many examples the module has, all of which are true."""
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
    return result.attempted


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    examples_are_true(name)


@each_line("name", [name for name in MODULES if name not in WITH_EXAMPLES])
def test_other_modules_are_imported_and_have_no_examples(name: str) -> None:
    assert examples_are_true(name) == 0


def test_every_dependency_has_its_reason() -> None:
    project = (CHECKOUT / "pyproject.toml").read_text()
    page = (CHECKOUT / "docs/dependencies.md").read_text()
    listed = re.findall(r'"([a-z0-9_-]+)[><=]=', project)
    assert len(listed) >= 10
    for name in listed:
        assert re.search(rf"\b{name}\b", page), f"{name} is missing in docs/dependencies.md"
