"""Schemathesis: requests made up from the served OpenAPI document, a hundred to each route.

Half of them are as the document has it, half are not.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from endless_model import endless_model
from environment import pytest_outcomes, virtual_environment
from serving import serving

VERSION = "schemathesis 4.32.5"
PACKAGES = (VERSION.replace(" ", "=="), "pytest==9.2.0", "requests==2.32.5", "hypothesis==6.170.17")
EXAMPLES = 50


def judge(work: Path) -> dict[str, str]:
    """Return what was wrong by route; texts are short, so that a night has time for all."""
    python = virtual_environment(work / "environment", *PACKAGES)
    shutil.copy(Path(__file__).parent / "routes.py", work)
    settings = {
        "AKUNU_SERVE_DEFAULT_MAX_TOKENS": "4",
        "AKUNU_SERVE_MOST_TOKENS": "16",
        "AKUNU_SERVE_MOST_ANSWERS": "4",
    }
    model = endless_model(work / "ember.gguf")
    with serving(work, f"ember={model}", **settings) as address:
        return pytest_outcomes(
            python, work, "routes.py", ADDRESS=address, EXAMPLES=str(EXAMPLES), COLUMNS="200"
        )
