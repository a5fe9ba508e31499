"""Environments for clients that others wrote: from package indexes, by name, versions pinned."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def virtual_environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment with these packages (`"openai==3.57.0"`); return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *requirements], check=True)
    return python


def npm_packages(folder: Path, *requirements: str) -> Path:
    """Install packages of npm (`"openai@6.49.0"`) into a folder; return its `node_modules`.

    Nothing of theirs runs while they are installed.
    """
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run([*command, "--save-exact", *requirements], cwd=folder, check=True)
    return folder / "node_modules"


def source_package(folder: Path, python: Path, requirement: str) -> Path:
    """Download and unpack the source package of `requirement` (`"openai==3.57.0"`); return where.

    `python`: of an environment, whose pip is used; it may need the package's build backend.
    """
    name = requirement.partition("==")[0]
    command = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", name, "--dest", str(folder), requirement]
    subprocess.run(command, check=True)
    (archive,) = folder.glob(f"{name.replace('-', '_')}-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    return folder / archive.name.removesuffix(".tar.gz")


def pytest_outcomes(
    python: Path, folder: Path, *arguments: str, **environment: str
) -> dict[str, str]:
    """Run pytest of an environment in a folder; return what was wrong by test, "" for nothing.

    A test that skips itself counts as one that fails, so that its reason is written down, too. One
    that passes without fields which are refused (`without_refused.py`) counts as one that fails,
    and under a name that says so as one that passes.
    `arguments`: of pytest. `environment`: variables besides PATH and HOME.
    """
    report = folder / "outcomes.xml"
    report.unlink(missing_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    command = [str(python), "-m", "pytest", "-q", "--no-header", f"--junitxml={report}"]
    command += ["-o", "junit_family=xunit1", *arguments]
    subprocess.run(command, cwd=folder, env={**kept, **environment})
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('file') or case.get('classname')}::{case.get('name')}"
        owner = (case.get("classname") or "").rpartition(".")[2]
        if owner[:1].isupper():
            name = f"{case.get('file')}::{owner}::{case.get('name')}"
        wrong = [child for child in case if child.tag in ("failure", "error", "skipped")]
        outcomes[name] = f"{wrong[0].tag}: {wrong[0].get('message')}" if wrong else ""
        refused = {each.get("name"): each.get("value") for each in case.iter("property")}
        if refused and not wrong:
            outcomes[f"{name} without {', '.join(sorted(refused))}"] = ""
            outcomes[name] = "refused: " + "; ".join(sorted(refused.values()))
    return outcomes
