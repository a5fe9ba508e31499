"""Loading a Whisper model with the options of `akunu.load`."""

from __future__ import annotations

from pathlib import Path

from akunu.options.option_checks import AUTO
from akunu.options.text_options import LoadOptions
from akunu.speech.model import SpeechModel, load_whisper


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
