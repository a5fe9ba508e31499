"""What a request for /v1/completions asks for, as arguments of `Model.generate_async`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from akunu._shown import shorten
from akunu.async_text_stream import AsyncTextStream
from akunu.fill_in import fill_in_of
from akunu.model import Model
from akunu.server.errors import invalid, unsupported
from akunu.server.fields import (
    Field,
    checked,
    flag,
    honoured,
    read,
    refused,
    table_of,
    to,
    without_effect,
)
from akunu.server.limits import with_limits
from akunu.server.openai_fields import max_tokens, model_name, stream_options
from akunu.server.sampling_fields import SAMPLING_FIELDS
from akunu.server.settings import ServerSettings
from akunu.server.structure_fields import STRUCTURE_FIELDS, response_format

Prompt = str | list[int]

_MOST_LOGPROBS: Final = 20


def _prompts(name: str, value: Any) -> Mapping[str, Any]:
    """Read a text, token ids, or a list of either."""
    if isinstance(value, str) or _is_ids(value):
        return {"prompts": [value]}
    if not isinstance(value, list) or not value:
        raise invalid(name, f"{name} is {shorten(value)}; it must be a text, token ids, or a list")
    for index, each in enumerate(value):
        if not isinstance(each, str) and not _is_ids(each):
            raise invalid(
                name, f"{name}[{index}] is {shorten(each)}; it must be a text or token ids"
            )
    return {"prompts": value}


def _is_ids(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
    )


def _logprobs(name: str, value: Any) -> Mapping[str, Any]:
    if value is False:
        return {}
    n = checked(name, value, int)
    if not 0 <= n <= _MOST_LOGPROBS:
        raise invalid(name, f"{name} is {n}; it must be an integer from 0 to {_MOST_LOGPROBS}")
    return {"logprobs": n}


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
        honoured("max_tokens", "integer", max_tokens),
        honoured("n", "integer", to("n")),
        honoured("best_of", "integer", to("best_of")),
        honoured("stream", "boolean", flag("stream")),
        honoured("stream_options", "object", stream_options),
        honoured("echo", "boolean", flag("echo")),
        honoured("logprobs", "integer", _logprobs),
        honoured("response_format", "object", response_format),
        *_SAMPLING,
        *STRUCTURE_FIELDS,
        refused("prompt_embeds", "prompts are texts or token ids"),
        without_effect("user", "string", "nobody is told"),
        without_effect("cache_prompt", "boolean", "the text is the same"),
        without_effect("id_slot", "integer", "there are no slots"),
        without_effect("timings_per_token", "boolean", "timings come once, at the end"),
        without_effect("keep_alive", "", "the server's idle_seconds says it"),
    ]
)


@dataclass(slots=True, kw_only=True)
class CompletionRequest:
    """A request for texts that go on from prompts, and how it wants to be told."""

    model: str | None
    prompts: list[Prompt]
    suffix: str
    n: int
    best_of: int
    """How many texts of each prompt are generated; the n likeliest are told."""
    echo: bool
    arguments: dict[str, Any]
    is_stream: bool
    includes_usage: bool
    logprobs: int | None
    names: Mapping[str, str]
    ignored: list[str]

    def begin(self, model: Model, settings: ServerSettings) -> list[AsyncTextStream]:
        """Start the texts, those of the first prompt first; raises what `generate_async` raises."""
        arguments = with_limits(self.arguments, model, settings, self.names)
        streams: list[AsyncTextStream] = []
        for prompt in self.prompts:
            begun = self._prompt(model, prompt)
            if self.best_of == 1:
                streams.append(model.generate_async(begun, **arguments, stream=True))
            else:
                streams += model.generate_async(begun, **arguments, n=self.best_of, stream=True)
        return streams

    def _prompt(self, model: Model, prompt: Prompt) -> Prompt:
        if not self.suffix:
            return prompt
        fills_in = fill_in_of(model.tokenizer)
        if fills_in is None:
            raise unsupported("suffix", "suffix: this model has no tokens for filling in")
        if not isinstance(prompt, str):
            raise invalid("suffix", "suffix is given, and prompt is no text but token ids")
        return fills_in.prompt(model.tokenizer, prompt, self.suffix)


def completion_request(body: Mapping[str, Any], settings: ServerSettings) -> CompletionRequest:
    """Return what a request asks for; ApiError for what makes no sense or is not done here."""
    found = read(COMPLETION_FIELDS, body)
    options = found.options
    if "prompts" not in options:
        raise invalid("prompt", "prompt is missing", "missing_required_parameter")
    prompts = options.pop("prompts")
    n = _count("n", options.pop("n", 1), settings)
    best_of = _count("best_of", options.pop("best_of", n), settings)
    if best_of < n:
        raise invalid("best_of", f"best_of is {best_of}; it must be at least n, {n}")
    if len(prompts) * best_of > max(settings.max_waiting, settings.most_answers):
        raise invalid(
            "prompt",
            f"prompt asks for {len(prompts) * best_of} texts at once; max_waiting is "
            f"{settings.max_waiting}",
        )
    is_stream = options.pop("stream", False)
    if "include_usage" in options and not is_stream:
        raise invalid("stream_options", "stream_options is given, and stream is not true")
    if is_stream and best_of > n:
        raise invalid("best_of", "best_of is known at the end: a stream cannot have it")
    echo = options.pop("echo", False)
    suffix = options.pop("suffix", "")
    logprobs = options.get("logprobs")
    if echo:
        if suffix:
            raise unsupported("echo", "echo: a prompt with a suffix is no text")
        if is_stream and logprobs is not None:
            raise unsupported("echo", "echo with logprobs is not told as a stream")
        options["echo"] = True
        if logprobs is not None:
            options["prompt_logprobs"] = logprobs
    if best_of > n:
        options.setdefault("logprobs", 0)
    return CompletionRequest(
        model=options.pop("model", None),
        prompts=prompts,
        suffix=suffix,
        n=n,
        best_of=best_of,
        echo=echo,
        is_stream=is_stream,
        includes_usage=options.pop("include_usage", False),
        logprobs=logprobs,
        arguments=options,
        names={**found.names, "prompt_logprobs": "logprobs"},
        ignored=found.ignored,
    )


def _count(name: str, value: Any, settings: ServerSettings) -> int:
    n: int = checked(name, value, int)
    if not 1 <= n <= settings.most_answers:
        raise invalid(
            name, f"{name} is {n}; it must be an integer from 1 to {settings.most_answers}"
        )
    return n
