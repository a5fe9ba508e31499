"""The source distribution is complete: what is built from it is the same package."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import CHECKOUT


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.slow
def test_a_wheel_built_from_the_source_distribution_answers(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "build")
    # `build` makes the wheel from the unpacked source distribution, not from the checkout.
    run(python, "-m", "build", "--outdir", tmp_path / "dist", CHECKOUT)

    (source,) = (tmp_path / "dist").glob("akunu-*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"LICENSE", "README.md", "python/akunu/data/ember-q8_0.gguf"} <= names
    assert "tests/e2e/test_packaging.py" in names

    (wheel,) = (tmp_path / "dist").glob("akunu-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"akunu/py.typed", "akunu/_core.pyi", "akunu/data/ember-q8_0.gguf"} <= names
    assert any(name.startswith("akunu/_core.") and name.endswith(".so") for name in names)
    assert not any(name.startswith(("tests/", "include/", "lib/")) for name in names)

    run(python, "-m", "pip", "install", "-q", wheel)
    run(environment / "bin" / "akunu", "chat", "--prompt", "Hello!", "--max-tokens", "4")
