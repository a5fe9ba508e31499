"""Fields of /v1/audio/transcriptions and /v1/audio/translations: values of a form are texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from akunu.common.checks import MAX_UINT32
from akunu.errors import ArgumentError
from akunu.server.fields.common import integer_in, model_name
from akunu.server.fields.table import Field, honoured, read, refused, table_of, without_effect
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.form_body import Upload
from akunu.server.http.json_words import as_json
from akunu.speech.activity.voice_activity import VadOptions
from akunu.speech.vocabulary.languages import language_code

FORMATS: Final = ("json", "text", "srt", "vtt", "verbose_json")
GRANULARITIES: Final = "timestamp_granularities[]"
LISTS: Final = frozenset(
    {"timestamp_granularities", "include", "known_speaker_names", "known_speaker_references"}
)
"""Names of fields that may come several times."""
_SWITCHES: Final = {"true": True, "1": True, "false": False, "0": False}
_STRATEGY: Final = {
    "threshold": "threshold",
    "prefix_padding_ms": "speech_pad_ms",
    "silence_duration_ms": "min_silence_duration_ms",
}
"""Fields of OpenAI's server_vad, and what our detector calls them."""
_FILE: Final = {"type": "string", "format": "binary"}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(name, f"{name} must be one text")
    return value


def _number(name: str, value: Any, low: float, high: float) -> float:
    try:
        found = float(_text(name, value))
    except ValueError:
        found = math.nan
    if not low <= found <= high:  # NaN is in no range
        raise invalid(
            name, f"{name} is {as_json(value)}; it must be a number from {low:g} to {high:g}"
        )
    return found


def _switch(option: str) -> Callable[[str, Any], Mapping[str, Any]]:
    def read(name: str, value: Any) -> Mapping[str, Any]:
        known = _SWITCHES.get(_text(name, value).lower())
        if known is None:
            raise invalid(name, f"{name} is {as_json(value)}; it must be true or false")
        return {option: known}

    return read


def _file(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Upload):
        raise invalid(name, f"{name} must be an uploaded file, with a filename")
    return {"file": value}


def _model(name: str, value: Any) -> Mapping[str, Any]:
    return model_name(name, _text(name, value))


def _language(name: str, value: Any) -> Mapping[str, Any]:
    try:
        return {"language": language_code(_text(name, value))}
    except ArgumentError as error:
        raise invalid(name, str(error)) from None


def _format(name: str, value: Any) -> Mapping[str, Any]:
    if value == "diarized_json":
        raise unsupported(
            name, f"{name}: diarized_json is not supported: speakers are not distinguished"
        )
    if value not in FORMATS:
        raise invalid(name, f"{name} is {as_json(value)}; it must be one of {', '.join(FORMATS)}")
    return {"format": value}


def _temperature(name: str, value: Any) -> Mapping[str, Any]:
    """Read a temperature; at 0 the usual higher ones follow where a text fails, as for OpenAI."""
    found = _number(name, value, 0.0, 1.0)
    return {"temperature": found} if found else {}


def _seed(name: str, value: Any) -> Mapping[str, Any]:
    try:
        return {"seed": integer_in(name, int(_text(name, value)), 0, MAX_UINT32)}
    except ValueError:
        raise invalid(name, f"{name} is {as_json(value)}; it must be an integer") from None


def _granularities(name: str, value: Any) -> Mapping[str, Any]:
    for each in value:
        if each not in ("segment", "word"):
            raise invalid(name, f"{name} has {as_json(each)}; it may have segment and word")
    return {"granularities": frozenset(value), "word_timestamps": "word" in value}


def _chunking(name: str, value: Any) -> Mapping[str, Any]:
    if value == "auto":
        return {"vad": True}
    if not isinstance(value, dict) or value.get("type") != "server_vad":
        raise invalid(name, f"{name} must be auto, or an object whose type is server_vad")
    given = {}
    for key, text in value.items():
        if key == "type":
            continue
        if key not in _STRATEGY:
            raise invalid(name, f"{name} has {as_json(key)}; it may have {', '.join(_STRATEGY)}")
        high = 1.0 if key == "threshold" else 1e6
        given[_STRATEGY[key]] = _number(f"{name}[{key}]", text, 0.0, high)
    try:
        return {"vad": True, "vad_options": VadOptions(**given)}
    except ArgumentError as error:
        raise invalid(name, f"{name}: {error}") from None


