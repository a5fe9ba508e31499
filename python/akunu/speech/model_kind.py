"""Whether a model's file or directory is one of speech, told by its first bytes or its config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from akunu.errors import AkunuError
from akunu.storage.model_files import open_model_files

_WHISPER_CPP: Final = b"lmgg"
_MOST_CONFIG: Final = 1 << 24


def is_speech_model(path: Path) -> bool:
    """Return whether `akunu.load_whisper` is what loads a model; False where no one can tell."""
    try:
        if path.is_dir() or path.suffix == ".safetensors":
            config = (path if path.is_dir() else path.parent) / "config.json"
            if not config.is_file():
                return False
            with open(config, "rb") as file:
                found = json.loads(file.read(_MOST_CONFIG))
            return isinstance(found, dict) and found.get("model_type") == "whisper"
        if not path.is_file():  # opening a pipe would wait for a writer
            return False
        with open(path, "rb") as file:
            beginning = file.read(4)
        if beginning == _WHISPER_CPP:
            return True
        return beginning == b"GGUF" and (
            open_model_files(path).get("general.architecture") == "whisper"
        )
    except (AkunuError, OSError, ValueError, RecursionError):
        return False  # loading it reports the error
