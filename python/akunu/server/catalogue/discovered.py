"""The models that a server finds on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from akunu.errors import ArgumentError
from akunu.hub.choice import split_stem
from akunu.hub.local_models import models_here
from akunu.hub.repository import local_models
from akunu.server.catalogue.catalogue import Discover

_ENDING: Final = re.compile(r"\.(gguf|bin)$", re.IGNORECASE)


def discovering(folder: Path | None, *, everywhere: bool) -> Discover | None:
    """Return what finds models: those in a folder, and `everywhere` those that `akunu list` shows.

    None where there is nowhere to look. Raises ArgumentError for a folder that is not there.
    """
    if folder is None and not everywhere:
        return None
    if folder is not None and not folder.is_dir():
        raise ArgumentError(f"models_dir is {str(folder)!r}, which is not a folder")

    def discover() -> dict[str, str]:
        found = {}
        if everywhere:
            found = {each.name: each.name for each in models_here() if each.is_whole}
        return found if folder is None else {**found, **models_in(folder)}

    return discover


def models_in(folder: Path) -> dict[str, str]:
    """Return the models below a folder, by their paths in it without the ending of a file.

    GGUF files, the first part of split ones; directories with safetensors; files of whisper.cpp.
    """
    found = {}
    for parent, below, _ in os.walk(folder):
        below[:] = sorted(each for each in below if not each.startswith("."))
        here = Path(parent)
        for model in local_models(here, recursive=False):
            path = here / model.name
            if model.is_directory:
                path = here
            name = path.relative_to(folder).as_posix()
            stem = split_stem(name) or _ENDING.sub("", name)
            found[folder.name if stem == "." else stem] = str(path)
    return found
