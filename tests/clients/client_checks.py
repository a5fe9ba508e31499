"""Runs our checks of a client that others wrote: in an environment of its own, against servers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from environment import pytest_outcomes, virtual_environment
from serving import serving

import akunu
from akunu.templates.chat_template import CHATML

sys.path.append(str(Path(__file__).parents[1] / "e2e"))
sys.path.append(str(Path(__file__).parents[1] / "models"))

import brief_speech
from edited_model import edited

PYTEST = ("pytest==9.2.0", "pytest-asyncio==1.5.0")
# Async clients are shared by all tests, and their open connections belong to one event loop.
ASYNCIO = [
    *("-o", "asyncio_mode=auto"),
    *("-o", "asyncio_default_fixture_loop_scope=session"),
    *("-o", "asyncio_default_test_loop_scope=session"),
]
# Ember's own form of a conversation, with a switch and an opening as models that think have them.
THINKING = (
    CHATML
    + "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)


def client_checks(
    work: Path, checks: Path, *requirements: str, **environment: str
) -> dict[str, str]:
    """What was wrong by check, "" for nothing.

    `checks`: a folder with `*_checks.py`, each a file for pytest, and perhaps with fixtures for all
    of them in `shared_fixtures.py`. `requirements`: packages, with versions. `environment`: further
    variables of the checks.

    Checks find a server with a journal and the models `ember`, `thinker` and `whisper` at
    AKUNU_URL, and one that asks for the key `right` and answers 10 requests a minute at
    AKUNU_GUARDED_URL. One that allows to create models, with `ember`, is at AKUNU_CREATING_URL.
    """
    python = virtual_environment(work / "environment", *requirements, *PYTEST)
    folder = work / "checks"
    shutil.copytree(checks, folder, ignore=shutil.ignore_patterns("__pycache__"))
    files = sorted(each.name for each in folder.glob("*_checks.py"))
    fixtures = ["-p", "shared_fixtures"] if (folder / "shared_fixtures.py").exists() else []
    ember = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
    thinker = edited(ember, work / "thinker.gguf", {"tokenizer.chat_template": THINKING})
    whisper = brief_speech.write(work / "whisper")
    for name in ("open", "guarded", "creating"):
        (work / name).mkdir()
    guard = {"AKUNU_SERVE_API_KEYS": "right", "AKUNU_SERVE_RATE_LIMIT": "10"}
    models = ("ember", f"thinker={thinker}", f"whisper={whisper}")
    with (
        serving(work / "open", *models, "--journal", str(work / "journal")) as address,
        serving(work / "guarded", "ember", **guard) as guarded,
        serving(work / "creating", "ember", "--allow-pull") as creating,
    ):
        return pytest_outcomes(
            python,
            folder,
            *(
                "-c",
                "/dev/null",
                "--rootdir",
                ".",
                "-p",
                "no:warnings",
                *fixtures,
                *ASYNCIO,
                *files,
            ),
            AKUNU_URL=address,
            AKUNU_GUARDED_URL=guarded,
            AKUNU_CREATING_URL=creating,
            PYTHONPATH=str(folder),
            **environment,
        )