def _include(name: str, value: Any) -> Mapping[str, Any]:
    raise unsupported(name, f"{name} has {as_json(value[0])}, which is not supported")


_SHARED: Final = (
    honoured("file", _FILE, _file, "the audio file"),
    honoured("model", "string", _model, "the name of a model; default: the first speech model"),
    honoured(
        "prompt",
        "string",
        lambda name, value: {"prompt": _text(name, value)},
        "text that comes before the speech",
    ),
    honoured(
        "response_format",
        {"enum": list(FORMATS)},
        _format,
        "json, text, srt, vtt or verbose_json",
    ),
    honoured(
        "temperature",
        "number",
        _temperature,
        "from 0 to 1; with 0, higher values are tried if a result is poor",
    ),
    honoured(
        "vad_filter",
        "boolean",
        _switch("vad"),
        "transcribe only parts with speech; default: true",
    ),
    honoured(
        "hotwords",
        "string",
        lambda name, value: {"hotwords": _text(name, value)},
        "words that are likely in the speech",
    ),
    honoured("seed", "integer", _seed, "seed of the random numbers above temperature 0"),
)
_OTHERS: Final = (
    honoured("stream", "boolean", _switch("stream"), "send the text in chunks"),
    honoured(
        "chunking_strategy",
        {},
        _chunking,
        "auto, or server_vad with threshold, prefix_padding_ms and silence_duration_ms",
    ),
    honoured(
        GRANULARITIES,
        {"type": "array", "items": {"enum": ["segment", "word"]}},
        _granularities,
        "the times in verbose_json: segment (default), word or both",
    ),
    Field(
        name="include[]",
        schema={"type": "array", "items": {"type": "string"}},
        effect="refused",
        read=_include,
        note="there are no logprobs of tokens",
    ),
    refused("known_speaker_names[]", "speakers are not distinguished", schema="array"),
    refused("known_speaker_references[]", "speakers are not distinguished", schema="array"),
)
_USER: Final = without_effect("user", "string", "the server does not report it")

TRANSCRIPTION_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_SHARED,
        honoured(
            "language",
            "string",
            _language,
            "code or English name of the language; without it, the model detects it",
        ),
        *_OTHERS,
        _USER,
    ]
)
TRANSLATION_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_SHARED,
        honoured(
            "language",
            "string",
            _language,
            "the language that is spoken; without it, the model detects it",
        ),
        _USER,
    ]
)


@dataclass(slots=True, kw_only=True)
class AudioRequest:
    """What a request about audio asks for."""

    upload: Upload
    model: str | None
    format: str
    granularities: frozenset[str]
    is_stream: bool
    arguments: dict[str, Any]
    """For `SpeechModel.transcribe`."""
    names: Mapping[str, str]
    """The field that each argument came from."""
    ignored: list[str] = field(default_factory=list)


def audio_request(table: Mapping[str, Field], body: Mapping[str, Any], task: str) -> AudioRequest:
    """Read a request; ApiError for values that make no sense or are not supported."""
    found = read(table, body)
    options = found.options
    if "file" not in options:
        raise invalid("file", "file is missing", "missing_required_parameter")
    asked = AudioRequest(
        upload=options.pop("file"),
        model=options.pop("model", None),
        format=options.pop("format", "json"),
        granularities=options.pop("granularities", frozenset({"segment"})),
        is_stream=options.pop("stream", False),
        arguments={"task": task, **options},
        names=found.names,
        ignored=found.ignored,
    )
    if GRANULARITIES in body and asked.format != "verbose_json":
        raise invalid(GRANULARITIES, f"{GRANULARITIES} needs response_format verbose_json")
    if asked.is_stream and asked.format not in ("json", "text"):
        raise invalid(
            "response_format",
            f"response_format is {asked.format}; a stream has events, use json or text",
        )
    return asked
