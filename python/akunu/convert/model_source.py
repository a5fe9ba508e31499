"""Opening what a model file is made from: a GGUF file, or a directory."""

from __future__ import annotations

from pathlib import Path

from akunu import _core
from akunu.convert.directory_source import DirectorySource
from akunu.convert.sources import GgufSource, ModelSource


def open_source(path: Path) -> ModelSource:
    """Open what a path names: a GGUF file or a directory; raises what the readers raise."""
    if not _core.is_model_directory(path):
        return GgufSource(path)
    return DirectorySource(path)


def files_read(source: ModelSource, path: Path) -> list[Path]:
    """Return the files that a model is read from; a made file must not replace one of them.

    For a directory these are all files but GGUF files: config.json and the tokenizer are the model,
    too.
    """
    parts = [Path(part) for part in source.parts]
    if not _core.is_model_directory(path):
        return parts
    folder = path if path.is_dir() else path.parent
    others = [each for each in folder.iterdir() if each.is_file() and each.suffix != ".gguf"]
    return [*parts, *others]
