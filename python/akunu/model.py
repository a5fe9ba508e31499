"""A loaded model: text in, text out.

>>> import akunu
>>> with akunu.load() as model:
...     reply = model.chat([{"role": "user", "content": "Hello!"}], max_tokens=20)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.checks import file_path, integer, priority_of
from akunu.embedding.calls import EncoderCalls
from akunu.embedding.embed import facts_of
from akunu.embedding.reranking import ranking_facts_of
from akunu.errors import MisuseError, UnsupportedModelError
from akunu.grammar import Grammar
from akunu.model_facts import CachePages, DiskCache, MemoryReport, ModelConfig, Occupancy
from akunu.options.adapter_options import adapter_paths
from akunu.options.text_options import (
    LoadOptions,
    SamplingOptions,
    TextOptions,
    ToolsArgument,
    refuses_options_of_load,
)
from akunu.session import Session
from akunu.storage.disk_cache import digest_of_adapter
from akunu.storage.native_load import begin_context
from akunu.storage.session_state import ChatSettings, load_session
from akunu.text.encode import Prompt
from akunu.text.pipeline import Pipeline
from akunu.text.render import Rendered
from akunu.text.request import chat_request, text_request
from akunu.text.signatures import chats, chats_async, generates, generates_async
from akunu.text.submit import adapter_shares
from akunu.text.text_stream import TextStream
from akunu.text.wakers import result_of
from akunu.tokenizers.token_ids import token_ids
from akunu.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from akunu.grammar import FreeText
    from akunu.storage.loaded_files import LoadedFiles
    from akunu.text.context_overflow import Shorten
    from akunu.text.reply_splitter import ReplySplitter
    from akunu.text.wakers import Wakers
    from akunu.thread_choice import ThreadChoice


class Model(EncoderCalls):
    """A model that is ready to generate; `load` makes it.

    Several threads may use one model at once; their texts do not affect each other. Close the
    model, or use it in a `with` block, to free its memory at once; later uses raise AkunuError.
    After `os.fork()` a model works only in the parent process.
    """

    thread_choice: ThreadChoice | None
    """What `threads="auto"` measured and took; None for a model that was loaded otherwise."""

    def __init__(
        self,
        native: _core.NativeModel,
        files: LoadedFiles,
        max_waiting: int,
        thread_choice: ThreadChoice | None = None,
    ) -> None:
        """Use `akunu.load`."""
        self._pipeline = Pipeline(native, files.tokenizer, files.path, max_waiting)
        self._files = files
        self._config = ModelConfig(**native.config)
        self._context = native.context
        self._embedding = facts_of(native, files.path)
        self._ranking = ranking_facts_of(native, files.path, files.tokenizer)
        self._pipeline.sampling_defaults = files.sampling_defaults
        self.thread_choice = thread_choice
        chosen = [thread_choice.note()] if thread_choice else []
        self._notes = (*native.notes, *chosen, *files.notes)

    @property
    def _native(self) -> _core.NativeModel | None:
        return self._pipeline.native

    @property
    def _wakers(self) -> Wakers:
        return self._pipeline.wakers

    def _open(self) -> _core.NativeModel:
        return self._pipeline.open()

    @property
    def path(self) -> Path:
        """The file that the model came from."""
        return self._files.path

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer; it outlives the model."""
        return self._files.tokenizer

    @property
    def config(self) -> ModelConfig:
        """What the file says about the model's shape."""
        return self._config

    @property
    def context(self) -> int:
        """Positions that one text can have, prompt and reply together."""
        return self._context

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of the adapters that are loaded, in order of their numbers."""
        return self._pipeline.adapters

    def load_adapter(self, name: str, path: str | os.PathLike[str]) -> None:
        """Load one more LoRA adapter; texts that are under way continue with the same bits.

        `path`: as for `adapters=` of `akunu.load`. Texts then choose it by `name`.

        Raises ArgumentError for a name that another adapter has, ModelFormatError and
        UnsupportedModelError as a load, and OutOfMemoryError; the model is then as it was before.

            model.load_adapter("poet", "poet.gguf")
            model.generate("The sea", adapters="poet")
            model.unload_adapter("poet")
        """
        native = self._open()
        ((name, path),) = adapter_paths("adapters", {name: path})
        digest = digest_of_adapter(path) if self.occupancy.disk is not None else []
        native.load_adapter(name, os.fspath(path), digest)
        self._pipeline.find_adapters()

    def unload_adapter(self, name: str) -> None:
        """Unload an adapter and free its memory.

        Raises ArgumentError for a name that no adapter has, and for an adapter that a text uses:
        one that is being generated, or waits.
        """
        native = self._open()
        ((number, _),) = adapter_shares(native, {name: 1.0}).items()
        native.unload_adapter(number)
        self._pipeline.find_adapters()

    @property
    def reads_images(self) -> bool:
        """Whether messages of `chat` may have images."""
        return self._open().images is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the load decided that you might not expect, a line each.

        An example: "context reduced from 131072 to 40960 positions: ...".
        """
        return self._notes

    @property
    def sampling_defaults(self) -> Mapping[str, Any]:
        """The sampling settings that the model's authors recommend, by names of SamplingOptions.

        They come from the file, or from a `generation_config.json` next to it; without either, the
        mapping is empty. It is read-only. `generate` and `chat` use it only if you pass it:
        `model.chat(messages, **model.sampling_defaults)`.
        """
        return self._pipeline.sampling_defaults

    @property
    def memory(self) -> MemoryReport:
        """Bytes of the model's memory by use; those of the tokenizer are an estimate."""
        counted = self._open().memory
        total = counted.pop("total")
        tokenizer = self.tokenizer.memory_bytes
        counted |= {"tokenizer": tokenizer, "total": total + tokenizer}
        return MemoryReport(counted, self.occupancy.disk)

    @property
    def occupancy(self) -> Occupancy:
        """Waiting and running requests, and their parts of the cache; never waits for the engine.

        >>> import akunu
        >>> with akunu.load("ember", context=512) as model:
        ...     print(*model.occupancy.cache)
        CachePages(kind='full', in_use=0, cached=0, free=2)
        """
        found = self._open().occupancy
        pages = tuple(CachePages(**each) for each in found["cache"])
        disk = DiskCache(**found["disk"]) if found["disk"] else None
        return Occupancy(**{**found, "cache": pages, "disk": disk})

    @generates
    def generate(
        self,
        prompt: str | Sequence[SupportsIndex] | Sequence[str | Sequence[SupportsIndex]],
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Any,
    ) -> Any:
        """Return the text that continues from `prompt`, or with `stream` an iterator of its pieces.

        `prompt`: a text, or token ids, which are used unchanged. An empty prompt starts from the
        model's BOS token. Names of control tokens inside a text are plain text. `options`, or its
        fields as keyword arguments, set how tokens are sampled and where the text ends:
        `SamplingOptions` explains them. The defaults always take the most likely token. The text
        ends where the model ends it, before a `stop` string, after `max_tokens`, or when the
        context is full; `finish_reason` of the Completion or the stream says which.
        `n`: return a list of this many completions or streams; they differ if temperature is above
        0. The prompt is computed once, and each completion is the one of its `answer_index`.
        `priority`: a higher one goes first among texts that wait or have a prompt to compute.

        Several prompts, a list of texts or of lists of token ids, return a list of completions in
        the same order. They are generated in batches, and each is the same as it would be alone.
        All prompts are checked before any work; if a completion fails later, the others are
        cancelled. Errors name the prompt: "prompt[2]: ...".

        Raises ArgumentError for arguments that make no sense, ContextOverflowError for a prompt
        that does not fit, and QueueFullError if `max_waiting` requests wait already; all before any
        work. Ctrl-C stops generation and leaves the model usable.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     model.generate("Hello", max_tokens=0)
        ''
        """
        request = text_request(prompt, options, sampling, priority)
        return self._pipeline.run(request, n, stream)

    @generates_async
    def generate_async(
        self,
        prompt: str | Sequence[SupportsIndex] | Sequence[str | Sequence[SupportsIndex]],
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Any,
    ) -> Any:
        """Await the text that continues from `prompt`, or with `stream` iterate over its pieces.

        The arguments, the text and the errors are those of `generate`; errors about the prompt and
        the structured output are raised when it is awaited. The event loop (asyncio, or one such as
        uvloop) continues meanwhile, and no thread waits. Cancelling the task, or `aclose()` of the
        stream, cancels generation within one step of the engine.

        >>> import akunu, asyncio
        >>> async def both(model: akunu.Model) -> list[akunu.Completion]:
        ...     texts = [model.generate_async(prompt, max_tokens=4) for prompt in ("One", "Two")]
        ...     return await asyncio.gather(*texts)
        >>> with akunu.load() as model:
        ...     asyncio.run(both(model))[0] == model.generate("One", max_tokens=4)
        True
        """
        request = text_request(prompt, options, sampling, priority)
        return self._pipeline.run_async(request, n, stream)

    @chats
    def chat(
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
        continue_final_message: bool = False,
        stream: bool = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Any,
    ) -> Any:
        """Return the model's reply to a conversation, or with `stream` an iterator of its pieces.

        `messages`: dicts with `role` ("system", "user", "assistant") and `content`, oldest first;
        the model's chat template renders them. A content may be a list of parts: texts and, if the
        model reads them (`reads_images`), images: `{"type": "image", "image": ...}` with a
        pathlib.Path, bytes, a Pillow image or a data: URL, or `image_url` as OpenAI's clients send
        it. `tools`: functions that the model may call: Python functions with annotations, or
        descriptions in OpenAI's or Anthropic's form. The calls are in `reply.tool_calls`; akunu
        runs none of them. `tool_choice`: "auto" lets the model decide, "none" forbids calls,
        "required" demands one, and the name of a tool demands a call of it. `parallel_tool_calls`:
        whether there may be several calls. `thinking`: whether the model thinks before it answers
        (True, False), or how much ("low", "medium", "high"); None: the template's default. The
        thinking is in `reply.reasoning`, not in the text. `thinking_budget`: end thinking after
        this many tokens. `template_variables`: other variables of the template.
        `continue_final_message`: the reply continues the last message, one of the assistant with a
        text or reasoning, and has only the text after it. The other arguments are those of
        `generate`. Several conversations, a list of lists of messages, return a list of replies.

        Raises what `generate` raises; ArgumentError if the template refuses the messages or lacks
        the switch or a variable; UnsupportedModelError for a model that was not made for
        conversations.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     model.chat([{"role": "user", "content": "Hello!"}], max_tokens=0)
        ''
        """
        request = chat_request(
            messages,
            options,
            sampling,
            tools=tools,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            thinking=thinking,
            thinking_budget=thinking_budget,
            template_variables=template_variables,
            continue_final_message=continue_final_message,
            priority=priority,
        )
        return self._pipeline.run(request, n, stream)

    @chats_async
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
        continue_final_message: bool = False,
        stream: bool = False,
        n: int | None = None,
        priority: int = 0,
        **sampling: Any,
    ) -> Any:
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
        request = chat_request(
            messages,
            options,
            sampling,
            tools=tools,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            thinking=thinking,
            thinking_budget=thinking_budget,
            template_variables=template_variables,
            continue_final_message=continue_final_message,
            priority=priority,
        )
        return self._pipeline.run_async(request, n, stream)

    @refuses_options_of_load
    def new_context(
        self,
        *,
        context: int | None = None,
        kv_memory: int | None = None,
        kv_type: str | None = None,
        max_waiting: int | None = None,
        prefix_cache: bool | None = None,
    ) -> Model:
        """Return a second model over the same weights, with its own cache and queue.

        It takes memory for its cache, its steps and a copy of the adapters: the file is not read
        again. Its completions are those of a model that is loaded with these options. They are
        options of `LoadOptions`, with the defaults of `LoadOptions`, not this model's values.
        Device, threads, adapters, prediction head and image encoder are this model's; it has no
        draft model and no `cache_dir`. An adapter that is loaded later is one model's alone. The
        two models take turns on the device. Close both, in any order: the last one frees the
        weights.

        Raises OutOfMemoryError if the cache does not fit, and what `LoadOptions` raises.

        >>> import akunu
        >>> with akunu.load("ember", context=1024) as model:
        ...     with model.new_context(context=256, kv_type="f32") as short:
        ...         text = short.generate("Once upon a time", max_tokens=4)
        ...         model.context, short.context
        (1024, 256)
        """
        chosen = LoadOptions(
            context=context,
            kv_memory=kv_memory,
            kv_type=kv_type,  # type: ignore[arg-type]  # None is the default
            max_waiting=max_waiting,  # type: ignore[arg-type]
            prefix_cache=prefix_cache,  # type: ignore[arg-type]
        )
        native = begin_context(self._open(), chosen).result()
        return Model(native, self._files, chosen.max_waiting, self.thread_choice)

    def session(
        self,
        *,
        thinking: bool | str | None = None,
        template_variables: Mapping[str, Any] | None = None,
    ) -> Session:
        """Begin a session: a text, or a conversation, that is appended to and generated from.

        It can be forked, rewound and saved. `thinking` and `template_variables`: as for `chat`, if
        the session is a conversation. Raises UnsupportedModelError for a model that generates no
        text.

        >>> import akunu
        >>> with akunu.load("ember", context=512) as model:
        ...     session = model.session()
        ...     session.append([{"role": "user", "content": "Hello!"}])
        ...     reply = session.generate(max_tokens=4)
        ...     [each["role"] for each in session.messages]
        ['user', 'assistant']
        """
        self._refuse_sessions_of_encoders()
        settings = ChatSettings(thinking, MappingProxyType(dict(template_variables or {})))
        return Session(self, settings)

    def load_session(self, path: str | os.PathLike[str]) -> Session:
        """Return a session that `Session.save` wrote, with the keys and values of its tokens.

        It continues as if it had never been saved, with the same text and the same bits. Keys and
        values that another version of akunu or another device computed are not used: the tokens are
        computed again, and `Session.notes` says so.

        Raises SessionFileError for a file that is not a session, is cut off or damaged, or belongs
        to another model or `kv_type`, and ContextOverflowError for a session with more tokens than
        the context holds.
        """
        self._refuse_sessions_of_encoders()
        loaded = load_session(self, file_path("path", path))
        return Session(self, loaded.settings, loaded.state, loaded.notes, loaded.restored_tokens)

    def _refuse_sessions_of_encoders(self) -> None:
        if self._open().embedding is not None:
            raise UnsupportedModelError(
                f"{self._config.architecture} is an encoder: it generates no text, so it has no "
                f"sessions"
            )

    @property
    def _digest(self) -> str:
        """A digest of the model's files; made once, it reads all of them."""
        return self._files.digest

    async def load_session_async(self, path: str | os.PathLike[str]) -> Session:
        """Await the session of a file; argument, result and errors are those of `load_session`.

        The file is read in a thread: the event loop continues meanwhile.
        """
        return await result_of(partial(self.load_session, path))

    def logits(
        self,
        tokens: Sequence[SupportsIndex],
        *,
        last: int | None = None,
        priority: int = 0,
        adapters: str | Mapping[str, float] | None = None,
    ) -> NDArray[np.float32]:
        """Return the logits after each token, float32 [n, vocab_size]: row i sees tokens 0 to i.

        `last`: only the rows of this many last tokens, or all if there are fewer. Earlier tokens
        that the cache has are not computed again: with `last=1`, a text that grows by a token costs
        one token each time. No BOS token is added. `priority` and
        `adapters`: as for `generate`.

        Raises ArgumentError for ids outside the vocabulary, ContextOverflowError for more tokens
        than the context holds and QueueFullError if too many requests wait already.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     rows = model.logits([1, 2, 3])
        ...     same = model.logits([1, 2, 3], last=1)
        >>> rows.shape == (3, model.config.vocab_size), bool((same[0] == rows[2]).all())
        (True, True)
        """
        ids, first = self._rows(tokens, last)
        native = self._open()
        return native.logits(ids, first, priority_of(priority), adapter_shares(native, adapters))

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

    def _rows(
        self, tokens: Sequence[SupportsIndex], last: int | None
    ) -> tuple[NDArray[np.uint32], int]:
        """Return the ids and the first of those whose logits are wanted."""
        ids = token_ids(tokens, self._config.vocab_size, "tokens")
        wanted = len(ids) if last is None else integer("last", last, 1, None, "or None")
        return ids, max(0, len(ids) - wanted)

    def _reply(
        self,
        prompt: Sequence[int],
        splitter: ReplySplitter,
        options: TextOptions,
        thoughts: FreeText | None = None,
        shorten: Shorten | None = None,
    ) -> TextStream:
        """Return the reply to a conversation whose prompt is there already.

        `thoughts`: what it begins with; they may have a budget. `shorten`: how the prompt gets
        shorter where the context is full.
        """
        has_budget = thoughts is not None and thoughts.most_tokens is not None
        rendered = Rendered(
            new_splitter=lambda: splitter,
            grammar=Grammar(after=thoughts) if has_budget else None,
            thoughts=thoughts,
        )
        tokens = token_ids(prompt, self._config.vocab_size, "prompt")
        text = Prompt(tokens, rendered, shorten=shorten)
        constraint = self._pipeline.constraint(options, text)
        return TextStream(self._open(), self._pipeline.begin(options, text, constraint))

    def close(self) -> None:
        """Free the model; texts under way end with an AkunuError. Closing twice is fine."""
        native, self._pipeline.native = self._pipeline.native, None
        if native is not None:
            native.close()

    def __enter__(self) -> Model:
        """Return the model itself."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the model."""
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: closing one of the two would close the other."""
        raise MisuseError(
            "a Model cannot be copied or pickled; several threads may use the same one, and "
            "another process loads its own, akunu.load(model.path)"
        )

    def __repr__(self) -> str:
        """Name the model and say whether it is open."""
        name = self._config.name or self.path.name
        state = "closed" if self._native is None else f"context {self._context}"
        return f"<akunu.Model {name!r}, {self._config.architecture}, {state}>"
