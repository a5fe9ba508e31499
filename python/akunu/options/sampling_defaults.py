"""How a model's authors want it sampled.

The keys `general.sampling.*` of its file say so, or, where it has none of them, the
`generation_config.json` of the Hugging Face hub in the file's folder.

>>> chosen, notes = read_sampling_defaults(
...     {"general.sampling.temp": 0.7, "general.sampling.top_k": 20, "general.sampling.mirostat": 2}
... )
>>> chosen
{'temperature': 0.7, 'top_k': 20}
>>> notes
('general.sampling.mirostat is ignored: akunu has no such sampler',)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from akunu.errors import ArgumentError
from akunu.options.text_options import SamplingOptions

_PREFIX: Final = "general.sampling."

# Keys as llama.cpp writes and reads them, and the fields of SamplingOptions that they are.
_OPTIONS: Final = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
    "penalty_freq": "frequency_penalty",
    "penalty_present": "presence_penalty",
    "penalty_last_n": "penalty_window",
}

# Below this (for top_p: above it) an option is off for llama.cpp, whatever the value.
_OFF_BELOW: Final = {"temp": 0, "top_k": 0, "min_p": 0}
_WHOLE_TEXT: Final = 2**31 - 1  # the largest penalty_window; llama.cpp writes -1

# Samplers that akunu does not have, and the values that switch them off.
_FOREIGN: Final = {"xtc_probability": 0, "mirostat": 0}
# Say something only about one of those.
_DETAILS: Final = {"xtc_threshold", "mirostat_tau", "mirostat_eta"}


_CONFIG: Final = "generation_config.json"
_LARGEST_CONFIG: Final = 1 << 20  # bytes; real ones have a few hundred

# Fields of SamplingOptions that have the same name there.
_SAME_NAMES: Final = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_FOREIGN_THERE: Final = {"typical_p": 1, "no_repeat_ngram_size": 0, "num_beams": 1}


class IterableMetadata(Protocol):
    """Keys and values of a GGUF file; a dict has the form, and `akunu._core.GgufFile`."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""

    def __getitem__(self, key: str, /) -> object:
        """Return the value of `key`."""


def read_sampling_defaults(
    metadata: IterableMetadata,
) -> tuple[dict[str, float | int], tuple[str, ...]]:
    """Return the options that a file asks for, by the names of SamplingOptions, and notes.

    A note is a line about a key that is ignored, because akunu has no such sampler or the value
    makes no sense. Never raises: nothing of this is needed to run the model.
    """
    options: dict[str, float | int] = {}
    notes: list[str] = []
    for key in _keys(metadata):
        name = key.removeprefix(_PREFIX)
        value = metadata[key]
        if name in _DETAILS or (name in _FOREIGN and value == _FOREIGN[name]):
            continue
        if name == "sequence":
            notes.append(f"{key} is ignored: akunu's samplers have their own order")
        elif name not in _OPTIONS:
            notes.append(f"{key} is ignored: akunu has no such sampler")
        else:
            field = _OPTIONS[name]
            chosen: dict[str, Any] = {field: _translated(name, value)}
            try:
                options[field] = getattr(SamplingOptions(**chosen), field)
            except ArgumentError as error:
                notes.append(f"{key} is ignored: {error}")
    return options, tuple(notes)


def sampling_defaults_of(
    metadata: IterableMetadata, path: Path
) -> tuple[dict[str, float | int], tuple[str, ...]]:
    """Return the options that a model asks for, or the configuration next to it, and notes.

    Never raises, as `read_sampling_defaults`.
    """
    is_directory = path.is_dir()
    config = path / _CONFIG if is_directory else path.with_name(_CONFIG)
    try:
        if _keys(metadata) or not config.is_file():
            return read_sampling_defaults(metadata)
        if config.stat().st_size > _LARGEST_CONFIG:
            raise ValueError
        given = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return {}, (f"{config} is ignored: it is not a JSON object",)
    options, found = _of_config(given)
    if options and not is_directory:
        said = f"sampling defaults are those of {_CONFIG}, next to the model file"
        return options, (said, *found)
    return options, found


def sampling_keys_of(directory: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what a directory's configuration asks for under the keys of GGUF, and notes."""
    options, notes = sampling_defaults_of({}, directory)
    keys: dict[str, Any] = {}
    for name, field in _OPTIONS.items():
        if (value := options.get(field)) is None:
            continue
        if field in ("top_k", "penalty_window"):
            keys[_PREFIX + name] = np.array(-1 if value == _WHOLE_TEXT else value, np.int32)
        else:
            keys[_PREFIX + name] = float(value)
    return keys, notes


def _of_config(given: dict[str, Any]) -> tuple[dict[str, float | int], tuple[str, ...]]:
    """Return what a generation_config.json asks for, and notes."""
    notes = [
        f"{_CONFIG}: {name} is ignored: akunu has no such sampler"
        for name, neutral in _FOREIGN_THERE.items()
        if given.get(name) not in (None, neutral)
    ]
    if given.get("do_sample") is False:
        given = {**given, "temperature": 0}
    options: dict[str, float | int] = {}
    for name in _SAME_NAMES:
        if given.get(name) is None:
            continue
        chosen: dict[str, Any] = {name: given[name]}
        try:
            options[name] = getattr(SamplingOptions(**chosen), name)
        except ArgumentError as error:
            notes.append(f"{_CONFIG}: {name} is ignored: {error}")
    if options.get("repetition_penalty", 1) != 1:
        options["penalty_window"] = _WHOLE_TEXT  # transformers looks at all of it
    return options, tuple(notes)


def _keys(metadata: Iterable[str]) -> list[str]:
    return [key for key in metadata if key.startswith(_PREFIX)]


def _translated(name: str, value: object) -> object:
    """Return llama.cpp's value as akunu's: what is off there is off here."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if name in _OFF_BELOW and value < _OFF_BELOW[name]:
        return _OFF_BELOW[name]
    if name == "penalty_last_n" and value == -1:
        return _WHOLE_TEXT
    if name == "top_p" and 1 < value < math.inf:
        return 1
    return _shortest(value) if isinstance(value, float) else value


def _shortest(value: float) -> float:
    """Return the shortest decimal that is the same float32, as the file's author wrote it.

    >>> _shortest(0.949999988079071)
    0.95
    """
    # Infinity where a float64 is beyond float32: refused like any other nonsense.
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return float(str(single)) if float(single) == value else value
