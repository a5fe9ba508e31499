"""From requests to replies: every text of a model goes through here, blocking or awaited.

Request (request.py) -> Rendered (render.py) -> Prompt (encode.py) -> Submitted (submit.py) ->
pieces (deltas.py) -> Completion (completion.py).

Blocking calls wait on the engine and on no event loop, so they work in any thread, and inside a
running loop as well. Awaited ones take the same steps; what takes long happens in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from akunu import _core
from akunu.common.checks import flag
from akunu.errors import AkunuError
from akunu.grammar import vocabulary
from akunu.grammar.separate_process import compiling_here
from akunu.grammar.structure import ruled
from akunu.images.reader import ImageReader
from akunu.model_facts import no_chat
from akunu.options.dry_breakers import breaker_words
from akunu.options.text_options import TextOptions
from akunu.text.async_batches import generate_all_async
from akunu.text.async_text_stream import AsyncTextStream, streams_begun_together
from akunu.text.batches import generate_all, prompts_of
from akunu.text.completion import Completion
from akunu.text.context_overflow import GOES_ON
from akunu.text.request import Request, refuse_for_several
from akunu.text.submit import answers, checked_n, submit
from akunu.text.text_stream import TextStream
from akunu.text.wakers import Wakers, result_of, running_loop
from akunu.tokenizers.token_ids import token_ids

if TYPE_CHECKING:
    from akunu.grammar import Grammar
    from akunu.templates.chat_template import ChatTemplate
    from akunu.text.encode import Prompt
    from akunu.text.reply_decoder import ReplyDecoder
    from akunu.tokenizers.tokenizer import Tokenizer

# Rendering and tokenizing that takes longer than about a millisecond runs in a thread:
# characters of text, or token ids.
_QUICK_CHARACTERS = 2_000
_QUICK_TOKENS = 10_000
_OF_TEXTS = {"role", "content"}  # what else a message has, calls of tools say, may be long


class Pipeline:
    """The steps from a request to its reply, for one model."""

    def __init__(
        self, native: _core.NativeModel, tokenizer: Tokenizer, path: Path, max_waiting: int
    ) -> None:
        """`path`: the model's file. `max_waiting`: requests that it lets wait."""
        self.native: _core.NativeModel | None = native
        self.tokenizer = tokenizer
        self.context = native.context
        self.find_adapters()
        self.sampling_defaults: Mapping[str, Any] = {}
        self.vocab_size: int = native.config["vocab_size"]
        self._path = path
        self._max_waiting = max_waiting
        self._is_building = Lock()  # held while the grammar vocabulary is built

    def open(self) -> _core.NativeModel:
        """Return the engine's model; AkunuError where it is closed."""
        native = self.native
        if native is None:
            raise AkunuError("the model is closed; load it again")
        return native

    def find_adapters(self) -> None:
        """Ask the engine which adapters are loaded."""
        # By their numbers; "" is a number that an unloaded adapter has left.
        self.adapter_numbers: tuple[str, ...] = tuple(self.open().adapters)
        self.adapters = tuple(name for name in self.adapter_numbers if name)

    @cached_property
    def wakers(self) -> Wakers:
        """What wakes coroutines."""
        return Wakers()

    @cached_property
    def template(self) -> ChatTemplate:
        """The model's chat template; UnsupportedModelError where it has none."""
        from akunu.templates.chat_template import ChatTemplate  # Jinja is for conversations

        native = self.open()
        if native.embedding is not None and not native.embedding["classifies"]:
            raise no_chat(native.config["architecture"])
        return ChatTemplate.of(self.tokenizer)

    @cached_property
    def image_reader(self) -> ImageReader | None:
        """What reads the images of messages; None of a model that reads none."""
        native = self.open()
        if native.images is None:
            return None
        return ImageReader(native, self._path, self.tokenizer)

    # --- the steps -------------------------------------------------------------------------------

    def prompt(self, request: Request, context: int | None = None) -> Prompt:
        """Render and encode a request; raises ArgumentError, and ContextOverflowError as `render`.

        `context`: tokens that it may surely not exceed; None: it may have any length.
        """
        from akunu.text.encode import chat_prompt, text_prompt  # Jinja is for conversations

        if request.messages is None:
            return text_prompt(request.prompt, self.tokenizer, self.vocab_size, context)
        return chat_prompt(
            request,
            self.tokenizer,
            self.template,
            context,
            self.image_reader,
            self._path.name,
            self.vocab_size,
        )

    def room(self, options: TextOptions) -> int | None:
        """Return the tokens that a prompt may have; None: a longer one is shortened."""
        return None if options.context_overflow in GOES_ON else self.context

    def constraint(self, options: TextOptions, prompt: Prompt) -> _core.Constraint | None:
        """Return what rules one text. It may take long, and any thread may do it."""
        grammar = prompt.rendered.grammar
        if options.structure is not None:
            grammar = ruled(options.structure, prompt.rendered)
        return None if grammar is None else self._compiled_grammar(grammar)

    def begin(
        self,
        options: TextOptions,
        prompt: Prompt,
        constraint: _core.Constraint | None,
        priority: int = 0,
        shares_with: _core.Generation | None = None,
    ) -> ReplyDecoder:
        """Have the engine begin a text; the driver of the decoder takes what comes.

        `constraint`: what the step of that name returned.
        """
        submitted = submit(
            self.open(),
            self.tokenizer,
            prompt,
            options,
            priority=priority,
            shares_with=shares_with,
            constraint=constraint,
        )
        return submitted.decoder(self.tokenizer)

    # --- blocking calls --------------------------------------------------------------------------

    def run(self, request: Request | list[Request], n: int | None, stream: bool) -> Any:
        """Return the completion of a request, its stream, or lists of these.

        `n`: how many answers, as a list; None is one that is not in a list.
        """
        if type(stream) is not bool:
            flag("stream", stream)
        native = self.open()
        if isinstance(request, list):
            refuse_for_several(stream, n)
            return self._run_all(request)
        n = checked_n(n, self._max_waiting)
        request = request.compiled()
        options, priority = request.options, request.priority
        prompt = self.prompt(request, self.room(options))
        if n is None:
            decoder = self.begin(options, prompt, self.constraint(options, prompt), priority)
            pieces = TextStream(native, decoder)
            return pieces if stream else pieces.complete()

        def begin(one: TextOptions, number: int, first: _core.Generation | None) -> ReplyDecoder:
            return self.begin(one, prompt, self.constraint(one, prompt), priority, first)

        begun = answers(begin, options, n)
        streams = [TextStream(native, decoder) for decoder in begun]
        if stream:
            return streams
        try:
            return generate_all("answer", begun, lambda decoder: decoder)
        finally:
            for each in streams:
                each.close()

    def _run_all(self, requests: Sequence[Request]) -> list[Completion]:
        options = requests[0].options.compiled()
        prompts = self._prompts(requests, options)

        def begin(prompt: Prompt) -> ReplyDecoder:
            constraint = self.constraint(options, prompt)
            return self.begin(options, prompt, constraint, requests[0].priority)

        return generate_all(_name(requests), prompts, begin)

    def _prompts(self, requests: Sequence[Request], options: TextOptions) -> list[Prompt]:
        name, context = _name(requests), self.room(options)
        compiled = [replace(each, options=options) for each in requests]
        return prompts_of(name, compiled, partial(self.prompt, context=context), context)

    # --- awaited calls ---------------------------------------------------------------------------

    def run_async(self, request: Request | list[Request], n: int | None, stream: bool) -> Any:
        """Return what `run` does, to be awaited; a stream begins when it is used."""
        if type(stream) is not bool:
            flag("stream", stream)
        native = self.open()
        if isinstance(request, list):
            refuse_for_several(stream, n)
            return self._run_all_async(native, request)
        n = checked_n(n, self._max_waiting)
        if n is None:
            pieces = AsyncTextStream(native, self.wakers, partial(self._begun, request))
            return pieces if stream else pieces.complete()
        begin = partial(self._answers_begun, request, n)
        if stream:
            return streams_begun_together(native, self.wakers, begin, n)
        return self._answers_async(native, begin)

    async def _begun(self, request: Request) -> ReplyDecoder:
        options, prompt, (constraint,) = await self._ready(request, 1)
        return self.begin(options, prompt, constraint, request.priority)

    async def _answers_begun(self, request: Request, n: int) -> list[ReplyDecoder]:
        options, prompt, constraints = await self._ready(request, n)

        def begin(one: TextOptions, number: int, first: _core.Generation | None) -> ReplyDecoder:
            return self.begin(one, prompt, constraints[number], request.priority, first)

        return answers(begin, options, n)

    async def _ready(
        self, request: Request, n: int
    ) -> tuple[TextOptions, Prompt, list[_core.Constraint | None]]:
        """Return what `begin` takes for n answers; where that takes long, a thread makes it."""
        running_loop()
        if self.is_quick(request):
            return self._made_ready(request, n)
        return await result_of(partial(self._made_ready, request, n))

    def _made_ready(
        self, request: Request, n: int
    ) -> tuple[TextOptions, Prompt, list[_core.Constraint | None]]:
        options = self._compiled(request.options)
        if options is not request.options:
            request = replace(request, options=options)
        prompt = self.prompt(request, self.room(options))
        return options, prompt, [self.constraint(options, prompt) for _ in range(n)]

    async def _answers_async(self, native: _core.NativeModel, begin: Any) -> list[Completion]:
        begun = await begin()

        async def as_it_is(decoder: ReplyDecoder) -> ReplyDecoder:
            return decoder

        try:
            return await generate_all_async(native, self.wakers, "answer", begun, as_it_is)
        finally:
            for decoder in begun:
                decoder.cancel()

    async def _run_all_async(
        self, native: _core.NativeModel, requests: Sequence[Request]
    ) -> list[Completion]:
        def ready() -> tuple[TextOptions, list[Prompt]]:
            options = self._compiled(requests[0].options)
            return options, self._prompts(requests, options)

        options, prompts = await result_of(ready)

        async def begin(prompt: Prompt) -> ReplyDecoder:
            constraint = None
            if options.structure is not None or prompt.rendered.grammar is not None:
                constraint = await result_of(partial(self.constraint, options, prompt))
            return self.begin(options, prompt, constraint, requests[0].priority)

        return await generate_all_async(native, self.wakers, _name(requests), prompts, begin)

    def _compiled(self, options: TextOptions) -> TextOptions:
        """Make what takes long: the form of the text, and the table of DRY's breakers."""
        if options.dry_multiplier > 0 and options.dry_sequence_breakers:
            breaker_words(self.tokenizer, options.dry_sequence_breakers)
        return options.compiled()

    # --- what takes long -------------------------------------------------------------------------

    def is_quick(self, request: Request) -> bool:
        """Whether a prompt takes no longer than the event loop may be kept."""
        if request.options.form is not None or request.options.dry_multiplier != 0:
            return False
        if request.messages is None:
            return self.encodes_quickly(request.prompt)
        if request.thinking_budget is not None or request.tools:
            return False
        return self._renders_quickly(request.messages)

    def encodes_quickly(self, prompt: Any) -> bool:
        """Whether a text or token ids become a prompt at once."""
        if isinstance(prompt, str):
            return self.tokenizer._is_built and len(prompt) <= _QUICK_CHARACTERS
        return not isinstance(prompt, Sequence) or len(prompt) <= _QUICK_TOKENS

    def _renders_quickly(self, messages: Any) -> bool:
        """Whether a conversation is short, texts alone, and its template was used before."""
        if not (self.tokenizer._is_built and "template" in self.__dict__):
            return False
        if not isinstance(messages, (list, tuple)):
            return False
        characters = 0
        for each in messages:
            if not isinstance(each, Mapping) or not each.keys() <= _OF_TEXTS:
                return False
            content = each.get("content")
            if not isinstance(content, str):
                return False
            characters += 50 + len(content)
        return characters <= _QUICK_CHARACTERS

    def _compiled_grammar(self, grammar: Grammar) -> _core.Constraint:
        if self.tokenizer.opens_with_space:
            grammar = vocabulary.ruling_words(grammar)
        if grammar.after is not None:
            for each in (*grammar.after.until, grammar.after.then):
                if not isinstance(each, str):
                    token_ids(each, self.vocab_size, "a FreeText's tokens")
        needs_words = vocabulary.needs_vocabulary(grammar)
        words = self._grammar_vocabulary if needs_words else None
        with compiling_here():
            return vocabulary.constraint_of(words, grammar)

    @property
    def _grammar_vocabulary(self) -> _core.GrammarVocabulary:
        with self._is_building:  # coroutines get here in several threads at once
            return self._built_vocabulary

    @cached_property
    def _built_vocabulary(self) -> _core.GrammarVocabulary:
        return vocabulary.grammar_vocabulary(self.tokenizer, self.vocab_size)


def _name(requests: Sequence[Request]) -> str:
    """Return what errors call one of several requests."""
    return "prompt" if requests[0].messages is None else "messages"
