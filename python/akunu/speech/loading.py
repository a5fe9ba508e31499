"""Loading a Whisper model with the options of `akunu.load`, or whichever kind of model it is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from akunu.loading import load
from akunu.model import Model
from akunu.options.text_options import AUTO, LoadOptions
from akunu.speech.model import SpeechModel, load_whisper
from akunu.speech.model_kind import is_speech_model


def load_either(path: Path, options: LoadOptions) -> Model | SpeechModel:
    """Load a model of texts or of speech, whose `context` and `adapters` mean nothing.

    Raises what `akunu.load` and `load_whisper` raise.
    """
    if is_speech_model(path):
        return load_whisper_with(path, options)
    return load(path, **asdict(options))


def load_whisper_with(path: Path, options: LoadOptions) -> SpeechModel:
    """Load a model as options say, of which `context` and `adapters` mean nothing to speech.

    "auto" as the number of threads is one per core. Raises what `load_whisper` raises.
    """
    return load_whisper(
        path,
        device=options.device,
        threads=None if options.threads == AUTO else options.threads,
        kv_type=options.kv_type,
        kv_memory=options.kv_memory,
        gpu_memory=options.gpu_memory,
    )
