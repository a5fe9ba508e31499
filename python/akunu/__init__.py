"""akunu runs language models on the machine you own.

>>> import akunu
>>> with akunu.load() as model:  # the small model inside the package; or a GGUF file's path
...     text = model.generate("Hello", max_tokens=8)

Importing akunu is cheap and changes nothing: what a name needs is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module

from akunu.errors import (
    AkunuError,
    ArgumentError,
    AudioError,
    ContextOverflowError,
    DeadEndError,
    DeviceError,
    DownloadError,
    GrammarLimitError,
    MisuseError,
    ModelFormatError,
    OutOfMemoryError,
    QueueFullError,
    SessionFileError,
    UnsupportedModelError,
)

TYPE_CHECKING = False  # `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from akunu.embedding.reranking import Ranked
    from akunu.loading import load, pull
    from akunu.model import Model
    from akunu.model_facts import CachePages, DiskCache, MemoryReport, ModelConfig, Occupancy
    from akunu.options.text_options import LoadOptions, SamplingOptions
    from akunu.sentence_encoder import SentenceEncoder
    from akunu.session import Session
    from akunu.speech.model import SpeechModel, load_whisper
    from akunu.speech.transcription import Transcription
    from akunu.text.async_text_stream import AsyncTextStream
    from akunu.text.completion import Completion
    from akunu.text.logprobs import TokenLogprob
    from akunu.text.text_stream import TextStream
    from akunu.tokenizers.tokenizer import Tokenizer
    from akunu.tools.calls import ToolCall

    __version__: str

__all__ = [
    "AkunuError",
    "ArgumentError",
    "AsyncTextStream",
    "AudioError",
    "CachePages",
    "Completion",
    "ContextOverflowError",
    "DeadEndError",
    "DeviceError",
    "DiskCache",
    "DownloadError",
    "GrammarLimitError",
    "LoadOptions",
    "MemoryReport",
    "MisuseError",
    "Model",
    "ModelConfig",
    "ModelFormatError",
    "Occupancy",
    "OutOfMemoryError",
    "QueueFullError",
    "Ranked",
    "SamplingOptions",
    "SentenceEncoder",
    "Session",
    "SessionFileError",
    "SpeechModel",
    "TextStream",
    "TokenLogprob",
    "Tokenizer",
    "ToolCall",
    "Transcription",
    "UnsupportedModelError",
    "__version__",
    "load",
    "load_whisper",
    "pull",
]

_EXPORTS = {
    "AsyncTextStream": "akunu.text.async_text_stream",
    "CachePages": "akunu.model_facts",
    "Completion": "akunu.text.completion",
    "DiskCache": "akunu.model_facts",
    "LoadOptions": "akunu.options.text_options",
    "MemoryReport": "akunu.model_facts",
    "Model": "akunu.model",
    "ModelConfig": "akunu.model_facts",
    "Occupancy": "akunu.model_facts",
    "SamplingOptions": "akunu.options.text_options",
    "TextStream": "akunu.text.text_stream",
    "TokenLogprob": "akunu.text.logprobs",
    "Ranked": "akunu.embedding.reranking",
    "SentenceEncoder": "akunu.sentence_encoder",
    "Session": "akunu.session",
    "Tokenizer": "akunu.tokenizers.tokenizer",
    "SpeechModel": "akunu.speech.model",
    "ToolCall": "akunu.tools.calls",
    "Transcription": "akunu.speech.transcription",
    "load": "akunu.loading",
    "load_whisper": "akunu.speech.model",
    "pull": "akunu.loading",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("akunu")
    elif name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    else:
        raise AttributeError(f"module 'akunu' has no attribute {name!r}")
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
