"""Loads a speech model for a command, with progress and notes."""

from __future__ import annotations

from pathlib import Path

from akunu.cli.loading import model_path
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.errors import UnsupportedModelError
from akunu.options.text_options import LoadOptions
from akunu.speech.loading import load_whisper_with
from akunu.speech.model import SpeechModel
from akunu.speech.model_kind import is_speech_model


def load_speech_model(name: str, options: LoadOptions) -> SpeechModel:
    """Return the loaded model; its notes go to stderr.

    Raises what `akunu.load_whisper` raises, and UnsupportedModelError for a model of texts.
    """
    path = model_path(name, options)
    if not is_speech_model(path):
        raise UnsupportedModelError(f"{path} is not a Whisper model: it does not read audio")
    with Progress(lambda: f"loading {Path(name).name or name}"):
        model = load_whisper_with(path, options)
    for note in model.notes:
        console.say(f"akunu: {note}")
    return model
