"""A text or conversation that continues; its KV cache stays, in memory and in a file.

>>> import akunu
>>> with akunu.load("ember", context=512) as model:
...     session = model.session()
...     session.append("Once upon a time")
...     first = session.generate(max_tokens=8)
...     branch = session.fork()
...     session.n_tokens == branch.n_tokens
True
"""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, SupportsIndex

from akunu.common.checks import file_path, flag, integer, priority_of
from akunu.errors import AkunuError, ArgumentError, ContextOverflowError, MisuseError
from akunu.images.reader import with_own_images
from akunu.options.text_options import SamplingOptions, TextOptions, sampling_options
from akunu.storage.cache_identity import KeyedModel
from akunu.storage.session_state import ChatSettings, State, save_session
from akunu.templates.messages import has_images
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.pipeline import Pipeline
from akunu.text.request import Request
from akunu.text.signatures import continues, continues_async
from akunu.text.text_stream import TextStream
from akunu.text.wakers import result_of, running_loop
from akunu.tokenizers.token_ids import token_ids
from akunu.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from akunu import _core
    from akunu.text.completion import Completion
    from akunu.text.encode import Prompt
    from akunu.text.reply_decoder import ReplyDecoder


_NO_SETTINGS = ChatSettings()
_EMPTY = State()


def _nothing() -> None:
    return None


@dataclass(slots=True, eq=False)
class _Pending:
    """A reply that is being written."""

    before: State
    decoder: ReplyDecoder | None = None
    """None: the stream of a coroutine that has not begun."""
    stream: Callable[[], TextStream | AsyncTextStream | None] = _nothing
    """Returns it while someone has it."""
    prompt: tuple[int, ...] = ()
    """What was read before the reply."""

    @property
    def is_lost(self) -> bool:
        """Whether no one can read the rest."""
        stream = self.stream()
        if stream is None or isinstance(stream, TextStream):
            return stream is None
        return self.decoder is None and stream.is_closed


class SessionModel(KeyedModel, Protocol):
    """What a session needs of its model: `akunu.Model`."""

    _pipeline: Pipeline

    @property
    def tokenizer(self) -> Tokenizer:
        """What makes tokens of text."""

    @property
    def reads_images(self) -> bool:
        """Whether messages may have images."""


