"""Loads a model for a command, with progress and notes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

from akunu.cli.download_progress import DownloadWatch
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.wording import shortened
from akunu.errors import UnsupportedModelError
from akunu.hub.packaged_models import PACKAGED_MODELS
from akunu.loading import find_model, load
from akunu.model import Model
from akunu.options.option_checks import AUTO
from akunu.options.text_options import LoadOptions
from akunu.thread_choice import is_encoder, with_chosen_threads

# What converters write where they know no name.
_NAMELESS: Final = frozenset({"unknown", "none", "null", "model", "models", "output", "tmp", "."})


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


def measured_threads(path: Path, options: LoadOptions) -> LoadOptions:
    """Return the options with a number in the place of "auto"; what was measured goes to stderr.

    Raises what `akunu.load` raises.
    """
    if options.threads != AUTO:
        return options
    with Progress(lambda: "measuring numbers of threads"):
        chosen, choice = with_chosen_threads(path, options)
    if choice is not None:
        console.say(f"akunu: {choice.note()}")
    return chosen


def refuse_encoder(path: Path, options: LoadOptions, command: str) -> None:
    """Raise UnsupportedModelError where a command's model embeds texts and writes none."""
    if is_encoder(path, options):
        raise UnsupportedModelError(
            f"{path} is an encoder: it embeds texts; akunu {command} needs a model that generates "
            f"text"
        )


def model_path(name: str, options: LoadOptions | None = None) -> Path:
    """Return the file of a path or a model's name, fetched if it is missing.

    Raises ArgumentError where there is none, and what a download raises.
    """
    return find_model(name, options, DownloadWatch())


def title_of(model: Model) -> str:
    """Return what to call a model."""
    if model.path == PACKAGED_MODELS["ember"]:
        return "Ember, a small demonstration model"
    return title(model.path.name, model.config.name)


def title(file_name: str, name: str) -> str:
    """Return a file's name and, where it says more than that, the name that is inside it.

    >>> title("qwen.gguf", "Qwen3 0.6B"), title("qwen3-0.6b-q8_0.gguf", "Qwen3 0.6B")
    ('qwen.gguf (Qwen3 0.6B)', 'qwen3-0.6b-q8_0.gguf')
    >>> title("mine.gguf", "unknown"), title("sha256-0a1b2c", "Qwen3 0.6B")
    ('mine.gguf', 'Qwen3 0.6B')
    """
    name = shortened(name, 40)
    if not name or name.lower() in _NAMELESS or _letters(name) in _letters(file_name):
        return file_name
    return name if file_name.startswith("sha256") else f"{file_name} ({name})"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
