"""What a request of any dialect asks for: the arguments of one text, and how it is to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request

from akunu.model import Model
from akunu.server.fields.common import UNREAD, WITHOUT_EFFECT
from akunu.server.fields.table import Field, ignored_header, read
from akunu.server.fields.thinking import with_wished_thinking
from akunu.server.generation import Dialect, Generation
from akunu.server.http.errors import api_error, invalid, unsupported
from akunu.server.journal.generation import JournalledGeneration
from akunu.server.journal.idempotency import KEY, LAST_EVENT, idempotency_of
from akunu.server.limits import with_limits
from akunu.server.prompts import prompt_of, template_of
from akunu.server.served_model import ServedModel
from akunu.server.settings import ServerSettings
from akunu.server.state import generation_arguments, state_of
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.context_overflow import refuse_too_long, room
from akunu.tokenizers.fill_in import fill_in_of


@dataclass(slots=True, kw_only=True)
class Asked:
    """A request for one text."""

    arguments: dict[str, Any]
    """For `Model.chat_async`, or `generate_async`; a dialect takes out what is only its own."""
    names: Mapping[str, str]
    """The field that each argument came from."""
    ignored: list[str]
    model: str | None = None
    is_stream: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    """What the answer has besides; complete when the text has begun."""
    unread: list[str] = field(default_factory=list)
    """Keys of messages that nobody reads, unless the model's chat template does."""

    def ignore(self, names: Iterable[str]) -> None:
        """Name further fields without effect."""
        self.ignored += names
        self.headers.update(ignored_header(self.ignored))

    def chat(self, model: Model, settings: ServerSettings) -> AsyncTextStream:
        """Begin a reply to a conversation; raises what `Model.chat_async` raises."""
        limited = with_limits(self.fitted(model), model, settings, self.names)
        begun: AsyncTextStream = model.chat_async(**limited, stream=True)
        return begun

    def generate(self, model: Model, settings: ServerSettings) -> AsyncTextStream:
        """Begin a text; raises what `Model.generate_async` raises."""
        limited = with_limits(self.adapted(model), model, settings, self.names)
        begun: AsyncTextStream = model.generate_async(**limited, stream=True)
        return begun

    def room(self, model: Model, settings: ServerSettings) -> int | None:
        """Return the tokens that the prompt may have; None: it is shortened."""
        overflow = self.arguments.get("context_overflow") or settings.context_overflow
        return room(overflow, model.context)

    def fill_in(
        self, model: Model, settings: ServerSettings, suffix: str, param: str = "suffix"
    ) -> None:
        """Make a prompt for what is between the prompt and `suffix`, which came from `param`."""
        room = self.room(model, settings)
        self.arguments["prompt"] = filled_in(model, self.arguments["prompt"], suffix, param, room)

    def adapted(self, model: Model) -> dict[str, Any]:
        """Return the arguments, with the adapter that the name of the model asks for."""
        adapter = (self.model or "").rpartition(":")[2]
        if adapter not in model.adapters or adapter == self.model:
            return self.arguments
        return {**self.arguments, "adapters": adapter}

    def fitted(self, model: Model) -> dict[str, Any]:
        """Return arguments that the model can follow; what it cannot is named in the headers."""
        fitted, lost = with_wished_thinking(self.adapted(model), model, self.names)
        self.ignore(lost)
        if self.unread:
            template = template_of(model).source
            self.ignore(each for each in self.unread if each.rpartition(".")[2] not in template)
        return fitted


def filled_in(
    model: Model, before: str | list[int], suffix: str, param: str, context: int | None
) -> list[int]:
    """Return the prompt for what is between two texts; ApiError where there is no such thing.

    `param`: the field that the suffix came from. Raises ContextOverflowError for megabytes that
    have more than `context` tokens, if it is given.
    """
    fills_in = fill_in_of(model.tokenizer)
    if fills_in is None:
        raise unsupported(param, f"{param}: this model has no tokens for filling in")
    if not isinstance(before, str):
        raise invalid(param, f"{param} is given, and prompt is no text but token ids")
    refuse_too_long(model.tokenizer, [before, suffix], context)
    return fills_in.prompt(model.tokenizer, before, suffix)


async def n_prompt_tokens(request: Request, asked: Asked, *, prompt: str = "messages") -> int:
    """Count the tokens of a conversation's prompt, which may be longer than the context.

    `prompt`: the field that it came from. Raises ApiError.
    """
    try:
        async with state_of(request).models.use(asked.model) as (_, model):
            return len(await prompt_of(model, asked.fitted(model)))
    except Exception as error:
        raise api_error(error, names=asked.names, prompt=prompt) from error


def asked_of(
    table: Mapping[str, Field], body: Mapping[str, Any], *, is_stream: bool = False
) -> Asked:
    """Return what a request asks for; `is_stream`: where it does not say. ApiError as `read`."""
    found = read(table, body)
    options, ignored = found.options, found.ignored
    for name in [name for name in options if name.startswith(WITHOUT_EFFECT)]:
        ignored += options.pop(name)
    unread = [options.pop(name) for name in list(options) if name.startswith(UNREAD)]
    return Asked(
        model=options.pop("model", None),
        is_stream=options.pop("stream", is_stream),
        arguments=options,
        names=found.names,
        ignored=ignored,
        headers=ignored_header(ignored),
        unread=[name for names in unread for name in names],
    )


def generation_of(
    request: Request,
    asked: Asked,
    begin: Callable[[Model], AsyncTextStream | Sequence[AsyncTextStream]],
    dialect: Callable[[ServedModel], Dialect],
    *,
    prompt: str | Callable[[int], str] = "messages",
    can_go_on: bool = False,
    prepare: Callable[[Model], None] | None = None,
) -> Generation:
    """Return the answer with the texts that `begin` begins.

    `prompt`: the field that the prompt came from, or says so by the number of the text.
    `can_go_on`: whether it is journalled where that is asked for; `prepare`: see Generation, of
    those that are not. Raises ApiError.
    """

    def begun(served: ServedModel, model: Model) -> Sequence[AsyncTextStream]:
        found = begin(model)
        return [found] if isinstance(found, AsyncTextStream) else found

    journal = state_of(request).journal if can_go_on else None
    wanted = idempotency_of(request, journal)
    if journal is None:
        asked.ignore(name for name in (KEY, LAST_EVENT) if name in request.headers)
    make = (
        Generation
        if wanted is None
        else partial(
            JournalledGeneration,
            asked=wanted,
            set_seed=partial(asked.arguments.setdefault, "seed"),
        )
    )
    return make(
        state_of(request).models,
        asked.model,
        begun,
        dialect,
        is_stream=asked.is_stream,
        names=asked.names,
        prompt=prompt,
        headers=asked.headers,
        prepare=prepare,
        **generation_arguments(request),
    )
