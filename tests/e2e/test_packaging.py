"""What is distributed: complete, installable from nothing, and honest about what is in it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, cast

import pytest
from cli_support import CHECKOUT

from lines import each_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

NOTICES = CHECKOUT / "THIRD_PARTY_NOTICES.txt"


def pyproject() -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text())


def package_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return match[0].lower()


def required_packages() -> dict[str, list[str]]:
    """The packages that pip installs, by the heading of docs/dependencies.md they belong to."""
    project = pyproject()["project"]
    extras = dict(project["optional-dependencies"])
    server, ray = extras.pop("server"), extras.pop("ray")
    del extras["cuda"]  # akunu's own: test_the_package_of_cuda_is_of_this_version
    speech = {name for extra in ("audio", "av", "mic", "vad") for name in extras.pop(extra)}
    others = [package_name(each) for extra in extras.values() for each in extra]
    return {
        "At run time": [package_name(each) for each in project["dependencies"]],
        "For the server": [package_name(each) for each in server],
        "For speech": list({package_name(each) for each in speech}),
        "For a Ray cluster": [each for each in map(package_name, ray) if each != "akunu"],
        "To build": [package_name(each) for each in pyproject()["build-system"]["requires"]],
        "To test": [each for each in others if each != "akunu"],
    }


def test_the_package_of_cuda_is_of_this_version() -> None:
    text = (CHECKOUT / "packaging" / "cuda" / "pyproject.toml").read_text()
    project, here = tomllib.loads(text)["project"], pyproject()["project"]
    assert project["version"] == here["version"]
    assert project["dependencies"] == [f"akunu=={here['version']}"]
    (needed,) = here["optional-dependencies"]["cuda"]
    assert needed.startswith(f"akunu-cuda=={here['version']};")


def listed_packages() -> dict[str, dict[str, list[str]]]:
    """Rows of the first table under each heading: package -> its other cells."""
    page = (CHECKOUT / "docs" / "dependencies.md").read_text()
    listed = {}
    for section in page.split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        table = re.search(r"^\| package .*\n\|[-|]+\n((?:\|.*\n)+)", body, re.MULTILINE)
        assert table is not None, heading
        rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table[1].splitlines()]
        listed[heading] = {row[0]: row[1:] for row in rows}
    return listed


@each_line(
    "heading",
    ["At run time", "For the server", "For speech", "For a Ray cluster", "To build", "To test"],
)
def test_every_dependency_is_listed_with_licence_and_reason(heading: str) -> None:
    listed = listed_packages()[heading]
    programs = {name for name in listed if name.startswith("CMake")}  # no Python package
    assert sorted(listed.keys() - programs) == sorted(required_packages()[heading])
    for name in listed.keys() - programs:
        assert all(listed[name]), f"{name} has an empty cell"


# Where it stands in a package's metadata depends on its age. A classifier names the licence of its
# own code; only an expression, which is newer, also those of what others wrote in it. numpy for
# Python 3.10 has the classifier, numpy for 3.11 the expression.
def stated_licence(facts: Message) -> tuple[str, bool]:
    """The licence that a package states, and whether it is a complete expression."""
    expression = facts.get("License-Expression")
    if expression:
        return expression, True
    classifiers = [each for each in facts.get_all("Classifier") or [] if "License" in each]
    return " ".join(classifiers) or facts.get("License") or "", False


def licence_families(text: str) -> set[str]:
    return set(re.findall(r"apache|bsd|mit\b|mpl|gpl|zlib", text.lower()))


@each_line("heading", ["At run time", "For the server", "To build", "To test"])
def test_licences_are_those_that_the_packages_state(heading: str) -> None:
    for name, cells in listed_packages()[heading].items():
        try:
            facts = metadata(name)
        except PackageNotFoundError:  # of an extra that is not installed here
            continue
        stated, is_complete = stated_licence(cast(Message, facts))
        families, listed = licence_families(stated), licence_families(cells[0])
        assert families, f"{name} states {stated!r}"
        assert families == listed if is_complete else families <= listed, f"{name}: {stated}"


def test_python_versions_are_the_same_everywhere() -> None:
    project = pyproject()["project"]
    prefix = "Programming Language :: Python :: "
    versions = [each.removeprefix(prefix) for each in project["classifiers"] if prefix in each]
    assert versions == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={versions[0]}"
    assert f"Python {versions[0]} or newer" in (CHECKOUT / "README.md").read_text()


CMAKE = shutil.which("cmake")


@pytest.mark.skipif(CMAKE is None, reason="no cmake in PATH")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-DCMAKE_SYSTEM_NAME=Windows"], "akunu does not support Windows"),
        # Without a 32-bit C library only compiling works, which is as far as it gets.
        (
            ["-DCMAKE_CXX_FLAGS=-m32", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"],
            "akunu needs a 64-bit system",
        ),
    ],
    ids=["Windows", "32 bits"],
)
def test_systems_without_support_are_told_so(
    options: list[str], sentence: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [CMAKE, "-S", CHECKOUT, "-B", tmp_path, *options], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert sentence in " ".join(done.stderr.split())


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=cwd)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def empty_environment(folder: Path) -> Path:
    """A new environment; its folder of programs."""
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin"


def files_of_the_checkout() -> set[str]:
    """What git has, of a checkout without changes; else a skip."""
    git = shutil.which("git")
    if git is None or not (CHECKOUT / ".git").exists():
        pytest.skip("this is no git checkout: nothing to compare the source distribution with")
    if run(git, "status", "--porcelain", cwd=CHECKOUT):
        pytest.skip("the checkout has changes that are not committed")
    return set(run(git, "ls-files", cwd=CHECKOUT).splitlines())


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    programs = empty_environment(folder / "environment")
    run(programs / "pip", "install", "-q", "build")
    run(programs / "python", "-m", "build", "--sdist", "--outdir", folder, CHECKOUT)
    (archive,) = folder.glob("akunu-*.tar.gz")
    return archive


def names_in(archive: Path) -> set[str]:
    with tarfile.open(archive) as opened:
        files = [member.name for member in opened.getmembers() if member.isfile()]
    return {name.split("/", 1)[1] for name in files}


@pytest.mark.slow
def test_the_source_distribution_is_what_git_has(source_distribution: Path) -> None:
    names = names_in(source_distribution)
    assert {"LICENSE", NOTICES.name, "README.md", "python/akunu/data/ember-q8_0.gguf"} <= names
    assert names - {"PKG-INFO"} == files_of_the_checkout()


@pytest.mark.slow
def test_a_wheel_of_the_source_distribution_answers_in_an_empty_environment(
    source_distribution: Path, tmp_path: Path
) -> None:
    # Nothing but pip: what building needs, it has to find out from the archive.
    pip = empty_environment(tmp_path / "build") / "pip"
    run(pip, "wheel", "-q", "--no-deps", "-w", tmp_path, source_distribution)
    (wheel,) = tmp_path.glob("akunu-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"akunu/py.typed", "akunu/_core.pyi", "akunu/data/ember-q8_0.gguf"} <= set(names)
    assert sum(name.endswith(".so") for name in names) == 1
    assert {name.split("/")[0].split("-")[0] for name in names} == {"akunu"}
    assert not any("__pycache__" in name for name in names)

    programs = empty_environment(tmp_path / "use")
    run(programs / "pip", "install", "-q", wheel)
    assert run(programs / "akunu", "chat", "--prompt", "Hello!", "--max-tokens", "4").strip()
    program = "import importlib.metadata as m; print(*m.metadata('akunu').get_all('License-File'))"
    assert run(programs / "python", "-c", program).split() == ["LICENSE", NOTICES.name]


@pytest.mark.slow
def test_notices_hold_the_licence_of_what_is_compiled_in(tmp_path: Path) -> None:
    pip = empty_environment(tmp_path / "environment") / "pip"
    (wanted,) = (each for each in pyproject()["build-system"]["requires"] if "pybind11" in each)
    run(pip, "install", "-q", wanted)
    (text,) = tmp_path.rglob("pybind11-*.dist-info/licenses/LICENSE")
    assert " ".join(text.read_text().split()) in " ".join(NOTICES.read_text().split())
