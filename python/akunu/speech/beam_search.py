"""Beam search, with patience (Kasai et al., 2022): the likeliest texts, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Tokens = tuple[int, ...]
Expand = Callable[[Sequence[Tokens]], "list[list[tuple[int, float]]]"]
"""Returns for each text the likeliest tokens that may follow, with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text, without its end, and the log-probability of all of it."""

    tokens: Tokens
    logprob: float

    @property
    def rank(self) -> float:
        """What the best text has most of: a token's mean log-probability."""
        return self.logprob / max(1, len(self.tokens))


def beam_search(
    expand: Expand, end: int, beam_size: int, patience: float, most_tokens: int
) -> Hypothesis:
    """Return the best text that ends, or of those that do not the best.

    `expand` gives beam_size + 1 tokens of each text, so that one may be the end. The search is over
    when beam_size * patience texts have ended.

    >>> def follow(texts):
    ...     return [[(7, -0.1), (0, -3.0)] if len(text) < 2 else [(0, -0.1)] for text in texts]
    >>> beam_search(follow, 0, 1, 1.0, 10).tokens
    (7, 7)
    """
    wanted = max(1, round(beam_size * patience))
    live = [Hypothesis((), 0.0)]
    ended: list[Hypothesis] = []
    for _ in range(most_tokens):
        candidates = [
            (text.logprob + logprob, text.tokens, token)
            for text, following in zip(live, expand([text.tokens for text in live]), strict=True)
            for token, logprob in following
        ]
        # The sort is stable: equally likely ones stay in their order.
        candidates.sort(key=lambda each: -each[0])
        live, ending = [], []
        for logprob, tokens, token in candidates:
            if token == end:
                ending.append(Hypothesis(tokens, logprob))
            else:
                live.append(Hypothesis((*tokens, token), logprob))
            if len(live) == beam_size:
                break
        ended += ending[: wanted - len(ended)]
        if len(ended) >= wanted or not live:
            break
    if len(ended) < beam_size:
        ended += live[: beam_size - len(ended)]
    return max(ended, key=lambda text: text.rank)
