"""From text to tokens: a prompt, as the engine reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from akunu.errors import ArgumentError, ContextOverflowError
from akunu.templates.chat_template import ChatTemplate, template_ids, with_bos
from akunu.text.context_overflow import newest_turns, refuse_too_long
from akunu.text.render import Rendered, render
from akunu.tokenizers.token_ids import token_ids

if TYPE_CHECKING:
    from akunu import _core
    from akunu.images.reader import ImageReader
    from akunu.text.context_overflow import Shorten
    from akunu.text.request import Request
    from akunu.tokenizers.tokenizer import Tokenizer

_PLAIN = Rendered()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The tokens that a text begins with."""

    tokens: NDArray[np.uint32]
    rendered: Rendered = _PLAIN
    """How the reply is read, and what it may be."""
    text: str | None = None
    """The prompt, if it is a text."""
    shorten: Shorten | None = None
    """How it is shortened where the context is full; None: its oldest tokens go."""
    images: Sequence[tuple[int, _core.Image]] = ()
    """Each with the index of its first token."""


def text_prompt(
    prompt: Any, tokenizer: Tokenizer, vocab_size: int, context: int | None = None
) -> Prompt:
    """Return the prompt of a text, or of token ids, which are taken as they are.

    Raises ArgumentError for what is neither, ContextOverflowError for a text of megabytes that has
    more than `context` tokens.
    """
    is_text = isinstance(prompt, str)
    if is_text:
        refuse_too_long(tokenizer, [prompt], context)
    ids = tokenizer.encode(prompt) if is_text else prompt
    tokens = token_ids(ids, vocab_size, "prompt", "a text (str) or token ids")
    if not tokens.size:
        if tokenizer.bos_id is None:
            raise ArgumentError(
                "the prompt is empty, and this model has no BOS token to start from; write at "
                "least one token"
            )
        tokens = np.array([tokenizer.bos_id], dtype=np.uint32)
    return Prompt(tokens, text=prompt if is_text else None)


def chat_prompt(
    request: Request,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    context: int | None = None,
    reader: ImageReader | None = None,
    name: str = "this model",
    vocab_size: int | None = None,
) -> Prompt:
    """Return the prompt of a conversation; arguments and errors are those of `render`.

    `vocab_size`: the rows of the model, which may be more than its tokenizer's tokens.
    """
    rendered = render(request, tokenizer, template, context, reader, name)
    ids, images = encoded(rendered, tokenizer, context, reader)
    messages = request.messages or ()

    def without(messages: Sequence[Any]) -> list[int]:
        shorter = render(replace(request, messages=messages), tokenizer, template)
        return encoded(shorter, tokenizer)[0]

    goes_on = request.options.context_overflow != "stop"
    size = tokenizer.vocab_size if vocab_size is None else vocab_size
    is_known = max(ids, default=0) < size
    return Prompt(
        np.array(ids, np.uint32) if is_known else token_ids(ids, size, "messages"),
        rendered,
        shorten=newest_turns(messages, without) if goes_on else None,
        images=images,
    )


def encoded(
    rendered: Rendered,
    tokenizer: Tokenizer,
    context: int | None = None,
    reader: ImageReader | None = None,
) -> tuple[list[int], Sequence[tuple[int, _core.Image]]]:
    """Return the tokens of a rendered conversation, and its images with their places."""
    pieces = rendered.pieces
    images: Sequence[tuple[int, _core.Image]] = ()
    if reader is not None and rendered.images:
        placed = reader.placed(pieces, rendered.images)
        ids = with_bos(tokenizer, tokenizer.encode_pieces(placed))
        if context is not None and len(ids) > context:
            raise ContextOverflowError(
                f"the prompt has {len(ids)} tokens, the context holds {context}; make it "
                "shorter, or load the model with a longer context"
            )
        places = reader.places(ids, rendered.images)
        images = [(first, reader.read(each)) for first, each in places]
    else:
        ids = with_bos(tokenizer, tokenizer.encode_pieces(pieces))
    if rendered.opening:
        ids += template_ids(tokenizer, rendered.opening)
    return ids, images
