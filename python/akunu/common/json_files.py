"""JSON objects in files, such as a model directory's config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from akunu.errors import ArgumentError, ModelFormatError


def read_config(directory: Path) -> dict[str, Any]:
    """Return a directory's config.json, {} where there is none; loading the model checks it."""
    path = directory / "config.json"
    if not directory.is_dir():
        raise ArgumentError(f"{directory}: there is no such directory")
    if not path.is_file():
        return {}
    try:
        return json_object(path.read_bytes(), path)
    except OSError as error:
        raise ModelFormatError(f"{path} cannot be read: {error.strerror}") from None


def json_object(text: str | bytes, path: Path) -> dict[str, Any]:
    """Return the object that a file has as JSON; ModelFormatError where it has none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise ModelFormatError(f"{path} is not a JSON object")
    return found
