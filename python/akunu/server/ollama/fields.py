"""What requests for Ollama's /api/chat and /api/generate ask for, as arguments of a model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from akunu.server.fields.common import continued, n_predict
from akunu.server.fields.image_parts import of_base64
from akunu.server.fields.keep_alive import KEEP_ALIVE
from akunu.server.fields.offered_tools import offered_functions
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    refused,
    table_of,
    unknown_keys,
    without_effect,
)
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json, kind_of
from akunu.server.ollama.answer import OllamaAnswer
from akunu.server.openai.chat_fields import allowed_only, tool_choice, top_logprobs
from akunu.server.settings import ServerSettings
from akunu.server.text_request import AnswerContext, TextRequest, text_request

_KNOWN: Final = frozenset(
    ("role", "content", "images", "thinking", "tool_calls", "tool_name", "tool_call_id", "name")
)
_LOADED: Final = "the server's settings apply"


def _format(name: str, value: Any) -> Mapping[str, Any]:
    if value == "":
        return {}
    if value == "json":
        return {"json": True}
    if not isinstance(value, dict):
        raise invalid(name, f"format is {as_json(value)}; it must be 'json' or a JSON schema")
    return {"schema": value}


def _think(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, (bool, str)):
        raise invalid(name, f"think is {as_json(value)}; it must be true, false or a level")
    return {"thinking": value}


def _text(option: str) -> Any:
    def read(name: str, value: Any) -> Mapping[str, Any]:
        return {option: text} if (text := checked(name, value, str)) else {}

    return read


OLLAMA_OPTIONS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("num_predict", "integer", n_predict),
        *SAMPLING_FIELDS,
        refused("tfs_z", "choose with top_p, min_p or top_n_sigma", 1, 1.0),
        refused("penalize_newline", "penalties apply to newlines as to all tokens", True),
        without_effect("num_keep", "integer", "a prompt is never cut"),
        *(
            without_effect(name, "", _LOADED)
            for name in (
                *("num_ctx", "num_batch", "num_gpu", "num_thread", "main_gpu", "numa"),
                *("use_mmap", "use_mlock", "low_vram", "f16_kv", "vocab_only", "embedding_only"),
            )
        ),
        without_effect("logits_all", "boolean", "use logprobs"),
    ]
)

_BOTH: Final = (
    honoured("model", "string", lambda name, value: {"model": checked(name, value, str)}),
    honoured("stream", "boolean", flag("stream")),
    honoured("format", {"type": ["string", "object", "null"]}, _format),
    honoured("options", "object", lambda name, value: {"options": checked(name, value, dict)}),
    honoured("think", {"type": ["boolean", "string", "null"]}, _think),
    KEEP_ALIVE,
    honoured("logprobs", "boolean", flag("has_logprobs")),
    honoured("top_logprobs", "integer", top_logprobs),
    refused("truncate", "a prompt that does not fit is an error", False),
    refused("shift", "a prompt that does not fit is an error", False),
)

OLLAMA_CHAT_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_BOTH,
        honoured("messages", "array", lambda name, value: {"turns": checked(name, value, list)}),
        honoured("tools", "array", offered_functions),
        honoured("tool_choice", {"type": ["string", "object", "null"]}, tool_choice),
        honoured("parallel_tool_calls", "boolean", flag("parallel_tool_calls")),
    ]
)

OLLAMA_GENERATE_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_BOTH,
        honoured("prompt", "string", _text("prompt"), "what the model answers"),
        honoured("suffix", "string", _text("suffix")),
        honoured("system", "string", _text("system")),
        honoured("raw", "boolean", flag("raw")),
        refused("template", "the model's template is used; raw: true skips it", ""),
        honoured("images", "array", lambda name, value: {"images": checked(name, value, list)}),
        refused("context", "use /api/chat for a conversation", []),
    ]
)


def chat_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request for /api/chat; ApiError for values that make no sense."""
    wanted = _request(OLLAMA_CHAT_FIELDS, body, is_chat=True)
    options = wanted.arguments
    turns, allowed = options.pop("turns", []), options.pop("allowed_tools", None)
    if turns:
        options["messages"] = _messages(turns)
        options.update(continued(options["messages"]))
        unread = [name for turn in turns for name in unknown_keys("messages", turn, _KNOWN)]
        wanted.unread += dict.fromkeys(unread)
    if allowed is not None:
        options["tools"] = allowed_only(options.get("tools", []), allowed)
    return wanted


