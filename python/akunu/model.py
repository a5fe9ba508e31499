"""A loaded model: text in, text out.

>>> import akunu
>>> with akunu.load() as model:
...     reply = model.chat([{"role": "user", "content": "Hello!"}], max_tokens=20)
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.completion import Completion
from akunu.errors import AkunuError, ArgumentError, MisuseError
from akunu.options import (
    LoadOptions,
    SamplingArguments,
    SamplingOptions,
    explains_typos,
    flag,
    integer,
    lists_sampling_options,
    sampling_options,
)
from akunu.sampling_defaults import sampling_defaults_of
from akunu.text_stream import TextStream
from akunu.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from akunu.chat import ChatTemplate
    from akunu.hub.watch import Watch

_DATA = Path(__file__).parent / "data"

# The models inside the package, by the names that `load` knows.
PACKAGED_MODELS: Mapping[str, Path] = {"ember": _DATA / "ember-q8_0.gguf"}

_NO_LIMIT = 2**32 - 1  # more tokens than any context holds


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What a model's file says about its shape."""

    architecture: str
    """The family, as GGUF names it: "llama", "qwen3", "gemma2"."""
    name: str
    """The model's own name, "" where the file has none."""
    dim: int
    """Numbers per position in the residual stream."""
    n_layers: int
    """Number of layers."""
    n_heads: int
    """Query heads per layer."""
    n_kv_heads: int
    """Key and value heads per layer; fewer than `n_heads` where heads share them."""
    head_dim: int
    """Numbers per head."""
    ffn_dim: int
    """Width of the feed-forward layers. Where layers differ (as in heads), the most of any."""
    windows: tuple[int, ...]
    """Of each layer, how many positions a token sees, its own included; 0: all of them."""
    vocab_size: int
    """Rows of the logits; the tokenizer may have fewer tokens."""
    context_length: int
    """Positions that the model was trained on; `Model.context` says how many it has here."""
    rope_theta: float
    """Base of the rotary position embedding."""
    rope_dim: int
    """How many of the `head_dim` numbers are rotated."""
    norm_epsilon: float
    """What the norms add to the mean square."""


