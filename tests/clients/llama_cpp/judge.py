"""llama.cpp's own tests of its server, from the source package of llama-cpp-python.

They expect texts and numbers of tokens of a model of their own: these are relaxed here, before they
run. Whole files of features that akunu serve does not have are not run, and count as one skip each.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from endless_model import endless_model
from environment import pytest_outcomes, source_package, virtual_environment

VERSION = "llama-cpp-python 0.3.36"
PACKAGES = (
    *("pytest==8.4.2", "openai==2.14.0", "requests==2.32.5", "filelock==4.3.1", "wget==3.2"),
    *("numpy==2.2.6", "prometheus-client==0.26.0", "aiohttp==3.14.5"),
)
RUN = (
    *("basic", "chat_completion", "compat_anthropic", "compat_oai_responses", "completion"),
    *("ctx_shift", "ignore_eos", "infill", "metrics", "security", "tokenize"),
)
RELAXED = (
    (r"== n_prompt\b", "> 0"),
    (r'\.startswith\("b"\)', '.startswith("akunu")'),
    (r'"<s> " \+ prompt', "prompt"),  # their BOS
    # OpenAI's streams begin with an empty content, llama.cpp's with null.
    (r'content("\])? is None', r'content\1 in (None, "")'),
)
HERE = Path(__file__).parent


def judge(work: Path) -> dict[str, str]:
    """Return what was wrong by test."""
    python = virtual_environment(work / "environment", *PACKAGES)
    package = source_package(work, python, VERSION.replace(" ", "=="))
    folder = package / "vendor/llama.cpp/tools/server/tests"
    files = [f"test_{name}.py" for name in RUN]
    for name in files:
        path = folder / "unit" / name
        text = path.read_text(encoding="utf-8")
        for pattern, instead in RELAXED:
            text = re.sub(pattern, instead, text)
        path.write_text(text, encoding="utf-8")
    outcomes = pytest_outcomes(
        python,
        folder,
        *("-p", "akunu_instead", "-m", "not slow", *(f"unit/{name}" for name in files)),
        PYTHONPATH=f"{folder}:{HERE}:{HERE.parent}",
        AKUNU_PYTHON=sys.executable,
        WORK=str(work),
        MODEL=str(endless_model(work / "endless.gguf")),
    )
    found = {name.removeprefix("unit/"): wrong for name, wrong in outcomes.items()}
    others = {path.name for path in (folder / "unit").glob("test_*.py")} - set(files)
    return {**found, **dict.fromkeys(others, "not run")}
