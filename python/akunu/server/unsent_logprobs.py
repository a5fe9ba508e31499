"""Which logprobs a stream has not told yet."""

from __future__ import annotations

from collections.abc import Sequence

from akunu.text.logprobs import TokenLogprob


class UnsentLogprobs:
    """Counts, for each text of a request, the logprobs that were reported."""

    def __init__(self) -> None:
        """Nothing is reported."""
        self._n_told: dict[int, int] = {}

    def take(self, known: Sequence[TokenLogprob] | None, index: int = 0) -> Sequence[TokenLogprob]:
        """Return those of a text that came since the last call; they count as told."""
        known = known or ()
        new = known[self._n_told.get(index, 0) :]
        self._n_told[index] = len(known)
        return new
