"""What a request for /v1/fim/completions asks for: code between two others, as Mistral has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from akunu.server.fields.common import includes_usage, max_tokens, model_name, stream_options
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.table import Field, checked, flag, honoured, table_of
from akunu.server.http.errors import invalid
from akunu.server.openai.chat_answer import ChatAnswer
from akunu.server.settings import ServerSettings
from akunu.server.text_request import TextRequest, text_request


def _text(name: str, value: Any) -> Mapping[str, Any]:
    return {name: checked(name, value, str)}


def _seed(name: str, value: Any) -> Mapping[str, Any]:
    return {"seed": checked(name, value, int)}


FIM_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name),
        honoured("prompt", "string", _text, "the text before the gap"),
        honoured("suffix", "string", _text),
        honoured("max_tokens", "integer", max_tokens),
        honoured("stream", "boolean", flag("stream")),
        honoured("stream_options", "object", stream_options),
        honoured("random_seed", "integer", _seed),
        *SAMPLING_FIELDS,
    ]
)


def fim_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request; ApiError for values that make no sense or are not supported."""
    wanted = text_request(FIM_FIELDS, body)
    options = wanted.arguments
    if "prompt" not in options:
        raise invalid("prompt", "prompt is missing", "missing_required_parameter")
    usage_follows = includes_usage(options, is_stream=wanted.is_stream)
    wanted.prompts, wanted.prompt_name = [options.pop("prompt")], "prompt"
    wanted.suffix = options.pop("suffix", "")
    wanted.answer = partial(ChatAnswer, includes_usage=usage_follows)
    return wanted
