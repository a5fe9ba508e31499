"""Models that other programs keep on this machine: Ollama's blobs, LM Studio's folders.

They are used where they are, and never changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from akunu.errors import ArgumentError, UnsupportedModelError
from akunu.hub.choice import choose
from akunu.hub.names import OllamaName, RepoName
from akunu.hub.repository import local_models

_SERVICE = Path("/usr/share/ollama/.ollama/models")  # of the user that Ollama's installer makes
_MODEL_LAYER = "application/vnd.ollama.image.model"


@dataclass(frozen=True, slots=True)
class Found:
    """A model of another program."""

    name: str
    """By which akunu finds it."""
    paths: tuple[Path, ...]
    """The file that opens it, and its other parts."""


def ollama_folders() -> list[Path]:
    """Return where Ollama may have models: OLLAMA_MODELS, a user's own, a system service's."""
    chosen = os.environ.get("OLLAMA_MODELS")
    if chosen:
        return [Path(chosen).expanduser()]
    return [Path.home() / ".ollama" / "models", _SERVICE]


def lm_studio_folders() -> list[Path]:
    """Return where LM Studio may have models."""
    home = Path.home()
    return [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]


def find_in_ollama(name: OllamaName) -> Path | None:
    """Return the blob of a model of Ollama, or None; tags that there are instead are an error.

    Raises ArgumentError, and UnsupportedModelError for a model that is no GGUF file.
    """
    tags = set()
    for root in ollama_folders():
        folder = root / "manifests" / name.path
        manifest = folder / name.tag
        if _is_file(manifest):
            blob = _blob_of(root, manifest)
            if blob is None:
                raise UnsupportedModelError(
                    f"{name} is a model of Ollama that is not a single GGUF file, so akunu cannot "
                    f"use it"
                )
            return blob
        tags |= {path.name for path in _entries(folder) if _is_file(path)}
    if tags:
        shown = ", ".join(f"{str(name).rpartition(':')[0]}:{tag}" for tag in sorted(tags))
        raise ArgumentError(f"Ollama has no {name} here; it has {shown}")
    return None


def ollama_models() -> Iterator[Found]:
    """Go through the models that Ollama has here."""
    for root in ollama_folders():
        manifests = root / "manifests"
        try:
            files = sorted(path for path in manifests.rglob("*") if path.is_file())
        except OSError:
            continue
        for manifest in files:
            path = manifest.parent.relative_to(manifests).as_posix()
            blob = _blob_of(root, manifest)
            if blob is not None and path.count("/") == 2:
                name = OllamaName(path, manifest.name, is_explicit=False)
                yield Found(str(name), (blob,))


def find_in_lm_studio(name: RepoName) -> Path | None:
    """Return the file of a model that LM Studio has, or None; raises ArgumentError as `choose`."""
    if name.revision != "main":
        return None
    for root in lm_studio_folders():
        folder = root / name.repo
        models = local_models(folder) if folder.is_dir() else []
        if models:
            return folder / choose(models, name.wanted, name.repo).candidate.name
    return None


def lm_studio_models() -> Iterator[Found]:
    """Go through the models that LM Studio has here."""
    for root in lm_studio_folders():
        for publisher in _entries(root):
            for folder in _entries(publisher):
                repo = f"{publisher.name}/{folder.name}"
                models = local_models(folder) if folder.is_dir() else []
                labels = [model.label for model in models]
                for model in models:
                    unique = model.label and labels.count(model.label) == 1
                    yield Found(
                        f"{repo}:{model.label if unique else model.name}",
                        tuple(folder / file.name for file in model.files),
                    )


def _blob_of(root: Path, manifest: Path) -> Path | None:
    """Return the file of a model's weights; None where a manifest has none, or several."""
    try:
        layers = json.loads(manifest.read_text(encoding="utf-8"))["layers"]
        digests = [layer["digest"] for layer in layers if layer["mediaType"] == _MODEL_LAYER]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if len(digests) != 1 or not isinstance(digests[0], str):
        return None
    blob = root / "blobs" / digests[0].replace(":", "-")
    return blob if "/" not in digests[0] and _is_file(blob) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # of another user
        return False


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
