"""The calls of a model that coroutines await: twins of `generate`, `chat` and `logits`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, overload

from akunu._batches import is_batch, refuse_stream
from akunu.options import (
    ChatArguments,
    SamplingOptions,
    TextArguments,
    TextOptions,
    flag,
    lists_sampling_options,
    priority_of,
    sampling_options,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from akunu import _core
    from akunu._batches import Prepared
    from akunu._reply_decoder import ReplyDecoder
    from akunu._wakers import Wakers
    from akunu.async_text_stream import AsyncTextStream
    from akunu.chat_request import ChatRequest
    from akunu.completion import Completion
    from akunu.tokenizer import Tokenizer

Result = TypeVar("Result")

# What takes longer than about a millisecond to render and to split into tokens is done in a thread:
# characters of text, or token ids.
_QUICK_CHARACTERS = 2_000
_QUICK_TOKENS = 10_000


class AsyncCalls:
    """What `Model` has for coroutines."""

    _tokenizer: Tokenizer

    @cached_property
    def _wakers(self) -> Wakers:
        from akunu._wakers import Wakers  # asyncio is for who has coroutines

        return Wakers()

    if TYPE_CHECKING:

        def _open(self) -> _core.NativeModel: ...
        def _prepare_grammars(self) -> None: ...
        def _prepare_text(self, prompt: Any) -> Prepared: ...
        def _prepare_chat(self, request: ChatRequest) -> Prepared: ...
        def _prepare_all(self, name: str, given: Sequence[Any]) -> list[Prepared]: ...
        def _begin(
            self,
            native: _core.NativeModel,
            options: SamplingOptions,
            prepared: Prepared,
            shares_with: _core.Generation | None = None,
            *,
            priority: int = 0,
        ) -> ReplyDecoder: ...
        def _rows(
            self, tokens: Sequence[SupportsIndex], last: int | None
        ) -> tuple[NDArray[np.uint32], int]: ...

    @overload
    def generate_async(  # type: ignore[overload-overlap]  # a str is no list of prompts
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
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
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Coroutine[Any, Any, list[Completion]]: ...

    @lists_sampling_options
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex] | Sequence[str | Sequence[SupportsIndex]],
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        priority: int = 0,
        **sampling: Any,
    ) -> Coroutine[Any, Any, Completion | list[Completion]] | AsyncTextStream:
        """Await the text that goes on from `prompt`, or with `stream` iterate over its pieces.

        The arguments, the text and the errors are those of `generate`; errors of the prompt are
        raised when it is awaited. The event loop (asyncio's or one like it, as uvloop) goes on
        meanwhile, and no thread waits. Cancelling the task, or `aclose()` of the stream, cancels
        the generation within one step of the engine.

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
        begin = partial(self._begin, native, chosen, priority=priority_of(priority))
        if is_batch(prompt):
            refuse_stream(stream)
            return self._all(native, "prompt", prompt, begin)
        prepare = self._with_vocabulary(partial(self._prepare_text, prompt), chosen)
        is_quick = chosen.structure is None and self._is_quick(prompt)
        return self._driven(native, prepare, begin, stream, is_quick)

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        stream: Literal[False] = False,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, Completion]: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        stream: Literal[True],
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> AsyncTextStream: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        stream: bool,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream: ...

    @overload
    def chat_async(
        self,
        messages: Sequence[Sequence[Mapping[str, Any]]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stream: Literal[False] = False,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, list[Completion]]: ...

    @lists_sampling_options
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]] | Sequence[Sequence[Mapping[str, Any]]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = "auto",
        parallel_tool_calls: bool = True,
        thinking: bool | str | None = None,
        thinking_budget: int | None = None,
        template_variables: Mapping[str, Any] | None = None,
        stream: bool = False,
        priority: int = 0,
        **sampling: Any,
    ) -> Coroutine[Any, Any, Completion | list[Completion]] | AsyncTextStream:
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
        from akunu.chat_request import chat_requests

        requests = chat_requests(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            thinking=thinking,
            thinking_budget=thinking_budget,
            template_variables=template_variables,
        )
        begin = partial(self._begin, native, chosen, priority=priority_of(priority))
        if isinstance(requests, list):
            refuse_stream(stream)
            return self._all(native, "messages", requests, begin)
        prepare = self._with_vocabulary(partial(self._prepare_chat, requests), chosen)
        is_quick = chosen.structure is None and self._renders_quickly(messages, tools)
        return self._driven(native, prepare, begin, stream, is_quick)

    async def logits_async(
        self, tokens: Sequence[SupportsIndex], *, last: int | None = None, priority: int = 0
    ) -> NDArray[np.float32]:
        """Await the logits after each token; arguments, result and errors are those of `logits`.

        >>> import akunu, asyncio
        >>> with akunu.load() as model:
        ...     rows = asyncio.run(model.logits_async([1, 2, 3]))
        >>> rows.shape[0]
        3
        """
        ids, first = self._rows(tokens, last)
        if not ids.size:
            return self._open().logits(ids)
        pending = self._open().start_logits(ids, first, priority_of(priority))
        place = self._wakers.join(pending)
        try:
            while not pending.is_done():
                await place.news()
        finally:
            pending.cancel()
            place.leave()
        return pending.take()

    def _with_vocabulary(
        self, prepare: Callable[[], Prepared], options: TextOptions
    ) -> Callable[[], Prepared]:
        """Return what prepares a text, and the vocabulary where it has a form."""
        if options.structure is None:
            return prepare

        def prepared() -> Prepared:
            self._prepare_grammars()
            return prepare()

        return prepared

    def _driven(
        self,
        native: _core.NativeModel,
        prepare: Callable[[], Prepared],
        begin: Callable[[Prepared], ReplyDecoder],
        stream: bool,
        is_quick: bool,
    ) -> Coroutine[Any, Any, Completion | list[Completion]] | AsyncTextStream:
        from akunu.async_text_stream import AsyncTextStream

        flag("stream", stream)

        async def begun() -> ReplyDecoder:
            return begin(await _result_of(prepare, is_quick))

        pieces = AsyncTextStream(native, self._wakers, begun)
        return pieces if stream else pieces.complete()

    async def _all(
        self,
        native: _core.NativeModel,
        name: str,
        given: Any,
        begin: Callable[[Prepared], ReplyDecoder],
    ) -> list[Completion]:
        from akunu._async_batches import generate_all_async

        prompts = await _result_of(partial(self._prepare_all, name, given), is_quick=False)
        return await generate_all_async(native, self._wakers, name, prompts, begin)

    def _is_quick(self, prompt: Any) -> bool:
        """Whether a prompt takes no longer than the loop may be kept."""
        if isinstance(prompt, str):
            return self._tokenizer._is_built and len(prompt) <= _QUICK_CHARACTERS
        return not isinstance(prompt, Sequence) or len(prompt) <= _QUICK_TOKENS

    def _renders_quickly(self, messages: Sequence[Any], tools: object) -> bool:
        """Whether a conversation is short, and its template was used before."""
        if not (self._tokenizer._is_built and "_chat_template" in vars(self)):
            return False
        if tools or not isinstance(messages, (list, tuple)):
            return False
        contents = [each.get("content") for each in messages if isinstance(each, Mapping)]
        texts = [content for content in contents if isinstance(content, str)]
        characters = 50 * len(texts) + sum(map(len, texts))
        return len(texts) == len(messages) and characters <= _QUICK_CHARACTERS


async def _result_of(function: Callable[[], Result], is_quick: bool) -> Result:
    """Call a function, where it takes long in a thread of the loop's own executor."""
    from akunu._wakers import running_loop

    loop = running_loop()
    return function() if is_quick else await loop.run_in_executor(None, function)
