"""What a request for Ollama's /api/create says of a new model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.server.catalogue.created import CreatedModel, new_name
from akunu.server.catalogue.presets import example_messages
from akunu.server.fields.common import model_name
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    read,
    refused,
    table_of,
    to,
)
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json, in_json_words
from akunu.server.models import ServedModels
from akunu.server.ollama.fields import OLLAMA_OPTIONS
from akunu.server.ollama.modelfile import read_modelfile
from akunu.templates.chosen_template import MOST_BYTES, template_text

_OF_GO: Final = re.compile(r"\{\{-?\s*([.$]|(if|range|with|define|template|block|else)\s)")
_NO_FILES: Final = "models are created from models that are served, not from files"


def _text(name: str, value: Any) -> Mapping[str, Any]:
    return {name: text} if (text := checked(name, value, str)) else {}


def _texts(name: str, value: Any) -> Mapping[str, Any]:
    texts = [value] if isinstance(value, str) else list(value) if _is_group(value) else [None]
    if not all(isinstance(each, str) for each in texts):
        raise invalid(name, f"{name} is {as_json(value)}; it must be a text or a list of texts")
    return {name: texts}


def _is_group(value: Any) -> bool:
    return isinstance(value, (list, dict))


def _of_type(kind: type) -> Any:
    return lambda name, value: {name: checked(name, value, kind)}


CREATE_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name, "the name of the new model"),
        honoured("name", "string", model_name, "the older name of model"),
        honoured("from", "string", _text, "the name of a served model, or model:adapter"),
        honoured("system", "string", _text, "the system message of conversations without one"),
        honoured("template", "string", _text, "a chat template in Jinja"),
        honoured("parameters", "object", _of_type(dict), "options of requests, and num_ctx"),
        honoured("messages", "array", to("messages"), "examples before those of a request"),
        honoured("adapters", {"type": ["array", "object", "string"]}, _texts, "one, by its name"),
        honoured("license", {"type": ["array", "string"]}, _texts, "texts that /api/show returns"),
        honoured("modelfile", "string", _text, "the older form of the other fields"),
        honoured("stream", "boolean", flag("stream"), "answer with a line for each step"),
        refused("files", _NO_FILES, {}),
        refused("path", _NO_FILES, ""),
        refused("quantize", "akunu quantize writes quantised files", ""),
        refused("quantization", "akunu quantize writes quantised files", ""),
        refused("renderer", "the chat template writes prompts", ""),
        refused("parser", "the chat template says how calls and thinking are read", ""),
    ]
)


@dataclass(frozen=True, slots=True)
class Creation:
    """What a request wants to create."""

    model: CreatedModel
    is_stream: bool
    ignored: list[str]


def creation_of(body: Mapping[str, Any], models: ServedModels) -> Creation:
    """Read a request; ApiError for what makes no sense. Compiling a template may take a moment."""
    found = read(CREATE_FIELDS, body)
    options, ignored = found.options, found.ignored
    if "model" not in options:
        raise invalid("model", "model is missing", "missing_required_parameter")
    if "modelfile" in options:
        older = read(CREATE_FIELDS, read_modelfile(options["modelfile"])).options
        if twice := sorted(older.keys() & options.keys()):
            raise invalid("modelfile", f"modelfile and {twice[0]} say the same: send one of them")
        options = {**options, **older}
    if "from" not in options:
        raise invalid("from", "from is missing: the name of a served model")
    settings, unused = _settings(options)
    model = derived(new_name("model", options["model"]), options["from"], models, settings, options)
    return Creation(model, options.get("stream", True), [*ignored, *unused])


def derived(
    name: str,
    source: str,
    models: ServedModels,
    settings: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> CreatedModel:
    """Return a model like another one, but for these settings; ApiError where there is none.

    `settings`: keys of a preset. `options`: a request's `license` and `adapters`.
    """
    options = options or {}
    served = models.find(source)
    table, license_texts, base = {}, [], served.name
    if served.creation is not None:
        table, base = dict(served.creation.table), served.creation.base
        license_texts = list(served.creation.license)
    sampling = {**table.get("sampling", {}), **(settings or {}).get("sampling", {})}
    table.update(settings or {})
    if sampling:
        table["sampling"] = sampling
    adapters = options.get("adapters", [])
    if adapter := models.adapter_in(source, served):
        adapters = [*adapters, adapter]
    if len(adapters) > 1 or any(each not in served.adapters for each in adapters):
        there = ", ".join(served.adapters) or "none"
        raise invalid(
            "adapters",
            f"adapters is {as_json(adapters)}; it must have the name of one adapter of "
            f"{served.name} (there is {there}). The server has files of adapters: --adapter",
        )
    if adapters:
        table["adapter"] = adapters[0]
    try:
        return CreatedModel(name, base, table, tuple(options.get("license", license_texts)))
    except ArgumentError as error:
        text = str(error).removeprefix(f"models.{name}").lstrip(".: ")
        raise invalid("parameters", in_json_words(text)) from None


def _settings(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return keys of a preset, and the names of parameters without effect."""
    found: dict[str, Any] = {}
    if "system" in options:
        found["system"] = options["system"]
    if "template" in options:
        found["chat_template"] = _template(options["template"])
    if "messages" in options:
        try:
            examples = example_messages("messages", options["messages"])
        except ArgumentError as error:
            raise invalid("messages", str(error)) from None
        found["messages"] = [dict(each) for each in examples]
    parameters = dict(options.get("parameters", {}))
    if parameters.get("num_ctx") is not None:
        found["context"] = checked("num_ctx", parameters.pop("num_ctx"), int)
    for name in parameters:
        if name not in OLLAMA_OPTIONS or name == "logit_bias":
            raise invalid("parameters", f"parameters has {as_json(name)}, which is not one of them")
    known = read(OLLAMA_OPTIONS, parameters)
    if known.options:
        found["sampling"] = known.options
    return found, [f"parameters.{each}" for each in known.ignored]


def _template(text: str) -> str:
    if _OF_GO.search(text):
        raise invalid(
            "template",
            "template is a Go template; akunu's chat templates are in Jinja, as models on the "
            "Hugging Face hub have them",
        )
    if "{{" not in text and "{%" not in text:
        raise invalid("template", "template has neither '{{' nor '{%': it must be in Jinja")
    if len(text) > MOST_BYTES:
        raise invalid("template", f"template has more than {MOST_BYTES} characters")
    try:
        template_text(text)
    except ArgumentError as error:
        message = str(error).removeprefix("chat_template: ")
        raise invalid("template", f"template: {message}") from None
    return text
