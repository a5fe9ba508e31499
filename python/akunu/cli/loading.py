"""Loading a model for a command: with progress, and with what is worth a word."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from akunu.cli import console
from akunu.cli.download import DownloadWatch
from akunu.cli.progress import Progress
from akunu.model import PACKAGED_MODELS, Model, _find, load
from akunu.options import LoadOptions


def load_model(name: str, options: LoadOptions) -> Model:
    """Return the loaded model, fetched if it is missing; its notes go to stderr.

    Raises what `akunu.load` raises.
    """
    path = model_path(name, options)
    with Progress(lambda: f"loading {Path(name).name or name}"):
        model = load(path, **asdict(options))
    for note in model.notes:
        console.say(f"akunu: {note}")
    return model


def model_path(name: str, options: LoadOptions | None = None) -> Path:
    """Return the file of a path or a model's name, fetched if it is missing.

    Raises ArgumentError where there is none, and what a download raises.
    """
    return _find(name, options, DownloadWatch())


def title_of(model: Model) -> str:
    """Return what to call a model."""
    if model.path == PACKAGED_MODELS["ember"]:
        return "Ember, a small demonstration model"
    return model.config.name or model.path.name
