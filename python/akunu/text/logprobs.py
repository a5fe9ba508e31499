"""Log-probabilities of tokens: the chosen ones or those of the prompt, and the most likely ones.

They are logarithms of the model's own probabilities, before biases, penalties and filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from akunu import _core
    from akunu.tokenizers.tokenizer import Tokenizer

    Arrays = tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token and the natural logarithm of its probability.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     reply = model.generate("The sea", max_tokens=2, logprobs=3)
    >>> first = reply.logprobs[0]
    >>> first.token_id == reply.token_ids[0], first.top[0].logprob >= first.logprob, len(first.top)
    (True, True, 3)
    """

    token_id: int
    text: str
    """Its text; bytes that are only a part of a character show as U+FFFD."""
    bytes: bytes
    """What it adds to a text."""
    logprob: float
    top: tuple[TokenLogprob, ...] = ()
    """The most likely tokens in its place, as many as were requested, best first."""


class LogprobReader:
    """Takes the logprobs of a text from the engine, as they are requested."""

    def __init__(
        self,
        generation: _core.Generation,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        n: int | None,
        n_prompt: int | None,
    ) -> None:
        """Read those of tokens chosen, with the n most likely, and of the prompt; None: none."""
        self._generation = generation
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._n = n
        self._n_prompt = n_prompt
        self._known: list[TokenLogprob] = []

    def of(self, tokens: Sequence[int]) -> tuple[TokenLogprob, ...] | None:
        """Return those of the text's first tokens, which are passed."""
        if self._n is None:
            return None
        known = len(self._known)
        arrays = self._generation.logprobs(known, max(0, len(tokens) - known))
        self._known += self._made(tokens[known:], arrays, self._n)
        return tuple(self._known[: len(tokens)])

    def of_prompt(self) -> tuple[TokenLogprob | None, ...] | None:
        """Return those of the prompt's tokens; nothing comes before the first one."""
        if self._n_prompt is None:
            return None
        arrays = self._generation.prompt_logprobs()
        return (None, *self._made(self._prompt[1:], arrays, self._n_prompt))

    def _made(self, tokens: Sequence[int], arrays: Arrays, n: int) -> list[TokenLogprob]:
        own, ids, logprobs = (array.tolist() for array in arrays)
        return [
            self._one(
                token,
                own[i],
                tuple(self._one(*each) for each in zip(ids[i][:n], logprobs[i][:n], strict=True)),
            )
            for i, token in enumerate(tokens[: len(own)])
        ]

    def _one(self, token: int, logprob: float, top: tuple[TokenLogprob, ...] = ()) -> TokenLogprob:
        # A model may have more rows than its vocabulary has tokens: those have no text.
        known = token < self._tokenizer.vocab_size
        spelled = self._tokenizer.token_bytes(token) if known else b""
        return TokenLogprob(token, spelled.decode(errors="replace"), spelled, logprob, top)
