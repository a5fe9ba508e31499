"""Models as Ollama describes them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

from akunu.model import Model
from akunu.server.model_files import ModelFile, file_of
from akunu.server.ollama.answer import now
from akunu.server.ollama.modelfile import written_modelfile
from akunu.server.prompts import template_of
from akunu.server.served_model import Loaded, ServedModel
from akunu.tokenizers.fill_in import fill_in_of

_OLLAMAS_NAMES: Final = {
    "max_tokens": "num_predict",
    "repetition_penalty": "repeat_penalty",
    "penalty_window": "repeat_last_n",
}


async def listed(served: ServedModel) -> dict[str, Any]:
    """Return a model's entry in /api/tags; little is known of a model that is not fetched yet."""
    file = await file_of(served)
    return {
        "name": served.name,
        "model": served.name,
        "modified_at": now(served.created),
        "size": 0 if file is None else file.size,
        "digest": "" if file is None else file.digest,
        "details": details(file, served),
    }


async def running(served: ServedModel, model: Loaded) -> dict[str, Any]:
    """Return what /api/ps tells of a model that is loaded."""
    in_memory = {"size": model.memory["total"]}
    if isinstance(model, Model):
        in_memory["context_length"] = model.context
    found = {**await listed(served), **in_memory}
    del found["modified_at"]
    timer = served.idle_timer
    if timer is not None:  # of the loop's clock, which is the monotonic one
        found["expires_at"] = now(time.time() + timer.when() - time.monotonic())
    return found


def details(file: ModelFile | None, served: ServedModel) -> dict[str, Any]:
    """Return the family, size and number format of a model."""
    creation = served.creation
    family = "" if file is None else file.architecture
    return {
        "parent_model": "" if creation is None else creation.base,
        "format": "gguf",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "" if file is None else file.parameter_size,
        "quantization_level": "" if file is None else file.quantization,
    }


async def described(served: ServedModel, model: Model) -> dict[str, Any]:
    """Return what /api/show tells of a model."""
    config = model.config
    family = config.architecture
    file = await file_of(served)
    creation, preset = served.creation, served.preset
    template = model.tokenizer.chat_template or ""
    parameters = "\n".join(_parameters(model, served))
    licenses = () if creation is None else creation.license
    modelfile = written_modelfile(
        served.name if creation is None else creation.base,
        template=template,
        system=preset.system,
        adapter=preset.adapter,
        parameters=parameters,
        messages=preset.messages,
        licenses=licenses,
    )
    return {
        "modelfile": modelfile,
        "license": "\n".join(licenses),
        "parameters": parameters,
        "template": template,
        "system": preset.system,
        "messages": [dict(each) for each in preset.messages],
        "details": details(file, served),
        "model_info": {
            "general.architecture": family,
            "general.basename": config.name,
            "general.parameter_count": 0 if file is None else file.n_parameters,
            f"{family}.context_length": config.context_length,
            f"{family}.embedding_length": config.dim,
            f"{family}.block_count": config.n_layers,
            f"{family}.attention.head_count": config.n_heads,
            f"{family}.attention.head_count_kv": config.n_kv_heads,
            f"{family}.feed_forward_length": config.ffn_dim,
            f"{family}.vocab_size": config.vocab_size,
        },
        "capabilities": capabilities(model),
        "modified_at": now(served.created),
    }


def _parameters(model: Model, served: ServedModel) -> Iterator[str]:
    """Yield a line for each parameter, by Ollama's names."""
    if served.creation is not None and "context" in served.preset.loading:
        yield f"num_ctx {served.preset.loading['context']}"
    for name, value in model.sampling_defaults.items():
        for each in value if isinstance(value, (list, tuple)) else [value]:
            yield f"{_OLLAMAS_NAMES.get(name, name)} {json.dumps(each, ensure_ascii=False)}"


def capabilities(model: Model) -> list[str]:
    """Return what a model can do, by Ollama's names."""
    if model.embedding is not None:
        return ["embedding"]
    found = ["completion"]
    if fill_in_of(model.tokenizer) is not None:
        found.append("insert")
    if model.tokenizer.chat_template:
        template = template_of(model)
        switch = template.thinking_switch
        if template.knows_tools:
            found.append("tools")
        if switch.can_be_switched or switch.always_thinks:
            found.append("thinking")
    if model.reads_images:
        found.append("vision")
    return found