class Session:
    """A text, or a conversation, that is appended to and generated from; `Model.session` makes it.

    A session is the list of its tokens. Their keys and values stay in the model's KV cache as long
    as there is room, and are computed again otherwise: the replies are the same. So sessions cost
    no memory, and there may be any number of them.

    The first appended value sets the kind of session: text and token ids make a text, messages a
    conversation, which the model's chat template renders. One thread at a time may use a session;
    several sessions may generate at the same time.
    """

    def __init__(
        self,
        model: SessionModel,
        settings: ChatSettings = _NO_SETTINGS,
        state: State = _EMPTY,
        notes: tuple[str, ...] = (),
        restored_tokens: int = 0,
    ) -> None:
        """Use `Model.session`."""
        self._model = model
        self._settings = settings
        self._state = state
        self._notes = notes
        self._restored_tokens = restored_tokens
        self._pending: _Pending | None = None
        self._is_closed = False
        self._lock = RLock()

    @property
    def n_tokens(self) -> int:
        """Number of its tokens, those of replies among them."""
        return len(self._settled().tokens)

    @property
    def tokens_left(self) -> int:
        """How many more tokens the model's context holds."""
        return max(0, self._model.context - self.n_tokens)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Its tokens; a conversation has those of the latest prompt and its reply."""
        return self._settled().tokens

    @property
    def messages(self) -> list[dict[str, Any]] | None:
        """The messages of a conversation, as `Model.chat` takes them; None of a text."""
        messages = self._settled().messages
        return None if messages is None else [copy.deepcopy(dict(each)) for each in messages]

    @property
    def marks(self) -> tuple[int, ...]:
        """The token counts to which a conversation can be rewound; () of a text, which can to any.

        There is one after each thing that was appended, and after each reply.
        """
        return _marks(self._settled())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about a session from a file, a line each."""
        return self._notes

    @property
    def restored_tokens(self) -> int:
        """Tokens whose keys and values came from a file, so that they are not computed."""
        return self._restored_tokens

    def append(
        self,
        content: str | Sequence[SupportsIndex] | Sequence[Mapping[str, Any]] | Mapping[str, Any],
    ) -> None:
        """Append a text, token ids, or one or several messages. Nothing is computed yet.

        A text is tokenised separately, after a BOS token if it opens the session and the model
        expects one; ids are used unchanged. The chat template renders messages together with all
        earlier ones, and `n_tokens` is the length of the whole prompt. Many templates render
        earlier replies differently, without thinking for example, so `n_tokens` need not grow by
        the length of the new messages.

        Messages may have images if the model reads them (`Model.reads_images`), as those of
        `Model.chat`. A file is read now; later changes of it have no effect.

        Raises ArgumentError for another type, and for a text in a conversation or messages in a
        text; ContextOverflowError if the tokens do not fit. The session is then unchanged.

        >>> import akunu
        >>> with akunu.load("ember", context=512) as model:
        ...     session = model.session()
        ...     session.append({"role": "user", "content": "Hello!"})
        ...     session.messages
        [{'role': 'user', 'content': 'Hello!'}]
        """
        with self._lock:
            state = self._settled()
            if isinstance(content, Mapping):
                content = [content]
            is_text = isinstance(content, str)
            is_messages = (
                not is_text
                and isinstance(content, Sequence)
                and len(content) > 0
                and all(isinstance(each, Mapping) for each in content)
            )
            if is_messages:
                self._append_messages(state, content)  # type: ignore[arg-type]
                return
            if state.messages is not None:
                raise ArgumentError(
                    "this session is a conversation; append messages, or one message as a dict"
                )
            if isinstance(content, str):
                ids = self._encoded(content, bool(state.tokens))
            else:
                wanted = "a text (str), token ids or messages"
                ids = token_ids(content, self._model.config.vocab_size, "content", wanted).tolist()  # type: ignore[arg-type]
            self._check_fits(len(state.tokens) + len(ids))
            self._state = replace(state, tokens=(*state.tokens, *ids))

    def _append_messages(self, state: State, messages: Sequence[Mapping[str, Any]]) -> None:
        if state.messages is None and state.tokens:
            raise ArgumentError(
                "this session is a text; append text or token ids, or start another session for a "
                "conversation"
            )
        whole = (*(state.messages or ()), *(self._copied(each) for each in messages))
        tokens = tuple(self._prompt(State((), whole)).tokens.tolist())
        self._check_fits(len(tokens))
        self._state = State(tokens, whole, state if state.messages is not None else None)

    def _copied(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if self._model.reads_images and has_images([message]):
            return with_own_images(message)
        return copy.deepcopy(dict(message))

    def _check_fits(self, n_tokens: int) -> None:
        if n_tokens > self._model.context:
            raise ContextOverflowError(
                f"the session would have {n_tokens} tokens, the context holds {self._model.context}"
            )

    def _encoded(self, text: str, goes_on: bool) -> list[int]:
        tokenizer = self._model.tokenizer
        if not goes_on:
            return tokenizer.encode(text)
        # Text that opens a prompt may get a space in front; text that continues does not.
        opening = tokenizer.encode_pieces(["a"])
        return tokenizer.encode_pieces(["a", text])[len(opening) :]

    def _prompt(self, state: State, options: TextOptions | None = None) -> Prompt:
        """Return the prompt of what the session holds; `options`: those of the reply to it."""
        pipeline = self._model._pipeline
        chosen = TextOptions() if options is None else options
        if state.messages is None:
            request = Request(prompt=state.tokens, options=chosen)
        else:
            request = Request(
                messages=[dict(each) for each in state.messages],
                thinking=self._settings.thinking,
                template_variables=self._settings.template_variables or None,
                options=chosen,
            )
        return pipeline.prompt(request, pipeline.room(chosen))

    @continues
    def generate(
        self,
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        priority: int = 0,
        **sampling: Any,
    ) -> Any:
        """Return what follows, and append it; with `stream`, an iterator of its pieces.

        The completion, the arguments and the errors are those of `Model.generate` for these tokens,
        or of `Model.chat` for these messages. The token that ended a reply is not appended. The
        part of a stream that was read is appended when the stream ends or is closed; until then
        every other use of the session raises AkunuError.

        Raises ArgumentError, too, if the last message of a conversation is the model's own. After
        an error, the session is unchanged.

        >>> import akunu
        >>> with akunu.load("ember", context=512) as model:
        ...     session = model.session()
        ...     session.append("Hello")
        ...     reply = session.generate(max_tokens=4)
        ...     reply == model.generate("Hello", max_tokens=4)
        True
        """
        chosen = sampling_options(options, sampling).compiled()
        flag("stream", stream)
        with self._lock:
            state = self._settled()
            native = self._model._open()
            prompt = self._reply_prompt(state, chosen)
            pipeline = self._model._pipeline
            constraint = pipeline.constraint(chosen, prompt)
            decoder = pipeline.begin(chosen, prompt, constraint, priority_of(priority))
            pieces = TextStream(native, decoder)
            tokens = tuple(prompt.tokens.tolist())
            self._pending = _Pending(state, decoder, weakref.ref(pieces), tokens)
        if stream:
            return pieces
        try:
            reply = pieces.complete()
        except BaseException:
            self._pending = None
            raise
        self._settled()
        return reply

    def _reply_prompt(self, state: State, options: TextOptions) -> Prompt:
        if state.messages is not None and state.messages[-1].get("role") == "assistant":
            raise ArgumentError(
                "the last message of this conversation is the model's; append the next one"
            )
        return self._prompt(state, options)

    async def append_async(
        self,
        content: str | Sequence[SupportsIndex] | Sequence[Mapping[str, Any]] | Mapping[str, Any],
    ) -> None:
        """Append as `append` does, where it may take long in a thread: the loop continues."""
        with self._lock:
            self._settled()
        running_loop()
        if isinstance(content, str) and self._model._pipeline.encodes_quickly(content):
            self.append(content)
        else:
            await result_of(partial(self.append, content))

    @continues_async
    def generate_async(
        self,
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        priority: int = 0,
        **sampling: Any,
    ) -> Any:
        """Await what follows, and append it; with `stream`, iterate over its pieces.

        It is `generate` for coroutines: the event loop continues meanwhile, and no thread waits.
        Until the reply is complete, or its stream has ended, is closed or lost, every other use of
        the session raises AkunuError. Cancelling the task leaves the session unchanged; closing a
        stream appends the part that was read.

        >>> import akunu, asyncio
        >>> async def both(model: akunu.Model) -> list[akunu.Completion]:
        ...     session = model.session()
        ...     await session.append_async("The sky is")
        ...     forks = [session.fork() for _ in range(2)]
        ...     return await asyncio.gather(*(each.generate_async(max_tokens=4) for each in forks))
        >>> with akunu.load("ember", context=512) as model:
        ...     first, second = asyncio.run(both(model))
        >>> first == second
        True
        """
        chosen = sampling_options(options, sampling)
        flag("stream", stream)
        priority = priority_of(priority)
        pipeline = self._model._pipeline
        with self._lock:
            state = self._settled()
            native = self._model._open()
            pending = _Pending(state)

            def ready() -> tuple[TextOptions, Prompt, _core.Constraint | None]:
                compiled = chosen.compiled()
                prompt = self._reply_prompt(state, compiled)
                return compiled, prompt, pipeline.constraint(compiled, prompt)

            async def begun() -> ReplyDecoder:
                running_loop()
                is_text = state.messages is None and chosen.form is None
                is_quick = is_text and pipeline.encodes_quickly(state.tokens)
                compiled, prompt, constraint = ready() if is_quick else await result_of(ready)
                decoder = pipeline.begin(compiled, prompt, constraint, priority)
                pending.prompt = tuple(prompt.tokens.tolist())
                pending.decoder = decoder
                return decoder

            pieces = AsyncTextStream(native, pipeline.wakers, begun)
            pending.stream = weakref.ref(pieces)
            self._pending = pending
        return pieces if stream else self._complete(pieces, pending)

    async def _complete(self, pieces: AsyncTextStream, pending: _Pending) -> Completion:
        try:
            reply = await pieces.complete()
        except BaseException:
            with self._lock:
                if self._pending is pending:
                    self._pending = None
            raise
        self._settled()
        return reply

    async def save_async(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file as `save` does, in a thread: the event loop continues."""
        await result_of(partial(self.save, path))

    def fork(self) -> Session:
        """Return another session that continues from here; both use the same cached tokens.

        >>> import akunu
        >>> with akunu.load("ember", context=512) as model:
        ...     session = model.session()
        ...     session.append("The sky is")
        ...     replies = [session.fork().generate(max_tokens=4, seed=i) for i in range(2)]
        ...     session.n_tokens == len(model.tokenizer.encode("The sky is"))
        True
        """
        with self._lock:
            state = self._settled()
            return Session(self._model, self._settings, state, self._notes, self._restored_tokens)

    def rewind(self, n_tokens: int) -> None:
        """Forget all tokens but the first `n_tokens`; the count was `session.n_tokens` once.

        A conversation can only go back to one of its `marks`, after a message or reply, or to 0.
        Raises ArgumentError for other counts.

        >>> import akunu
        >>> with akunu.load("ember", context=512) as model:
        ...     session = model.session()
        ...     session.append("Hello")
        ...     n = session.n_tokens
        ...     first = session.generate(max_tokens=4)
        ...     session.rewind(n)
        ...     session.generate(max_tokens=4) == first
        True
        """
        with self._lock:
            state = self._settled()
            n = integer("n_tokens", n_tokens, 0, len(state.tokens))
            if state.messages is None or n == 0:
                self._state = State(state.tokens[:n])
                return
            # Rendered anew, a later prompt may be shorter: the latest of equal counts is meant.
            for each in state.history():
                if len(each.tokens) == n:
                    self._state = each
                    return
            marks = ", ".join(map(str, _marks(state)))
            raise ArgumentError(f"n_tokens is {n}; this conversation can be rewound to 0, {marks}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session, and the keys and values of its tokens, to a file.

        The file appears whole or not at all, and replaces an earlier one: if the process is killed,
        one of the two is there. Tokens that the cache lacks are computed first.
        `Model.load_session` reads the file. It is as large as the KV cache of its tokens (see
        `Model.memory`).

        Raises ArgumentError for a path that cannot be written, and for a conversation with images,
        whose tokens do not identify the images; AkunuError for a full disk, and what `generate`
        raises.
        """
        with self._lock:
            save_session(self._model, self._settings, self._settled(), file_path("path", path))

    def close(self) -> None:
        """End a reply that is being written; every later use raises. Closing twice is fine."""
        with self._lock:
            pending, self._pending = self._pending, None
            self._is_closed = True
        if pending is not None and pending.decoder is not None:
            pending.decoder.cancel()

    def _settled(self) -> State:
        """Return what the session holds; AkunuError while a reply is being written."""
        with self._lock:
            if self._is_closed:
                raise AkunuError("the session is closed; start another one")
            self._model._open()
            pending = self._pending
            if pending is None:
                return self._state
            decoder = pending.decoder
            if decoder is None or decoder.reason is None:
                if not pending.is_lost:
                    raise AkunuError(
                        "a reply of this session is being written; take all of its pieces, or "
                        "close its stream"
                    )
                if decoder is not None:
                    decoder.cancel()
            self._pending = None
            if decoder is not None:
                self._state = self._with_reply(pending, decoder.completion)
            return self._state

    def _with_reply(self, pending: _Pending, reply: Completion) -> State:
        tokens = (*pending.prompt, *reply.token_ids)
        before = pending.before
        if before.messages is None:
            return State(tokens)
        message: dict[str, Any] = {"role": "assistant", "content": str(reply)}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        return State(tokens, (*before.messages, message), before)

    def __len__(self) -> int:
        """Return `n_tokens`."""
        return self.n_tokens

    def __enter__(self) -> Session:
        """Return the session itself."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise MisuseError(
            "a Session cannot be copied or pickled; fork() copies it, and save() writes it to a "
            "file"
        )

    def __repr__(self) -> str:
        """Say what it is and how long."""
        if self._is_closed:
            return "<akunu.Session, closed>"
        kind = "text" if self._state.messages is None else "conversation"
        return f"<akunu.Session, {kind}, {len(self._state.tokens)} tokens>"


def _marks(state: State) -> tuple[int, ...]:
    if state.messages is None:
        return ()
    return tuple(len(each.tokens) for each in state.history())[::-1]
