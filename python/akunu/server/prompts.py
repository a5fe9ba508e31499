"""The prompt that a conversation becomes, without a text that goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from akunu.embedding.embed import no_chat
from akunu.model import Model
from akunu.templates.chat_template import ChatTemplate
from akunu.text.async_calls import result_of
from akunu.text.context_overflow import refuse_too_long
from akunu.text.render import ChatRequest, prepared

_TEMPLATES: Final[WeakKeyDictionary[Model, ChatTemplate]] = WeakKeyDictionary()
_OF_PROMPTS: Final = frozenset(ChatRequest.__dataclass_fields__)


def template_of(model: Model) -> ChatTemplate:
    """Return a model's chat template; UnsupportedModelError where it has none."""
    found = _TEMPLATES.get(model)
    if found is None:
        if model.embedding is not None:
            raise no_chat(model.config.architecture)
        found = _TEMPLATES[model] = ChatTemplate.of(model.tokenizer)
    return found


async def prompt_of(model: Model, arguments: Mapping[str, Any]) -> list[int]:
    """Return the ids of a conversation's prompt.

    `arguments`: those of `Model.chat`; what is not about the prompt is left aside. Raises what
    `chat` raises.
    """
    request = ChatRequest(**{name: arguments[name] for name in _OF_PROMPTS & arguments.keys()})

    def tokens() -> list[int]:
        template, reader = template_of(model), model._image_reader
        name = model.path.name
        return prepared(request, model.tokenizer, template, None, reader, name).tokens

    return await result_of(tokens, is_quick=False)


def ids_of(model: Model, prompt: str, context: int | None) -> list[int]:
    """Return the ids of a prompt that a client made: names of control tokens are such tokens.

    Raises ContextOverflowError for one of megabytes that has more than `context`, if it is given.
    """
    refuse_too_long(model.tokenizer, [prompt], context)
    return model.tokenizer.encode(prompt, parse_special=True)
