"""The calls of a model that coroutines await: twins of `generate`, `chat` and `logits`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, overload

from akunu.options import (
    ChatArguments,
    SamplingArguments,
    SamplingOptions,
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
        def _begin_text(
            self,
            native: _core.NativeModel,
            prompt: str | Sequence[SupportsIndex],
            options: SamplingOptions,
            priority: int,
        ) -> ReplyDecoder: ...
        def _begin_reply(
            self,
            native: _core.NativeModel,
            request: ChatRequest,
            options: SamplingOptions,
            priority: int,
        ) -> ReplyDecoder: ...
        def _rows(
            self, tokens: Sequence[SupportsIndex], last: int | None
        ) -> tuple[NDArray[np.uint32], int]: ...

    @overload
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        priority: int = 0,
        **sampling: Unpack[SamplingArguments],
    ) -> Coroutine[Any, Any, Completion]: ...

    @overload
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        priority: int = 0,
        **sampling: Unpack[SamplingArguments],
    ) -> AsyncTextStream: ...

    @overload
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: bool,
        priority: int = 0,
        **sampling: Unpack[SamplingArguments],
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream: ...

    @lists_sampling_options
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        priority: int = 0,
        **sampling: Any,
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream:
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
        begin = partial(self._begin_text, native, prompt, chosen, priority_of(priority))
        limit = _QUICK_CHARACTERS if isinstance(prompt, str) else _QUICK_TOKENS
        return self._driven(native, begin, stream, lambda: _length(prompt) <= limit)

    @overload
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
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
        tools: Sequence[Mapping[str, Any]] | None = None,
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
        tools: Sequence[Mapping[str, Any]] | None = None,
        stream: bool,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream: ...

    @lists_sampling_options
    def chat_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        thinking: bool | str | None = None,
        template_variables: Mapping[str, Any] | None = None,
        stream: bool = False,
        priority: int = 0,
        **sampling: Any,
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream:
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
        from akunu.chat_request import ChatRequest

        request = ChatRequest(
            messages=messages,
            tools=tools,
            thinking=thinking,
            template_variables=template_variables,
        )
        begin = partial(self._begin_reply, native, request, chosen, priority_of(priority))
        return self._driven(native, begin, stream, lambda: self._renders_quickly(messages, tools))

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

    def _driven(
        self,
        native: _core.NativeModel,
        begin: Callable[[], ReplyDecoder],
        stream: bool,
        is_quick: Callable[[], bool],
    ) -> Coroutine[Any, Any, Completion] | AsyncTextStream:
        from akunu.async_text_stream import AsyncTextStream

        flag("stream", stream)
        quick = self._tokenizer._is_built and is_quick()
        pieces = AsyncTextStream(native, self._wakers, partial(_begun, begin, quick))
        return pieces if stream else pieces.complete()

    def _renders_quickly(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None
    ) -> bool:
        """Whether a conversation is short, and its template was used before."""
        if "_chat_template" not in vars(self) or not isinstance(messages, (list, tuple)):
            return False
        texts = [each.get("content") for each in messages if isinstance(each, Mapping)]
        characters = sum(50 + (len(text) if isinstance(text, str) else 0) for text in texts)
        return not tools and len(texts) == len(messages) and characters <= _QUICK_CHARACTERS


def _length(prompt: str | Sequence[SupportsIndex]) -> int:
    try:
        return len(prompt)
    except TypeError:  # no sequence: it is refused when it is looked at
        return 0


async def _begun(begin: Callable[[], Result], quick: bool) -> Result:
    """Call `begin`, where it takes long in a thread of the loop's own executor."""
    from akunu._wakers import running_loop

    loop = running_loop()
    return begin() if quick else await loop.run_in_executor(None, begin)
