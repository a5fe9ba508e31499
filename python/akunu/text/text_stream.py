"""Text that is still being written: an iterator over its pieces."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

from akunu.errors import AkunuError, MisuseError
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, TextDelta

if TYPE_CHECKING:
    from akunu import _core
    from akunu.common.prefix_end import PrefixEnd
    from akunu.text.logprobs import TokenLogprob
    from akunu.text.reply_decoder import ReplyDecoder


class StreamFacts:
    """What TextStream and AsyncTextStream have in common: the facts about the text so far."""

    def __init__(self, model: _core.NativeModel, decoder: ReplyDecoder | None = None) -> None:
        """Use `Model.generate(..., stream=True)`, or `Model.generate_async`."""
        self._model = model  # without it, the engine would end the generation
        self._decoder = decoder  # None before it begins

    @property
    def completion(self) -> Completion:
        """The whole text with the facts about it; AkunuError before it is over."""
        if self._decoder is None:
            raise AkunuError("the stream has not begun: read it first")
        return self._decoder.completion

    @property
    def finish_reason(self) -> str:
        """Why it ended, "" before that.

        "stop": the model or a stop string ended the text. "length": `max_tokens` or the context
        allows no more. "cancelled": it was closed before its end.
        """
        return "" if self._decoder is None else self._decoder.reason or ""

    @property
    def holds_calls(self) -> bool:
        """Whether a grammar holds the calls of this reply: what begins as one is one.

        Otherwise a ToolCallDropped may follow. A reader that cannot take a call back waits for its
        ToolCallEnd, or its ToolCallCut where `max_tokens` ends the reply within it.
        """
        return self._decoder is not None and self._decoder.holds_calls

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The ids of the tokens whose text has come so far; see `Completion.token_ids`."""
        return () if self._decoder is None else self._decoder.token_ids

    @property
    def logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """Those of the tokens whose text has come so far; None unless asked for.

        They grow with the pieces: what is new after a piece belongs to it.
        """
        return None if self._decoder is None else self._decoder.logprobs

    @property
    def answer_logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """Likewise, without those of the reasoning; see `Completion.answer_logprobs`."""
        return None if self._decoder is None else self._decoder.answer_logprobs

    @property
    def prompt_logprobs(self) -> tuple[TokenLogprob | None, ...] | None:
        """Those of the prompt's tokens, None for the first; None unless asked for.

        They are complete when the first piece that was generated has come.
        """
        return None if self._decoder is None else self._decoder.prompt_logprobs

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt."""
        return 0 if self._decoder is None else self._decoder.generation.prompt_tokens

    @property
    def prompt_tokens_done(self) -> int:
        """How many of the prompt's tokens are computed so far, or were found in the cache."""
        return 0 if self._decoder is None else self._decoder.generation.prompt_tokens_done

    @property
    def cached_tokens(self) -> int:
        """How many of the prompt's tokens were found in the cache; 0 until it is their turn."""
        return 0 if self._decoder is None else self._decoder.generation.cached_tokens

    @property
    def prefix_end(self) -> PrefixEnd:
        """Why they are no more; see `Completion`. "" until it is their turn."""
        return "" if self._decoder is None else self._decoder.generation.prefix_end

    @property
    def drafted_tokens(self) -> int:
        """Number of tokens drafted so far; see `Completion`."""
        return 0 if self._decoder is None else self._decoder.generation.drafted_tokens

    @property
    def accepted_tokens(self) -> int:
        """How many of the tokens drafted were chosen."""
        return 0 if self._decoder is None else self._decoder.generation.held_tokens

    @property
    def completion_tokens(self) -> int:
        """Number of tokens taken so far."""
        return 0 if self._decoder is None else self._decoder.n_tokens

    @property
    def prompt_seconds(self) -> float:
        """Seconds from the request to the first token, 0 before it."""
        return 0 if self._decoder is None else self._decoder.generation.prompt_seconds

    @property
    def completion_seconds(self) -> float:
        """Seconds from the first token to the latest that was taken."""
        decoder = self._decoder
        return 0.0 if decoder is None else decoder.generation.completion_seconds(decoder.n_tokens)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: a piece can be taken only once."""
        raise MisuseError(
            f"a {type(self).__name__} cannot be copied or pickled; read it with a loop; its "
            f"completion can be copied"
        )

    def __del__(self) -> None:
        """Cancel what no one can read any more."""
        decoder: ReplyDecoder | None = getattr(self, "_decoder", None)
        if decoder is not None:
            decoder.cancel()


class TextStream(StreamFacts, Iterator[str]):
    """The pieces of a text, as they are generated; made by `generate` and `chat`.

    Each piece is a non-empty str of whole characters. After the last one `completion` is the whole
    text with the facts about it. Leaving the loop early, an exception in it, `close()` and losing
    the last reference all cancel the generation; the model continues to be usable. Closing the
    model ends it with an AkunuError. One thread at a time may take pieces; any may close it.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     stream = model.generate("Once", max_tokens=4, stream=True)
    ...     text = "".join(stream)
    >>> stream.completion == text
    True
    """

    _decoder: ReplyDecoder

    def __iter__(self) -> TextStream:
        """Return the stream itself."""
        return self

    def __next__(self) -> str:
        """Wait for the next piece of text."""
        for delta in self.deltas():
            if isinstance(delta, TextDelta):
                return delta.text
        raise StopIteration

    def deltas(self) -> Iterator[Delta]:
        """Yield the parts of the reply as they come, those that are not text among them.

        `akunu.text.deltas` has their types. Text, deltas, or one after the other: each part comes
        once.

        >>> import akunu
        >>> with akunu.load() as model:
        ...     stream = model.chat([{"role": "user", "content": "Hi!"}], max_tokens=4, stream=True)
        ...     kinds = {type(delta).__name__ for delta in stream.deltas()}
        >>> kinds
        {'TextDelta'}
        """
        decoder = self._decoder
        while True:
            while decoder.pending:
                yield decoder.pending.popleft()
            if decoder.reason is not None:
                return
            try:
                decoder.take(decoder.generation.next())
            except BaseException:  # KeyboardInterrupt above all
                self.close()
                raise

    def complete(self) -> Completion:
        """Take all pieces and return the completion."""
        decoder = self._decoder
        try:
            while decoder.reason is None:
                decoder.take(decoder.generation.next())
        finally:
            self.close()
        decoder.pending.clear()
        return decoder.completion

    def close(self) -> None:
        """Cancel what is left; there are no more pieces after that. Closing twice is fine."""
        self._decoder.cancel()

    def __enter__(self) -> TextStream:
        """Return the stream itself."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
