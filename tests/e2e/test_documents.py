"""The code in the documents runs: every Python block, command line and docstring example."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import CHECKOUT

import akunu

PAGES = [
    "README.md",
    "docs/guide.md",
    "docs/command-line.md",
    "docs/reproducibility.md",
    "docs/structured-output.md",
    "docs/tools.md",
]
BIN = Path(sys.executable).parent


def blocks(page: str, language: str) -> list[str]:
    text = (CHECKOUT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def scripts(page: str) -> list[str]:
    """The `sh` blocks without the lines that install, which `.ci/run` runs."""
    lines = [
        [line for line in block.splitlines() if not line.startswith("python3 -m venv")]
        for block in blocks(page, "sh")
    ]
    return ["\n".join(block) for block in lines if block]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_python_blocks_run_as_one_program(page: str, tmp_path: Path) -> None:
    code = "\n".join(blocks(page, "python"))
    assert "akunu.load" in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    "script",
    [script for page in PAGES for script in scripts(page)],
    ids=lambda script: script.splitlines()[0],
)
def test_blocks_of_commands_run(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_page_with_code_is_among_those_that_run() -> None:
    assert {page for page in all_pages() if blocks(page, "python")} <= set(PAGES)
    assert len(scripts("docs/command-line.md")) >= 7


def test_the_page_of_the_command_line_knows_every_command_and_option() -> None:
    from akunu.cli.app import akunu_app

    page = (CHECKOUT / "docs/command-line.md").read_text()
    for command in akunu_app().registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        assert f"`{name}`" in page or f"`akunu {name}`" in page


def test_readme_has_the_two_commands_and_only_them() -> None:
    lines = [line for block in blocks("README.md", "sh") for line in block.splitlines()]
    installing = [line for line in lines if line.startswith("python3 -m venv")]
    assert len(installing) == 2
    assert installing[0].endswith("akunu chat")
    assert installing[1].endswith("pytest")


def all_pages() -> list[str]:
    paths = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *CHECKOUT.glob("docs/**/*.md")]
    return sorted(str(path.relative_to(CHECKOUT)) for path in paths)


@pytest.mark.parametrize("page", all_pages())
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = CHECKOUT / page
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target


# They import Ray or LangChain, which are there where nightly tests have installed them.
OF_OTHERS = (
    *(f"akunu.ray.{name}" for name in ("application", "router", "run")),
    "akunu.langchain",
)
MODULES = [
    "akunu",
    *(
        module.name
        for module in pkgutil.walk_packages(akunu.__path__, "akunu.")
        if module.name not in ("akunu._core", "akunu.__main__", *OF_OTHERS)
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


def test_every_dependency_has_its_reason() -> None:
    project = (CHECKOUT / "pyproject.toml").read_text()
    page = (CHECKOUT / "docs/dependencies.md").read_text()
    listed = re.findall(r'"([a-z0-9_-]+)[><=]=', project)
    assert len(listed) >= 10
    for name in listed:
        assert re.search(rf"\b{name}\b", page), f"{name} is missing in docs/dependencies.md"
