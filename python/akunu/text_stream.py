"""Text that is still being written: an iterator over its pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from akunu import _core
    from akunu.tokenizer import Tokenizer

# How long a wait for tokens may last before Python gets to look at signals.
_POLL_MS = 50


class TextStream(Iterator[str]):
    """The pieces of a text, as they are generated; made by `generate` and `chat`.

    Each piece is a non-empty str of whole characters. Leaving the loop early, an exception in it,
    `close()` and losing the last reference all cancel the generation; the model goes on to be
    usable. Closing the model ends it with an AkunuError. One thread at a time may take pieces.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     for piece in model.generate("Once", max_tokens=4, stream=True):
    ...         print(piece, end="", flush=True)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: _core.NativeModel,
        generation: _core.Generation,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
    ) -> None:
        """Use `Model.generate(..., stream=True)`."""
        self._model = model  # without it, the engine would end the generation
        self._generation = generation
        self._vocab_size = tokenizer.vocab_size
        before = [token for token in prompt[-1:] if token < self._vocab_size]
        self._decoder = tokenizer.stream(skip_special=True, prompt=before)
        self._finished = False
        self._cancelled = False

    @property
    def finish_reason(self) -> str:
        """Why it ended, "" before that.

        "stop": the model ended the text. "length": `max_tokens` or the context allows no more.
        "cancelled": it was closed before its end.
        """
        if self._cancelled:
            return "cancelled"
        return self._generation.finish_reason if self._finished else ""

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt."""
        return self._generation.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """Number of tokens generated so far."""
        return self._generation.completion_tokens

    @property
    def prompt_seconds(self) -> float:
        """Seconds from the request to the first token."""
        return self._generation.prompt_seconds

    @property
    def completion_seconds(self) -> float:
        """Seconds from the first token to the latest."""
        return self._generation.completion_seconds

    def __iter__(self) -> TextStream:
        """Return the stream itself."""
        return self

    def __next__(self) -> str:
        """Wait for the next piece of text."""
        try:
            while not self._finished:
                tokens = self._generation.next(_POLL_MS)
                if tokens is None:
                    self._finished = True
                    piece = self._decoder.finish()
                else:
                    # A model may have more rows than its vocabulary has tokens: those have no text.
                    known = [token for token in tokens if token < self._vocab_size]
                    piece = "".join([self._decoder.push(token) for token in known])
                if piece:
                    return piece
        except BaseException:  # KeyboardInterrupt above all
            self.close()
            raise
        raise StopIteration

    def close(self) -> None:
        """Cancel what is left; there are no more pieces after that. Closing twice is fine."""
        if not self._finished:
            self._finished = self._cancelled = True
            self._generation.cancel()

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

    def __del__(self) -> None:
        """Cancel what nobody can read any more."""
        if hasattr(self, "_cancelled"):
            self.close()