def generate_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request for /api/generate; ApiError for values that make no sense."""
    wanted = _request(OLLAMA_GENERATE_FIELDS, body, is_chat=False)
    options = wanted.arguments
    prompt = options.pop("prompt", None)
    system, suffix = options.pop("system", None), options.pop("suffix", None)
    is_raw, images = options.pop("raw", False), options.pop("images", [])
    wanted.prompt_name = "prompt"
    if is_raw or suffix is not None:
        if images:
            raise unsupported("images", "images do not work with raw or suffix")
        if system is not None:
            raise invalid("system", "system does not work with raw or suffix")
        if "thinking" in options:
            raise invalid("think", "think does not work with raw or suffix")
        if prompt is not None or suffix is not None:
            wanted.prompts = [prompt or ""]
        wanted.suffix = suffix
        wanted.spells_tokens = True  # such a prompt is what a template has made
    elif prompt is not None:
        turns = [{"role": "system", "content": system}] if system is not None else []
        content = _with_images(images, prompt, "images") if images else prompt
        options["messages"] = [*turns, {"role": "user", "content": content}]
    return wanted


def _request(table: Mapping[str, Field], body: Mapping[str, Any], *, is_chat: bool) -> TextRequest:
    began = time.monotonic()
    wanted = text_request(table, body, is_stream=True)
    options = wanted.arguments
    inner = text_request(OLLAMA_OPTIONS, options.pop("options", {}))
    options.update(inner.arguments)
    wanted.names = {**wanted.names, **inner.names}
    wanted.ignore(f"options.{each}" for each in inner.ignored)
    has_logprobs = options.pop("has_logprobs", False)
    top = options.pop("top_logprobs", 0)
    if has_logprobs:
        options["logprobs"] = top
    elif top:
        raise invalid("top_logprobs", "top_logprobs needs logprobs: true")

    def answer(context: AnswerContext) -> OllamaAnswer:
        return OllamaAnswer(context.model, is_chat=is_chat, began=began, has_logprobs=has_logprobs)

    wanted.answer = answer
    return wanted


def _messages(turns: list[Any]) -> list[dict[str, Any]]:
    """Return messages whose calls and results have ids, as templates may want them."""
    found: list[dict[str, Any]] = []
    open_calls: list[tuple[str, Any]] = []
    for index, turn in enumerate(turns):
        where = f"messages[{index}]"
        if not isinstance(turn, dict):
            raise invalid("messages", f"{where} must be an object, got {kind_of(turn)}")
        message = {key: value for key, value in turn.items() if value is not None}
        message.setdefault("content", "")
        images = message.pop("images", None)
        if images:
            message["content"] = _with_images(images, message["content"], "messages", where)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            message["tool_calls"] = [
                _with_id(call, f"call_{index}_{number}", open_calls)
                for number, call in enumerate(calls)
            ]
        if message.get("role") == "tool" and "tool_call_id" not in message:
            _answer(message, open_calls)
        found.append(message)
    return found


def _with_images(images: Any, text: Any, field: str, where: str = "") -> list[dict[str, Any]]:
    """Return the content of a message with images, which come in front of its text."""
    name = f"{where}.images" if where else "images"
    if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
        raise invalid(field, f"{name} must be a list of texts, each an image in base64")
    return [*map(of_base64, images), {"type": "text", "text": text}]


def _with_id(call: Any, fresh: str, open_calls: list[tuple[str, Any]]) -> Any:
    if not isinstance(call, dict):
        return call  # the model's messages say what is wrong
    named = {**call, "id": call.get("id") or fresh}
    function = call.get("function")
    open_calls.append((named["id"], function.get("name") if isinstance(function, dict) else None))
    return named


def _answer(message: dict[str, Any], open_calls: list[tuple[str, Any]]) -> None:
    """Say which call a result belongs to: the first of its name, or else the first."""
    name = message.pop("tool_name", None) or message.get("name")
    call = next((each for each in open_calls if each[1] == name), None) or next(
        iter(open_calls), None
    )
    if call is not None:
        open_calls.remove(call)
        message["tool_call_id"] = call[0]
    if name:
        message["name"] = name
