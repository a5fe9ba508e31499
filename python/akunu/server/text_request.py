"""What a request of any dialect asks for: the arguments of texts, and how they are answered.

A dialect's `to_request` makes a TextRequest of a JSON body; what needs a model is done here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from akunu.common.checks import integer
from akunu.server.fields.common import UNREAD, WITHOUT_EFFECT
from akunu.server.fields.lora import by_name
from akunu.server.fields.table import Field, ignored_header, read
from akunu.server.fields.thinking import with_wished_thinking
from akunu.server.http.errors import ApiError, api_error, invalid, unsupported
from akunu.server.prompts import ids_of, template_of
from akunu.text.context_overflow import refuse_too_long, room
from akunu.text.request import request_of
from akunu.tokenizers.fill_in import fill_in_of

if TYPE_CHECKING:
    from akunu.model import Model
    from akunu.server.served_model import ServedModel
    from akunu.server.settings import ServerSettings
    from akunu.text.async_text_stream import AsyncTextStream
    from akunu.text.completion import Completion
    from akunu.text.deltas import Delta
    from akunu.tokenizers.tokenizer import Tokenizer

_NUMBERED = re.compile(r"\bmessages\[(\d+)\]")
_QUICK_CHARACTERS = 2_000  # of prompts, whose tokens are found while no one waits for long


class Answer(Protocol):
    """How one API writes answers."""

    @property
    def media_type(self) -> str:
        """The content type of a stream."""
        ...

    @property
    def ping(self) -> bytes:
        """A message for an idle stream; b"" if there is none."""
        ...

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream, for JSON."""
        ...

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return what a stream begins with."""
        ...

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the events for a piece of one of the texts, b"" for none."""
        ...

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the events for the end of one of the texts."""
        ...

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return what a stream ends with."""
        ...

    def failed(self, error: ApiError) -> bytes:
        """Return what ends a stream that has begun and cannot continue."""
        ...


@dataclass(slots=True)
class AnswerContext:
    """What an answer says of the server."""

    model: str
    """The name of the model that writes."""
    request_id: str
    tokenizer: Tokenizer = field(init=False)
    """The model's, once it is loaded: no text comes before."""