class MemoryReport(Mapping[str, int]):
    """Bytes of memory by what they are for, "total" included; `print` shows a table.

    >>> print(MemoryReport({"weights": 3 << 20, "cache": 1 << 20, "total": 4 << 20}))
    weights   3.0 MiB
    cache     1.0 MiB
    total     4.0 MiB
    """

    def __init__(self, bytes_by_label: Mapping[str, int]) -> None:
        """Keep a copy of `bytes_by_label`."""
        self._bytes = dict(bytes_by_label)

    def __getitem__(self, label: str) -> int:
        """Return the bytes of one label."""
        return self._bytes[label]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the labels, "total" last."""
        return iter(self._bytes)

    def __len__(self) -> int:
        """Return the number of labels."""
        return len(self._bytes)

    def __repr__(self) -> str:
        """Show the numbers themselves."""
        return f"MemoryReport({self._bytes})"

    def __str__(self) -> str:
        """Show one line per label."""
        shown = {label: f"{size / 2**20:.1f} MiB" for label, size in self._bytes.items()}
        left = max(map(len, shown), default=0)
        right = max(map(len, shown.values()), default=0)
        return "\n".join(f"{label:<{left}}  {size:>{right}}" for label, size in shown.items())


class Model:
    """A model that is ready to generate; `load` makes it.

    Several threads may use one model: their texts are generated side by side, and none of them
    changes another. Close it, or use it in a `with` block, to free its memory at once; after that
    every use raises AkunuError. After `os.fork()` a model works in the parent only.
    """

    def __init__(
        self, native: _core.NativeModel, tokenizer: Tokenizer, path: Path, file: _core.GgufFile
    ) -> None:
        """Use `akunu.load`."""
        self._native: _core.NativeModel | None = native
        self._tokenizer = tokenizer
        self._config = ModelConfig(**native.config)
        self._context = native.context
        sampling, notes = sampling_defaults_of(file, path)
        self._sampling_defaults = MappingProxyType(sampling)
        self._notes = (*native.notes, *tokenizer.notes, *notes)
        self._path = path

    @property
    def path(self) -> Path:
        """The file that the model came from."""
        return self._path

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer; it outlives the model."""
        return self._tokenizer

    @property
    def config(self) -> ModelConfig:
        """What the file says about the model's shape."""
        return self._config

    @property
    def context(self) -> int:
        """Positions that one text can have, prompt and reply together."""
        return self._context

    @property
    def notes(self) -> tuple[str, ...]:
        """What the load decided that you might not expect, a line each.

        An example: "context reduced from 131072 to 40960 positions: ...".
        """
        return self._notes

    @property
    def sampling_defaults(self) -> Mapping[str, Any]:
        """How the model's authors want it sampled, by the names of SamplingOptions.

        From the file, or from a `generation_config.json` beside it. Read-only, and empty where
        neither says. `generate` and `chat` do not use it unless
        you pass it on: `model.chat(messages, **model.sampling_defaults)`.
        """
        return self._sampling_defaults

    @property
    def memory(self) -> MemoryReport:
        """Bytes that the model takes, by what they are for; of the tokenizer, about how many."""
        counted = self._open().memory
        total = counted.pop("total")
        tokenizer = self._tokenizer.memory_bytes
        return MemoryReport({**counted, "tokenizer": tokenizer, "total": total + tokenizer})

    @overload
    def generate(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[False] = False,
        **sampling: Unpack[SamplingArguments],
    ) -> Completion: ...

    @overload
    def generate(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: Literal[True],
        **sampling: Unpack[SamplingArguments],
    ) -> TextStream: ...

    @overload
    def generate(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: bool,
        **sampling: Unpack[SamplingArguments],
    ) -> Completion | TextStream: ...

    @lists_sampling_options
    def generate(
        self,
        prompt: str | Sequence[SupportsIndex],
        options: SamplingOptions | None = None,
        *,
        stream: bool = False,
        **sampling: Any,
    ) -> Completion | TextStream:
        """Return the text that goes on from `prompt`, or with `stream` an iterator of its pieces.

        `prompt`: a text, or token ids, which are taken as they are. An empty prompt starts from the
        model's BOS token. Names of control tokens inside a text are text. How tokens are chosen and
        where the text ends is said by `options`, or by its fields as keyword arguments; they are
        explained at `SamplingOptions`, and the defaults always take the most likely token. The text
        ends where the model ends it, before a `stop` string, after `max_tokens`, or when the
        context is full; the `finish_reason` of the Completion, or of the stream, says which.

        Raises ArgumentError for arguments that make no sense and ContextOverflowError for a prompt
        that does not fit, both before any work. Ctrl-C ends it and leaves the model usable.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     model.generate("Hello", max_tokens=0)
        ''
        """
        chosen = sampling_options(options, sampling)
        flag("stream", stream)
        native = self._open()
        ids = self._tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        tokens = self._checked_tokens(ids, "prompt", "a text (str) or token ids")
        if not tokens.size:
            if self._tokenizer.bos_id is None:
                raise ArgumentError(
                    "the prompt is empty, and this model has no BOS token to start from; "
                    "give it at least one token"
                )
            tokens = np.array([self._tokenizer.bos_id], dtype=np.uint32)
        return self._start(native, tokens, chosen, stream)

    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stream: Literal[False] = False,
        **sampling: Unpack[SamplingArguments],
    ) -> Completion: ...

    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stream: Literal[True],
        **sampling: Unpack[SamplingArguments],
    ) -> TextStream: ...

    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stream: bool,
        **sampling: Unpack[SamplingArguments],
    ) -> Completion | TextStream: ...

    @lists_sampling_options
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        options: SamplingOptions | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stream: bool = False,
        **sampling: Any,
    ) -> Completion | TextStream:
        """Return the model's reply to a conversation, or with `stream` an iterator of its pieces.

        `messages`: dicts with `role` ("system", "user", "assistant") and `content`, oldest first.
        They are rendered with the model's own chat template. `tools`: functions that the model may
        call, described as JSON schemas in OpenAI's form; a call comes back as text, in the model's
        own notation. The others are as for `generate`.

        Raises what `generate` raises; ArgumentError where the template refuses the messages, and
        UnsupportedModelError for a model that was not made for conversations.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     model.chat([{"role": "user", "content": "Hello!"}], max_tokens=0)
        ''
        """
        chosen = sampling_options(options, sampling)
        flag("stream", stream)
        native = self._open()
        from akunu.chat import encode_chat  # Jinja is for who has conversations

        ids = encode_chat(self._tokenizer, self._chat_template, messages, tools=tools)
        return self._start(native, self._checked_tokens(ids, "messages"), chosen, stream)

    def logits(
        self, tokens: Sequence[SupportsIndex], *, last: int | None = None
    ) -> NDArray[np.float32]:
        """Return the logits after each token, float32 [n, vocab_size]: row i sees tokens 0 to i.

        `last`: only the rows of so many last tokens (all, if there are no more). What is before
        them need not be computed where the cache has it: asking for `last=1` of a text that grows
        costs one token each time. Nothing is added in front of the tokens.

        Raises ArgumentError for ids outside the vocabulary and ContextOverflowError for more tokens
        than the context holds.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     rows = model.logits([1, 2, 3])
        ...     same = model.logits([1, 2, 3], last=1)
        >>> rows.shape == (3, model.config.vocab_size), bool((same[0] == rows[2]).all())
        (True, True)
        """
        ids = self._checked_tokens(tokens, "tokens")
        wanted = len(ids) if last is None else integer("last", last, 1, None, "or None")
        return self._open().logits(ids, max(0, len(ids) - wanted))

    def close(self) -> None:
        """Free the model; texts under way end with an AkunuError. Closing twice is fine."""
        native, self._native = self._native, None
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
        name = self._config.name or self._path.name
        state = "closed" if self._native is None else f"context {self._context}"
        return f"<akunu.Model {name!r}, {self._config.architecture}, {state}>"

    def _open(self) -> _core.NativeModel:
        native = self._native
        if native is None:
            raise AkunuError("the model is closed; load it again to go on")
        return native

    @cached_property
    def _chat_template(self) -> ChatTemplate:
        from akunu.chat import ChatTemplate

        return ChatTemplate.of(self._tokenizer)

    def _checked_tokens(
        self,
        tokens: Sequence[SupportsIndex],
        argument: str,
        wanted: str = "token ids, a flat sequence of int",
    ) -> NDArray[np.uint32]:
        """Return ids as the engine takes them; ArgumentError names the first bad one."""
        if isinstance(tokens, str):
            raise ArgumentError(
                f"{argument} is str; it must be {wanted} (model.tokenizer.encode(text) gives them)"
            )
        if isinstance(tokens, (bytes, bytearray, memoryview)):
            raise ArgumentError(
                f"{argument} is {type(tokens).__name__}; it must be {wanted} "
                "(bytes of a text become one with .decode())"
            )
        ids = _array_of(tokens)
        if ids is None:
            raise ArgumentError(f"{argument} is {_shorten(tokens)}; it must be {wanted}")
        if not ids.size:
            return np.empty(0, dtype=np.uint32)
        vocab_size = self._config.vocab_size
        bad = np.flatnonzero((ids < 0) | (ids >= vocab_size))
        if bad.size:
            raise ArgumentError(
                f"{argument}[{bad[0]}] is {ids[bad[0]]}; token ids of this model go from 0 to "
                f"{vocab_size - 1}"
            )
        return ids.astype(np.uint32)

    def _start(
        self,
        native: _core.NativeModel,
        tokens: NDArray[np.uint32],
        options: SamplingOptions,
        stream: bool,
    ) -> Completion | TextStream:
        limit = _NO_LIMIT if options.max_tokens is None else min(options.max_tokens, _NO_LIMIT)
        generation = native.start(
            tokens,
            max_tokens=limit,
            stop_ids=sorted(self._tokenizer.stop_ids),
            sampling=options.packed(seed=int.from_bytes(os.urandom(8), "little")),
            logit_bias=dict(options.logit_bias),
        )
        pieces = TextStream(native, generation, self._tokenizer, tokens.tolist(), options.stop)
        if stream:
            return pieces
        with pieces:
            for _ in pieces:
                pass
        return pieces.completion


