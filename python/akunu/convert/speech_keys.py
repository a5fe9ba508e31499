"""A directory's Whisper model as keys of a GGUF file, as docs/reference/model-files.md says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from akunu.convert.gguf_writer import KeyValue
from akunu.convert.tokenizer_keys import tokenizer_keys
from akunu.speech.files import MEL_FILTERS
from akunu.speech.mel import mel_filters
from akunu.speech.speech_settings import SpeechSettings
from akunu.speech.vocabulary.tokenizer import SECONDS_PER_TIMESTAMP

_TOKENS: Final = "tokenizer.ggml.tokens"
_TYPES: Final = "tokenizer.ggml.token_type"
_CONTROL: Final = 3


def encoder_keys(numbers: Mapping[str, Any]) -> dict[str, KeyValue]:
    """Return the keys of the encoder's numbers; `numbers`: the model's, with its "audio"."""
    audio = numbers["audio"]
    layer = audio["layers"][0]  # they are alike
    return {
        "whisper.encoder.mel_count": audio["n_mels"],
        "whisper.encoder.context_length": audio["n_positions"],
        "whisper.encoder.block_count": len(audio["layers"]),
        "whisper.encoder.attention.head_count": layer["n_heads"],
        "whisper.encoder.feed_forward_length": layer["ffn_dim"],
        MEL_FILTERS: mel_filters(audio["n_mels"]).reshape(-1),
    }


def speech_keys(
    directory: Path, config: Mapping[str, Any], n_rows: int
) -> tuple[dict[str, KeyValue], list[str]]:
    """Return the keys of how texts are written, and notes; `n_rows`: of the embedding.

    Raises what reading the directory's tokenizer and its generation_config.json raises.
    """
    keys, notes = tokenizer_keys(directory, config, n_rows)
    tokens, types = keys[_TOKENS], keys[_TYPES]
    assert isinstance(tokens, list)
    assert isinstance(types, np.ndarray)
    # Old files list no timestamps: they are what follows the last named token.
    if "<|notimestamps|>" in tokens:
        first = tokens.index("<|notimestamps|>") + 1
        for index in range(first, n_rows):
            tokens[index] = f"<|{(index - first) * SECONDS_PER_TIMESTAMP:.2f}|>"
        types[first:] = _CONTROL
    settings = SpeechSettings.of_directory(directory)
    if not settings.alignment_heads:
        notes.append(
            "generation_config.json names no alignment_heads, so the file has none, and words "
            "have no times"
        )
    return {**keys, **settings.keys()}, notes
