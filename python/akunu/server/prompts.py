"""The prompt that a conversation becomes, without a text that continues from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.model import Model
from akunu.templates.chat_template import ChatTemplate
from akunu.text.context_overflow import refuse_too_long
from akunu.text.request import Request
from akunu.text.wakers import result_of
from akunu.tokenizers.tokenizer import Tokenizer

_OF_PROMPTS: Final = frozenset(Request.__dataclass_fields__) - {"options", "priority"}


def template_of(model: Model) -> ChatTemplate:
    """Return a model's chat template; UnsupportedModelError where it has none."""
    return model._pipeline.template


async def prompt_of(model: Model, arguments: Mapping[str, Any]) -> list[int]:
    """Return the ids of a conversation's prompt.

    `arguments`: those of `Model.chat`; what is not about the prompt is left aside. Raises what
    `chat` raises.
    """
    request = Request(**{name: arguments[name] for name in _OF_PROMPTS & arguments.keys()})
    prompt = await result_of(lambda: model._pipeline.prompt(request))
    ids: list[int] = prompt.tokens.tolist()
    return ids


def ids_of(
    tokenizer: Tokenizer, prompt: str | Sequence[int | str], context: int | None
) -> list[int]:
    """Return the ids of a prompt that a client made: names of control tokens are such tokens.

    `prompt`: a text, or token ids and texts. Raises ContextOverflowError for one of megabytes that
    has more than `context`, if it is passed.
    """
    parts = [prompt] if isinstance(prompt, str) else prompt
    refuse_too_long(tokenizer, [each for each in parts if isinstance(each, str)], context)
    if isinstance(prompt, str):
        return tokenizer.encode(prompt, parse_special=True)
    found: list[int] = []
    for each in prompt:
        if isinstance(each, str):
            found += tokenizer.encode(each, add_special=not found, parse_special=True)
        else:
            found.append(each)
    return found