@explains_typos
def load(
    path_or_name: str | os.PathLike[str] = "ember",
    /,
    *,
    device: str = "auto",
    context: int | None = None,
    threads: int | None = None,
    kv_type: str = "f16",
    kv_memory: int | None = None,
    prefix_cache: bool = True,
    local_only: bool = False,
) -> Model:
    """Load a model from a GGUF file, or by its name; one of the hub is fetched if it is missing.

    `path_or_name`: a file's path ("~" is your home); "ember", the small demonstration model (a file
    of that name is "./ember"); "org/repo" or "org/repo:Q4_K_M" on the Hugging Face hub; an https
    address; or a model that Ollama has here, "llama3.2:1b". `local_only`: never use the network.
    The others are explained at `LoadOptions`. `Model.notes` says what was decided that you might
    not expect.

    Raises ArgumentError (no such file or name, or an option that makes no sense), DownloadError (a
    model could not be fetched), ModelFormatError (the file contradicts its format),
    UnsupportedModelError (it asks for something that akunu does not have), OutOfMemoryError (it
    does not fit; nothing was allocated) or DeviceError.

    >>> import akunu
    >>> with akunu.load("ember", context=512) as model:
    ...     model.context
    512
    """
    options = LoadOptions(
        device=device,
        context=context,
        threads=threads,
        kv_type=kv_type,
        kv_memory=kv_memory,
        prefix_cache=prefix_cache,
    )
    path = _find(path_or_name, options, local_only=local_only)
    # The engine maps the weights in a thread of its own while this one checks the vocabulary (which
    # takes longer, if it is large) and stays open for Ctrl-C.
    loading = _begin_load(path, options)
    try:
        file = _core.GgufFile(os.fspath(path))
        tokenizer = Tokenizer._of_file(file)
    except (AkunuError, OSError):
        try:
            loading.result().close()
        except (AkunuError, OSError) as error:
            raise error from None  # what is wrong with the model says more
        raise
    except BaseException:
        loading.abandon()
        raise
    return Model(loading.result(), tokenizer, path, file)


