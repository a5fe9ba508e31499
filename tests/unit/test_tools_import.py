"""Every tool can be imported: what it takes from this repository is still there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib, os, pathlib, sys
import akunu, numpy
ours = {"akunu", "tools", *(each.stem for each in pathlib.Path("tests").rglob("*.py"))}
failed = 0
for file in sorted(pathlib.Path("tools").glob("*.py")):
    if os.fork() == 0:  # so that what one tool adds to sys.path is not there for the next
        try:
            importlib.import_module(f"tools.{file.stem}")
        except ModuleNotFoundError as error:  # some need packages that tests do without
            if error.name.partition(".")[0] in ours:
                raise
        os._exit(0)
    failed += os.wait()[1] != 0
sys.exit(failed)
"""


def test_every_tool_can_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
