"""How `generate` and `chat` may be called, for type checkers and editors: once for each.

Blocking and awaited calls return different types, so the type is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, TypeVar, overload

from akunu.options.text_options import lists_sampling_options

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Unpack

    from akunu.options.text_options import (
        ChatArguments,
        SamplingOptions,
        TextArguments,
        ToolsArgument,
    )
    from akunu.text.async_text_stream import AsyncTextStream
    from akunu.text.completion import Completion
    from akunu.text.text_stream import TextStream

    OnePrompt: TypeAlias = str | Sequence[SupportsIndex]
    Message: TypeAlias = Mapping[str, Any]
    Awaited: TypeAlias = Coroutine[Any, Any, Completion]
    AllAwaited: TypeAlias = Coroutine[Any, Any, list[Completion]]

One = TypeVar("One", covariant=True)  # a reply
Pieces = TypeVar("Pieces", covariant=True)  # its stream
All = TypeVar("All", covariant=True)  # several replies
AllPieces = TypeVar("AllPieces", covariant=True)


class Generate(Protocol[One, Pieces, All, AllPieces]):
    """How a text is requested."""

    @overload
    def __call__(
        self,
        prompt: OnePrompt,
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> One: ...
    @overload
    def __call__(
        self,
        prompt: OnePrompt,
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Pieces: ...
    @overload
    def __call__(
        self,
        prompt: OnePrompt,
        options: SamplingOptions | None = None,
        *,
        stream: bool,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> One | Pieces: ...
    @overload
    def __call__(
        self,
        prompt: OnePrompt | Sequence[OnePrompt],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> All: ...
    @overload
    def __call__(
        self,
        prompt: OnePrompt,
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        n: int,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> AllPieces: ...


class Chat(Protocol[One, Pieces, All, AllPieces]):
    """How a reply to a conversation is requested."""

    @overload
    def __call__(
        self,
        messages: Sequence[Message],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[False] = False,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> One: ...
    @overload
    def __call__(
        self,
        messages: Sequence[Message],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[True],
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> Pieces: ...
    @overload
    def __call__(
        self,
        messages: Sequence[Message],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: bool,
        n: None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> One | Pieces: ...
    @overload
    def __call__(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[False] = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> All: ...
    @overload
    def __call__(
        self,
        messages: Sequence[Message],
        options: SamplingOptions | None = None,
        *,
        tools: ToolsArgument = None,
        stream: Literal[True],
        n: int,
        priority: int = 0,
        **sampling: Unpack[ChatArguments],
    ) -> AllPieces: ...


class Continue(Protocol[One, Pieces]):
    """How a session is continued."""

    @overload
    def __call__(
        self,
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> One: ...
    @overload
    def __call__(
        self,
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        priority: int = 0,
        **sampling: Unpack[TextArguments],
    ) -> Pieces: ...


# Decorators: a method has the signature of one of these, and `help` shows all options.
_Method = Callable[..., Any]
generates: Callable[
    [_Method], Generate[Completion, TextStream, list[Completion], list[TextStream]]
] = lists_sampling_options
generates_async: Callable[
    [_Method], Generate[Awaited, AsyncTextStream, AllAwaited, list[AsyncTextStream]]
] = lists_sampling_options
chats: Callable[[_Method], Chat[Completion, TextStream, list[Completion], list[TextStream]]] = (
    lists_sampling_options
)
chats_async: Callable[
    [_Method], Chat[Awaited, AsyncTextStream, AllAwaited, list[AsyncTextStream]]
] = lists_sampling_options
continues: Callable[[_Method], Continue[Completion, TextStream]] = lists_sampling_options
continues_async: Callable[[_Method], Continue[Awaited, AsyncTextStream]] = lists_sampling_options
