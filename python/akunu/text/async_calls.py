"""The calls of a model that coroutines await: twins of `generate`, `chat` and `logits`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, cast, overload

from akunu.common.checks import flag, priority_of
from akunu.common.progress_line import told
from akunu.common.side_by_side import is_batch
from akunu.options.text_options import (
    ChatArguments,
    SamplingOptions,
    TextArguments,
    TextOptions,
    ToolsArgument,
    lists_sampling_options,
    sampling_options,
)
from akunu.text.batches import refuse_for_several
from akunu.text.call_steps import CallSteps
from akunu.text.submit import adapter_shares, answers, checked_n, prepared_answers

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from akunu import _core
    from akunu.embedding.reranking import Ranked
    from akunu.model import Model
    from akunu.session import Session
    from akunu.text.async_text_stream import AsyncTextStream
    from akunu.text.batches import Prepared
    from akunu.text.completion import Completion
    from akunu.text.render import ChatRequest
    from akunu.text.reply_decoder import ReplyDecoder
    from akunu.text.wakers import Wakers

    Ruled: TypeAlias = tuple[Prepared, _core.Constraint | None]

Result = TypeVar("Result")

# What takes longer than about a millisecond to render and to split into tokens is done in a thread:
# characters of text, or token ids.
_QUICK_CHARACTERS = 2_000
_QUICK_TOKENS = 10_000
_OF_TEXTS = {"role", "content"}  # what else a message has, calls of tools say, may be long


class AsyncCalls(CallSteps):
    """What `Model` has for coroutines."""

    @cached_property
    def _wakers(self) -> Wakers:
        from akunu.text.wakers import Wakers  # asyncio is for who has coroutines

        return Wakers()

    @overload
    def generate_async(  # type: ignore[overload-overlap]  # a str is no list of prompts
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Coroutine[Any, Any, Completion]: ...

    @overload
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> AsyncTextStream: ...

    @overload
    def generate_async(  # type: ignore[overload-overlap]  # a str is no list of prompts
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: bool,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream: ...

    @overload
    def generate_async(
        self,
        prompt: Sequence[str | Sequence[SupportsIndex]],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Coroutine[Any, Any, list[Completion]]: ...

    @overload
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        n: int,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Coroutine[Any, Any, list[Completion]]: ...

    @overload
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        n: int,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> list[AsyncTextStream]: ...

    @lists_sampling_options
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex] | Sequence[str | Sequence[SupportsIndex]],
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Any,
    ) -> (
        Coroutine[Any, Any, Completion | list[Completion]] | AsyncTextStream | list[AsyncTextStream]
    ):
        """Await the text that goes on from `prompt`, or with `stream` iterate over its pieces.

        The arguments, the text and the errors are those of `generate`; errors of the prompt and of
        the text's form are raised when it is awaited. The event loop (asyncio's or one like it, as
        uvloop) goes on meanwhile, and no thread waits. Cancelling the task, or `aclose()` of the
        stream, cancels the generation within one step of the engine.

        >>> import akunu, asyncio
        >>> async def both(model: akunu.Model) -> list[akunu.Completion]:
        ...     texts = [model.generate_async(prompt, max_tokens=4) for prompt in ("One", "Two")]
        ...     return await asyncio.gather(*texts)
        >>> with akunu.load() as model:
        ...     asyncio.run(both(model))[0] == model.generate("One", max_tokens=4)
        True
        """
        chosen = sampling_options(options, sampling)
        native = self._open()
        flag("stream", stream)
        begin = partial(self._begin, native, priority=priority_of(priority))
        if is_batch(prompt):
            refuse_for_several(stream, n)
            prepare_texts = partial(self._prepare_all, "prompt", prompt, chosen)
            return self._all(native, "prompt", lambda _: prepare_texts(), chosen, begin)
        is_quick = chosen.form is None and self._is_quick(prompt)
        prepare = partial(self._prepare_text, prompt, self._room(chosen))
        return self._answered(native, begin, lambda _: prepare(), chosen, n, stream, is_quick)

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[False] = False,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, Completion]: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[True],
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> AsyncTextStream: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: bool,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Sequence[Mapping[str, Any]]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[False] = False,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, list[Completion]]: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[False] = False,
        n: int,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, list[Completion]]: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[True],
        n: int,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> list[AsyncTextStream]: ...

    @lists_sampling_options
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]] | Sequence[Sequence[Mapping[str, Any]]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        tool_choice: str | Mapping[str, Any] | None = "auto",
        parallel_tool_calls: bool = True,
        thinking: bool | str | None = None,
        thinking_budget: int | None = None,
        template_variables: Mapping[str, Any] | None = None,
        stream: bool = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Any,
    ) -> (
        Coroutine[Any, Any, Completion | list[Completion]] | AsyncTextStream | list[AsyncTextStream]
    ):
        """Await the model's reply to a conversation, or with `stream` iterate over its pieces.

        The arguments, the reply and the errors are those of `chat`; the rest is as for
        `generate_async`.

        >>> import akunu, asyncio
        >>> messages = [{"role": "user", "content": "Hello!"}]
        >>> with akunu.load() as model:
        ...     reply = asyncio.run(model.chat_async(messages, max_tokens=4))
        ...     reply == model.chat(messages, max_tokens=4)
        True
        """
        chosen = sampling_options(options, sampling)
        native = self._open()
        from akunu.text.render import chat_requests

        requests = chat_requests(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            thinking=thinking,
            thinking_budget=thinking_budget,
            template_variables=template_variables,
        )
        flag("stream", stream)
        begin = partial(self._begin, native, priority=priority_of(priority))
        if isinstance(requests, list):
            refuse_for_several(stream, n)
            each_of = requests

            def prepare_all(options: TextOptions) -> list[Prepared]:
                return self._prepare_all(
                    "messages", [_with_form(one, options) for one in each_of], options
                )

            return self._all(native, "messages", prepare_all, chosen, begin)
        has_grammar = chosen.form is not None or thinking_budget is not None
        is_quick = not has_grammar and self._renders_quickly(messages, tools)
        request = requests

        def prepare(options: TextOptions) -> Prepared:
            return self._prepare_chat(_with_form(request, options), self._room(options))

        return self._answered(native, begin, prepare, chosen, n, stream, is_quick)

    async def load_session_async(self, path: str | os.PathLike[str]) -> Session:
        """Await the session of a file; argument, result and errors are those of `load_session`.

        The file is read in a thread: the event loop goes on meanwhile.
        """
        load = cast("Model", self).load_session
        return await result_of(partial(load, path), is_quick=False)

    async def logits_async(
        self,
        tokens: Sequence[SupportsIndex],
        *,
        last: int | None = None,
        priority: int = 0,
        adapters: str | Mapping[str, float] | None = None,
    ) -> NDArray[np.float32]:
        """Await the logits after each token; arguments, result and errors are those of `logits`.

        >>> import akunu, asyncio
        >>> with akunu.load() as model:
        ...     rows = asyncio.run(model.logits_async([1, 2, 3]))
        >>> rows.shape[0]
        3
        """
        ids, first = self._rows(tokens, last)
        native = self._open()
        shares = adapter_shares(native, adapters)
        if not ids.size:
            return native.logits(ids)
        pending = native.start_logits(ids, first, priority_of(priority), shares)
        await self._done(pending)
        return pending.take()

    async def embed_async(
        self,
        texts: str | Sequence[str] | Sequence[Sequence[SupportsIndex]],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        dimensions: int | None = None,
        truncate: bool | str = False,
        batch_rows: int | None = None,
        precision: str = "float32",
        priority: int = 0,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Any:
        """Await the vectors of texts; arguments, result and errors are those of `embed`."""
        with told(progress, "embedding") as count:
            job = self._embedding_job(
                [texts] if isinstance(texts, str) else texts,
                (prompt_name, prompt),
                count,
                pooling=pooling,
                normalize=normalize,
                dimensions=dimensions,
                truncate=truncate,
                precision=precision,
                batch_rows=batch_rows,
                priority=priority,
            )
            await job.work_async(self._done)
        return job.result[0] if isinstance(texts, str) else job.result

    async def rank_async(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        *,
        normalize: bool | None = None,
        instruction: str | None = None,
        truncate: bool = False,
        priority: int = 0,
        progress: bool | Callable[[int, int], None] = False,
    ) -> list[Ranked]:
        """Await the documents, best first; arguments, result and errors are those of `rank`."""
        with told(progress, "ranking") as count:
            job = self._rank_job(
                query,
                documents,
                top_k=top_k,
                normalize=normalize,
                instruction=instruction,
                truncate=truncate,
                priority=priority,
                progress=count,
            )
            await job.work_async(self._done)
        return job.result

    async def _done(self, pending: _core.PendingLogits) -> None:
        """Wait until what is pending can be taken; who stops waiting cancels it."""
        place = self._wakers.join(pending)
        try:
            while not pending.is_done():
                await place.news()
        finally:
            pending.cancel()
            place.leave()

    def _answered(
        self,
        native: _core.NativeModel,
        begin: Callable[..., ReplyDecoder],
        prepare: Callable[[TextOptions], Prepared],
        options: TextOptions,
        n: int | None,
        stream: bool,
        is_quick: bool,
    ) -> (
        Coroutine[Any, Any, Completion | list[Completion]] | AsyncTextStream | list[AsyncTextStream]
    ):
        from akunu.text.async_text_stream import AsyncTextStream, streams_begun_together

        n = checked_n(n, self._max_waiting)

        def ruled() -> tuple[TextOptions, list[Ruled]]:
            compiled = self._compiled(options)
            prepared = prepared_answers(partial(prepare, compiled), n or 1)
            return compiled, [(each, self._constraint_of(compiled, each)) for each in prepared]

        def begin_ruled(
            options: SamplingOptions, text: Ruled, shares_with: _core.Generation | None
        ) -> ReplyDecoder:
            return begin(options, text[0], shares_with, constraint=text[1])

        async def begun() -> list[ReplyDecoder]:
            compiled, texts = await result_of(ruled, is_quick and options.dry_multiplier == 0)
            if n is None:
                return [begin_ruled(compiled, texts[0], None)]
            return answers(begin_ruled, compiled, texts)

        async def first() -> ReplyDecoder:
            return (await begun())[0]

        if n is None:
            pieces = AsyncTextStream(native, self._wakers, first)
            return pieces if stream else pieces.complete()
        if stream:
            return streams_begun_together(native, self._wakers, begun, n)
        return self._all_answers(native, begun)

    async def _all_answers(
        self, native: _core.NativeModel, begin: Callable[[], Awaitable[list[ReplyDecoder]]]
    ) -> list[Completion]:
        from akunu.text.async_batches import generate_all_async

        begun = await begin()
        try:
            return await generate_all_async(native, self._wakers, "answer", begun, _as_it_is)
        finally:
            for decoder in begun:
                decoder.cancel()

    async def _all(
        self,
        native: _core.NativeModel,
        name: str,
        prepare: Callable[[TextOptions], list[Prepared]],
        options: TextOptions,
        begin: Callable[..., ReplyDecoder],
    ) -> list[Completion]:
        from akunu.text.async_batches import generate_all_async

        def prepared() -> tuple[TextOptions, list[Prepared]]:
            compiled = self._compiled(options)
            return compiled, prepare(compiled)

        compiled, prompts = await result_of(prepared, is_quick=False)

        async def begin_one(prompt: Prepared) -> ReplyDecoder:
            has_grammar = compiled.structure is not None or prompt.grammar is not None
            rule = partial(self._constraint_of, compiled, prompt)
            constraint = await result_of(rule, is_quick=not has_grammar)
            return begin(compiled, prompt, constraint=constraint)

        return await generate_all_async(native, self._wakers, name, prompts, begin_one)

    def _compiled(self, options: TextOptions) -> TextOptions:
        """Make what takes long: the form of the text, and the table of DRY's breakers."""
        if options.dry_multiplier > 0 and options.dry_sequence_breakers:
            from akunu.options.dry_breakers import breaker_words

            breaker_words(self._tokenizer, options.dry_sequence_breakers)
        return options.compiled()

    def _is_quick(self, prompt: Any) -> bool:
        """Whether a prompt takes no longer than the loop may be kept."""
        if isinstance(prompt, str):
            return self._tokenizer._is_built and len(prompt) <= _QUICK_CHARACTERS
        return not isinstance(prompt, Sequence) or len(prompt) <= _QUICK_TOKENS

    def _renders_quickly(self, messages: Sequence[Any], tools: object) -> bool:
        """Whether a conversation is short, texts alone, and its template was used before."""
        if not (self._tokenizer._is_built and "_chat_template" in vars(self)):
            return False
        if tools or not isinstance(messages, (list, tuple)):
            return False
        contents = [
            each.get("content")
            for each in messages
            if isinstance(each, Mapping) and each.keys() <= _OF_TEXTS
        ]
        texts = [content for content in contents if isinstance(content, str)]
        characters = 50 * len(texts) + sum(map(len, texts))
        return len(texts) == len(messages) and characters <= _QUICK_CHARACTERS


def _with_form(request: ChatRequest, options: TextOptions) -> ChatRequest:
    """Return the request of an answer that has the form of these options."""
    return replace(request, form=options.structure.grammar) if options.structure else request


async def _as_it_is(decoder: ReplyDecoder) -> ReplyDecoder:
    return decoder


async def result_of(function: Callable[[], Result], is_quick: bool) -> Result:
    """Call a function, where it takes long in a thread of the loop's own executor.

    Cancelling it ends the grammars that it compiles in other processes.
    """
    import asyncio

    from akunu.text.wakers import running_loop

    loop = running_loop()
    if is_quick:
        return function()
    try:
        return await loop.run_in_executor(None, copy_context().run, function)
    except asyncio.CancelledError:  # which the thread does not hear of
        from akunu.grammar.separate_process import cancel_compiling

        cancel_compiling()
        raise
