"""Text that is still being written: an iterator over its pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, cast

from akunu._stop_strings import StopFinder
from akunu.completion import Completion, FinishReason
from akunu.errors import AkunuError, MisuseError

if TYPE_CHECKING:
    from akunu import _core
    from akunu.tokenizer import Tokenizer


class TextStream(Iterator[str]):
    """The pieces of a text, as they are generated; made by `generate` and `chat`.

    Each piece is a non-empty str of whole characters. After the last one `completion` is the whole
    text with the facts about it. Leaving the loop early, an exception in it, `close()` and losing
    the last reference all cancel the generation; the model goes on to be usable. Closing the model
    ends it with an AkunuError. One thread at a time may take pieces; any may close it.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     stream = model.generate("Once", max_tokens=4, stream=True)
    ...     text = "".join(stream)
    >>> stream.completion == text
    True
    """

    def __init__(
        self,
        model: _core.NativeModel,
        generation: _core.Generation,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        stop: Sequence[str] = (),
    ) -> None:
        """Use `Model.generate(..., stream=True)`."""
        self._model = model  # without it, the engine would end the generation
        self._generation = generation
        self._vocab_size = tokenizer.vocab_size
        before = [token for token in prompt[-1:] if token < self._vocab_size]
        self._decoder = tokenizer.stream(skip_special=True, prompt=before)
        self._stops = StopFinder(stop)
        self._tokens: list[int] = []
        self._ends: list[int] = []  # for each token, the characters of text that it is part of
        self._length = 0  # characters of text so far, those held back included
        self._pieces: list[str] = []
        self._reason: FinishReason | None = None
        self._completion: Completion | None = None

    @property
    def completion(self) -> Completion:
        """The whole text with the facts about it; AkunuError before it is over."""
        if self._reason is None:
            raise AkunuError("the text is not complete yet: take all pieces or close the stream")
        if self._completion is None:
            text = "".join(self._pieces)
            n_kept = len(self._tokens)
            if self._reason == "cancelled" or self._stops.found is not None:
                n_kept = self._whole_tokens(len(text))
            self._completion = Completion(
                text,
                token_ids=self._tokens[:n_kept],
                finish_reason=self._reason,
                stop=self._stops.found,
                prompt_tokens=self.prompt_tokens,
                completion_tokens=self.completion_tokens,
                cached_tokens=self.cached_tokens,
                prompt_seconds=self.prompt_seconds,
                completion_seconds=self.completion_seconds,
            )
        return self._completion

    @property
    def finish_reason(self) -> str:
        """Why it ended, "" before that.

        "stop": the model or a stop string ended the text. "length": `max_tokens` or the context
        allows no more. "cancelled": it was closed before its end.
        """
        return self._reason or ""

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt."""
        return self._generation.prompt_tokens

    @property
    def prompt_tokens_done(self) -> int:
        """How many of the prompt's tokens are computed so far, or were found in the cache."""
        return self._generation.prompt_tokens_done

    @property
    def cached_tokens(self) -> int:
        """How many of the prompt's tokens were found in the cache; 0 until it is their turn."""
        return self._generation.cached_tokens

    @property
    def completion_tokens(self) -> int:
        """Number of tokens taken so far."""
        return len(self._tokens)

    @property
    def prompt_seconds(self) -> float:
        """Seconds from the request to the first token, 0 before it."""
        return self._generation.prompt_seconds

    @property
    def completion_seconds(self) -> float:
        """Seconds from the first token to the latest that was taken."""
        return self._generation.completion_seconds(len(self._tokens))

    def __iter__(self) -> TextStream:
        """Return the stream itself."""
        return self

    def __next__(self) -> str:
        """Wait for the next piece of text."""
        try:
            while self._reason is None:
                tokens = self._generation.next()
                piece = self._finished() if tokens is None else self._taken(tokens)
                if piece:
                    self._pieces.append(piece)
                    return piece
        except BaseException:  # KeyboardInterrupt above all
            self.close()
            raise
        raise StopIteration

    def _taken(self, tokens: Sequence[int]) -> str:
        """Return the text that may be shown now that these tokens have come."""
        pieces = []
        for token in tokens:
            # A model may have more rows than its vocabulary has tokens: those have no text.
            text = self._decoder.push(token) if token < self._vocab_size else ""
            self._length += len(text)
            self._tokens.append(token)
            self._ends.append(self._length + self._decoder.is_within_character)
            pieces.append(self._stops.push(text))
            if self._stops.found is not None:
                self._reason = "stop"
                break
        piece = "".join(pieces)
        if self._stops.found is not None:
            shown = sum(map(len, self._pieces)) + len(piece)
            self._generation.cut(self._whole_tokens(shown))
        return piece

    def _whole_tokens(self, n_characters: int) -> int:
        """Return how many tokens have all of their text within the first characters."""
        return bisect_right(self._ends, n_characters)

    def _finished(self) -> str:
        """Return the last of the text, now that no more tokens come."""
        if self._reason is not None:  # closed by another thread meanwhile
            return ""
        piece = self._stops.push(self._decoder.finish())
        if self._stops.found is not None:
            self._reason = "stop"
            return piece
        self._reason = cast(FinishReason, self._generation.finish_reason)
        return piece + self._stops.finish()

    def close(self) -> None:
        """Cancel what is left; there are no more pieces after that. Closing twice is fine."""
        if self._reason is None:
            self._reason = "cancelled"
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

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: a piece can be taken only once."""
        raise MisuseError(
            "a TextStream cannot be copied or pickled; take its pieces with str.join or a loop, "
            "then its completion can be"
        )

    def __del__(self) -> None:
        """Cancel what nobody can read any more."""
        if hasattr(self, "_completion"):
            self.close()
