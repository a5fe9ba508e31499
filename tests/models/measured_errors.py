"""Errors for docs/reference/models.md: lines of JSON in the file of AKUNU_MODELS_RESULTS."""

from __future__ import annotations

import json
import os
from pathlib import Path


def record(architecture: str, number_format: str, device: str, error: float) -> None:
    """Add a line to the results, if there are any."""
    path = os.environ.get("AKUNU_MODELS_RESULTS")
    if not path:
        return
    line = {"architecture": architecture, "format": number_format, "device": device, "error": error}
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
