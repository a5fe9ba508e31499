"""The session in README.md, with the real model that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

README = Path(__file__).parents[2] / "README.md"
SAME_WORDS = 8  # levels of kernels round differently, and later words may be close calls


def test_the_session_of_the_readme_is_real(smollm2_file: Path) -> None:
    session = re.search(r"^```console\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    assert session is not None
    parts = re.findall(r"^\$ akunu (.*)\n((?:(?!\$ ).*\n)*)", session[1], re.M)
    assert len(parts) == 2
    for command, shown in parts:
        done = subprocess.run(
            [sys.executable, "-m", "akunu", *shlex.split(command)],
            cwd=smollm2_file.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[:SAME_WORDS] == shown.split()[:SAME_WORDS]