def _begin_load(path: Path, options: LoadOptions) -> _core.NativeLoad:
    """Have the engine load its part of a model; nobody has to wait for it."""
    return _core.NativeLoad(
        os.fspath(path),
        device=options.device,
        context=options.context,
        threads=options.threads or 0,
        kv_type=options.kv_type,
        kv_memory=options.kv_memory,
        prefix_cache=options.prefix_cache,
    )


def _find(
    path_or_name: str | os.PathLike[str],
    options: LoadOptions | None = None,
    watch: Watch | None = None,
    *,
    local_only: bool = False,
) -> Path:
    """Return the file of a path or name, fetched if need be; ArgumentError where there is none."""
    if isinstance(path_or_name, str) and path_or_name in PACKAGED_MODELS:
        return PACKAGED_MODELS[path_or_name]
    if not isinstance(path_or_name, (str, os.PathLike)):
        raise ArgumentError(
            f"path_or_name must be a str or a path, got {type(path_or_name).__name__}"
        )
    shown = os.fsdecode(path_or_name)
    path = Path(shown)
    if not _exists(path) and shown.startswith("~"):
        with suppress(RuntimeError):  # there is no such user
            path = path.expanduser()
    if shown and _exists(path):
        return path  # the engine says what a directory is
    if isinstance(path_or_name, str) and path_or_name.lower() in PACKAGED_MODELS:
        return PACKAGED_MODELS[path_or_name.lower()]  # as a sentence or a title writes it
    if isinstance(path_or_name, str):
        from akunu.hub.find import find  # what is a file needs none of it
        from akunu.hub.watch import SILENT

        return find(path_or_name, options or LoadOptions(), watch or SILENT, local_only=local_only)
    raise ArgumentError(f"{_shorten(shown)} is not a file, and only a str can be a model's name")


def _exists(path: Path) -> bool:
    """Whether there is something at a path; ArgumentError where nobody lets us look."""
    try:
        return path.exists()
    except PermissionError as error:
        raise ArgumentError(f"{path}: cannot be opened: {error.strerror}") from None
    except (ValueError, OSError):  # a null character, a name too long
        return False


def _array_of(tokens: object) -> NDArray[Any] | None:
    """Return a flat sequence of integers as an array, None where it is something else."""
    listed = tokens if isinstance(tokens, Sequence) else None
    if listed is None and not hasattr(tokens, "__array__"):
        return None  # a set has no order, and a generator would be empty the next time
    try:
        array = np.asarray(tokens)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths
        return None
    if array.ndim == 1 and (array.dtype.kind in "iu" or not array.size):
        return array
    if listed is None or array.ndim != 1 or array.dtype.kind not in "fO":
        return None
    # Integers that NumPy has no common type for, or that are too large for any.
    try:
        return np.array([operator.index(token) for token in listed], dtype=object)
    except TypeError:
        return None


def _shorten(value: object) -> str:
    shown = repr(value)  # a path is known by its end, a text taken for one by its beginning
    return shown if len(shown) <= 120 else f"{shown[:40]}...{shown[-77:]}"
