"""What a request for /v1/completions asks for, as arguments of `Model.generate_async`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.server.fields.common import (
    MOST_LOGPROBS,
    includes_usage,
    integer_in,
    max_tokens_or_none,
    model_name,
    n_texts,
    stream_options,
)
from akunu.server.fields.keep_alive import KEEP_ALIVE, TTL
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.structure import STRUCTURE_FIELDS, response_format
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    refused,
    table_of,
    to,
    without_effect,
)
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json
from akunu.server.openai.completions_answer import CompletionAnswer, CompletionFormat
from akunu.server.settings import ServerSettings
from akunu.server.text_request import TextRequest, text_request


def _prompts(name: str, value: Any) -> Mapping[str, Any]:
    """Read a text, token ids, or a list of either."""
    if isinstance(value, str) or _is_ids(value):
        return {"prompts": [value]}
    if not isinstance(value, list) or not value:
        raise invalid(name, f"{name} is {as_json(value)}; it must be a text, token ids, or a list")
    for index, each in enumerate(value):
        if not isinstance(each, str) and not _is_ids(each):
            where = f"{name}[{index}]"
            raise invalid(where, f"{where} is {as_json(each)}; it must be a text or token ids")
    return {"prompts": value, "is_list": True}


def _is_ids(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
    )


def _logprobs(name: str, value: Any) -> Mapping[str, Any]:
    if value is False:
        return {}
    return {"logprobs": integer_in(name, value, 0, MOST_LOGPROBS)}


def _suffix(name: str, value: Any) -> Mapping[str, Any]:
    suffix = checked(name, value, str)
    return {"suffix": suffix} if suffix else {}


_SAMPLING: Final = [each for each in SAMPLING_FIELDS if each.name != "best_of"]
_PROMPT: Final = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    ]
}

COMPLETION_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name),
        honoured("prompt", _PROMPT, _prompts),
        honoured("suffix", "string", _suffix, "where the model fills in"),
        honoured("max_tokens", "integer", max_tokens_or_none),
        honoured("n", "integer", to("n"), "how many texts to generate for each prompt"),
        honoured("best_of", "integer", to("best_of")),
        honoured("stream", "boolean", flag("stream")),
        honoured("stream_options", "object", stream_options),
        honoured("echo", "boolean", flag("echo")),
        honoured("logprobs", "integer", _logprobs, "how many likely tokens to return with each"),
        honoured("response_format", "object", response_format),
        *_SAMPLING,
        *STRUCTURE_FIELDS,
        refused("prompt_embeds", "prompts are texts or token ids"),
        without_effect("user", "string", "the server does not report it"),
        without_effect("cache_prompt", "boolean", "the text is the same"),
        without_effect("id_slot", "integer", "there are no slots"),
        without_effect("timings_per_token", "boolean", "timings come once, at the end"),
        KEEP_ALIVE,
        TTL,
    ]
)


def completion_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request; ApiError for values that make no sense or are not supported."""
    wanted = text_request(COMPLETION_FIELDS, body)
    options = wanted.arguments
    if "prompts" not in options:
        raise invalid("prompt", "prompt is missing", "missing_required_parameter")
    prompts = options.pop("prompts")
    n = n_texts("n", options.pop("n", 1), settings)
    best_of = n_texts("best_of", options.pop("best_of", n), settings)
    if best_of < n:
        raise invalid("best_of", f"best_of is {best_of}; it must be at least n, {n}")
    if len(prompts) * best_of > max(settings.max_waiting, settings.most_answers):
        raise invalid(
            "prompt",
            f"prompt asks for {len(prompts) * best_of} texts at once; max_waiting is "
            f"{settings.max_waiting}",
        )
    usage_follows = includes_usage(options, is_stream=wanted.is_stream)
    if wanted.is_stream and best_of > n:
        raise invalid(
            "best_of",
            "best_of does not work with a stream: the best completion is known at the end",
        )
    echo = options.pop("echo", False)
    suffix = options.pop("suffix", "")
    logprobs = options.get("logprobs")
    if echo:
        if suffix:
            raise unsupported("echo", "echo: it does not work with a suffix")
        options["echo"] = True
        if logprobs is not None:
            options["prompt_logprobs"] = logprobs
            wanted.names = {**wanted.names, "prompt_logprobs": "logprobs"}
    if best_of > n:
        options.setdefault("logprobs", 0)
    wanted.prompts, wanted.n = prompts, best_of
    wanted.suffix = suffix or None
    is_list = options.pop("is_list", False)
    wanted.prompt_name = "prompt"
    if is_list:
        wanted.prompt_name = lambda number: f"prompt[{number // best_of}]"
    how = CompletionFormat(
        prompts=prompts,
        n=n,
        best_of=best_of,
        echo=echo,
        includes_usage=usage_follows,
        logprobs=logprobs,
    )
    wanted.answer = lambda context: CompletionAnswer(context, how)
    return wanted