@dataclass(slots=True, kw_only=True)
class TextRequest:
    """A request for texts."""

    arguments: dict[str, Any]
    """For `Model.chat`, or `generate`; a dialect takes out what is only its own."""
    names: Mapping[str, str]
    """The field that each argument came from."""
    ignored: list[str]
    answer: Callable[[AnswerContext], Answer] = field(init=False)
    """Makes what writes the answer."""
    model: str | None = None
    keep_seconds: float | None = None
    """How long the model stays loaded afterwards; as of `ServedModels.use`."""
    is_stream: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    """What the answer has besides; complete when the text has begun."""
    unread: list[str] = field(default_factory=list)
    """Keys of messages that no one reads, unless the model's chat template does."""
    prompts: Sequence[Any] | None = None
    """What texts continue from, each a text, or a list of token ids and texts; None: messages."""
    prompt_name: str | Callable[[int], str] = "messages"
    """The field that the prompt came from, or what says so by the number of the text."""
    suffix: str | None = None
    """The text after the gap to fill in; None: texts continue from the prompts."""
    suffix_name: str = "suffix"
    """The field that the suffix came from."""
    spells_tokens: bool = False
    """Whether the names of control tokens in prompts are such tokens."""
    text_bias: Mapping[str, Any] = field(default_factory=dict)
    """Biases of all tokens of a text."""
    n: int = 1
    """How many texts of each prompt."""
    _added_at: int = 0
    _n_added: int = 0
    """Where the conversation has messages of the model's preset, and how many."""

    def ignore(self, names: Iterable[str]) -> None:
        """Name further fields without effect."""
        new = list(names)
        if new:
            self.ignored += new
            self.headers.update(ignored_header(self.ignored))

    async def begin(
        self, served: ServedModel, model: Model, settings: ServerSettings
    ) -> list[AsyncTextStream]:
        """Return the streams of all texts; raises what `generate` and `chat` raise, and ApiError.

        What takes long happens in a thread.
        """
        if self.prompts is None:
            arguments = self._limited(self.fitted(served, model), model, settings)
            return self._streams(model, arguments)
        prompts = self.prompts
        if self.suffix is not None or self.spells_tokens:
            prepare = partial(self._prepared, model, settings, prompts)
            n_characters = sum(map(_size, prompts)) + sum(map(len, self.text_bias))
            if n_characters <= _QUICK_CHARACTERS and model.tokenizer._is_built:
                prompts = prepare()
            else:
                prompts = await asyncio.get_running_loop().run_in_executor(None, prepare)
        arguments = self._limited(self._adapted(served, model), model, settings)
        streams: list[AsyncTextStream] = []
        for prompt in prompts:
            streams += self._streams(model, {**arguments, "prompt": prompt})
        return streams

    def _limited(
        self, options: Mapping[str, Any], model: Model, settings: ServerSettings
    ) -> dict[str, Any]:
        """Return options with those that the model's authors recommend, and a number of tokens.

        Raises ApiError for more tokens than the server allows: it never cuts a text.
        """
        found: dict[str, Any] = {}
        if "samplers" not in options:  # its own order has no room for what it leaves out
            found = dict(model._pipeline.sampling_defaults)
        if options.get("penalize_prompt") is not False:  # which does not go with a shift
            found["context_overflow"] = settings.context_overflow
        found.update(options)
        most = settings.most_tokens
        wanted = found.get("max_tokens")
        if wanted is not None and most is not None:
            field = self.names.get("max_tokens", "max_tokens")
            if integer("max_tokens", wanted, -1, None) == -1 or wanted > most:
                raise invalid(field, f"{field} is {wanted}; this server allows at most {most}")
        if wanted is None:
            found["max_tokens"] = settings.default_max_tokens or most
        return found

    def _streams(self, model: Model, arguments: Mapping[str, Any]) -> list[AsyncTextStream]:
        request, pipeline = request_of(arguments), model._pipeline
        if self.n == 1:
            return [pipeline.run_async(request, None, stream=True)]
        streams: list[AsyncTextStream] = pipeline.run_async(request, self.n, stream=True)
        return streams

    def _prepared(
        self, model: Model, settings: ServerSettings, prompts: Sequence[Any]
    ) -> list[list[int]]:
        """Return the token ids of prompts, and have biases of texts be those of their tokens."""
        if self.text_bias:  # those of tokens themselves come before these
            encode = partial(model.tokenizer.encode, add_special=False, parse_special=True)
            biases: dict[int, Any] = {}
            for text, bias in self.text_bias.items():
                biases.update(dict.fromkeys(encode(text), bias))
            self.arguments["logit_bias"] = {**biases, **self.arguments["logit_bias"]}
        overflow = self.arguments.get("context_overflow") or settings.context_overflow
        context = room(overflow, model.context)
        if self.suffix is not None:
            return [self._filled_in(model, each, self.suffix, context) for each in prompts]
        return [ids_of(model.tokenizer, each, context) for each in prompts]

    def _filled_in(self, model: Model, before: Any, suffix: str, context: int | None) -> list[int]:
        param = self.suffix_name
        fills_in = fill_in_of(model.tokenizer)
        if fills_in is None:
            raise unsupported(param, f"{param}: this model has no tokens for filling in")
        if not isinstance(before, str):
            raise invalid(param, f"{param} needs a prompt that is text, not token ids")
        refuse_too_long(model.tokenizer, [before, suffix], context)
        return fills_in.prompt(model.tokenizer, before, suffix)

    def _adapted(self, served: ServedModel, model: Model) -> dict[str, Any]:
        """Return the arguments, with the adapters of the request's own list, or that of the model's
        name or preset, or else those of all requests.
        """
        if "lora" in self.arguments:
            found = dict(self.arguments)
            found["adapters"] = by_name("lora", found.pop("lora"), model._pipeline.adapter_numbers)
            return found
        adapters = model._pipeline.adapters
        adapter = (self.model or "").rpartition(":")[2]
        if adapter not in adapters or adapter == self.model:
            adapter = served.preset.adapter
            if "adapters" in self.arguments or not (adapter or served.adapter_scales):
                return self.arguments
        return {**self.arguments, "adapters": adapter or served.adapter_scales}

    def failure(self, error: Exception, number: int = 0) -> ApiError:
        """Return how an exception is answered; `number`: that of the text that it is about."""
        name = self.prompt_name
        prompt = name if isinstance(name, str) else name(number)
        found = api_error(error, names=self.names, prompt=prompt)
        if self._n_added:
            found.message = _NUMBERED.sub(self._as_sent, found.message)
        return found

    def _as_sent(self, place: re.Match[str]) -> str:
        """Return the place of a message as the client has numbered it."""
        index = int(place[1])
        if index < self._added_at:
            return place[0]
        if index < self._added_at + self._n_added:
            return f"the model's {place[0]}"
        return f"messages[{index - self._n_added}]"

    def fitted(self, served: ServedModel, model: Model) -> dict[str, Any]:
        """Return arguments that the model can follow; what it cannot is named in the headers."""
        found = self._adapted(served, model)
        preset = served.preset
        if preset.system or preset.messages:
            messages = found["messages"]
            at, added = preset.added(messages)
            self._added_at, self._n_added = at, len(added)
            if added:
                found = {**found, "messages": [*messages[:at], *added, *messages[at:]]}
        if "thinking" in found or "thinking_budget" in found:
            found, lost = with_wished_thinking(found, model, self.names)
            self.ignore(lost)
        if self.unread:
            template = template_of(model).source
            self.ignore(each for each in self.unread if each.rpartition(".")[2] not in template)
        return found


def _size(prompt: Any) -> int:
    """Return the characters of a prompt, about."""
    if isinstance(prompt, str):
        return len(prompt)
    return sum(len(each) if isinstance(each, str) else 1 for each in prompt)


def text_request(
    table: Mapping[str, Field], body: Mapping[str, Any], *, is_stream: bool = False
) -> TextRequest:
    """Read a request; `is_stream`: where it does not say. ApiError as `read`."""
    found = read(table, body)
    options, ignored = found.options, found.ignored
    unread: list[str] = []
    for name in [name for name in options if name.startswith((WITHOUT_EFFECT, UNREAD))]:
        (unread if name.startswith(UNREAD) else ignored).extend(options.pop(name))
    return TextRequest(
        model=options.pop("model", None),
        keep_seconds=options.pop("keep_seconds", None),
        is_stream=options.pop("stream", is_stream),
        arguments=options,
        names=found.names,
        ignored=ignored,
        headers=ignored_header(ignored) if ignored else {},
        unread=unread,
    )
