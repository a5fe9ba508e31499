"""Beam search against all texts, and words out of an attention that is known."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from akunu.speech.beam_search import Tokens, beam_search
from akunu.speech.words import TimedWord, fit_to_segment, token_times, warp
from lines import each_line

END, VOCAB, LONGEST = 0, 4, 4


def logprobs_of(text: Tokens, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, *text])
    logits = rng.standard_normal(VOCAB) * 2
    return logits - np.log(np.exp(logits).sum())


def expand_by(seed: int, width: int):
    def expand(texts: Sequence[Tokens]) -> list[list[tuple[int, float]]]:
        found = []
        for text in texts:
            logprobs = logprobs_of(text, seed)
            order = np.argsort(-logprobs)[:width]
            if len(text) == LONGEST - 1:
                order = np.array([END])
            found.append([(int(token), float(logprobs[token])) for token in order])
        return found

    return expand


def every_text(seed: int) -> dict[Tokens, float]:
    """All texts that end, with their log-probability."""
    found = {}
    for n in range(LONGEST):
        for text in itertools.product(range(1, VOCAB), repeat=n):
            steps = [logprobs_of(text[:i], seed)[token] for i, token in enumerate((*text, END))]
            found[text] = float(sum(steps))
    return found


@each_line("seed", range(10))
def test_beams_for_all_texts_find_the_best(seed: int) -> None:
    texts = every_text(seed)
    beams = VOCAB**LONGEST
    best = beam_search(expand_by(seed, VOCAB), END, beams, 1.0, LONGEST)
    ranked = {text: logprob / max(1, len(text)) for text, logprob in texts.items()}
    assert best.tokens == max(ranked, key=lambda text: ranked[text])
    assert best.logprob == pytest.approx(texts[best.tokens])


@each_line("seed", range(10))
def test_one_beam_is_greedy(seed: int) -> None:
    text: Tokens = ()
    while len(text) < LONGEST - 1:
        token = int(np.argmax(logprobs_of(text, seed)))
        if token == END:
            break
        text = (*text, token)
    found = beam_search(expand_by(seed, 2), END, 1, 1.0, LONGEST)
    # A text that could have ended earlier is compared with where it did.
    assert found.tokens == text or found.tokens == text[: len(found.tokens)]


def test_patience_waits_for_more_texts() -> None:
    """The first text to end is not the best; patience sees the second."""

    def expand(texts: Sequence[Tokens]) -> list[list[tuple[int, float]]]:
        table = {
            (): [(END, -0.6), (1, -0.7)],
            (1,): [(2, -0.01), (END, -5.0)],
            (1, 2): [(END, -0.01), (3, -4.0)],
        }
        return [table.get(tuple(text), [(END, -9.0)]) for text in texts]

    assert beam_search(expand, END, 1, 1.0, 9).tokens == ()
    assert beam_search(expand, END, 1, 2.0, 9).tokens == (1, 2)


@each_line("seed", range(5))
def test_the_way_is_the_cheapest_of_all(seed: int) -> None:
    cost = np.random.default_rng(seed).standard_normal((3, 5))
    cheapest = np.full(cost.shape, np.inf)
    for i, j in np.ndindex(cost.shape):
        before = [
            cheapest[a, b] for a, b in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if a >= 0 <= b
        ]
        cheapest[i, j] = cost[i, j] + min(before, default=0.0)
    rows, columns = warp(cost)
    assert cost[rows, columns].sum() == pytest.approx(cheapest[-1, -1])
    assert (rows[0], columns[0], rows[-1], columns[-1]) == (0, 0, 2, 4)
    assert set(np.diff(rows)) <= {0, 1}
    assert set(np.diff(columns)) <= {0, 1}


def test_tokens_begin_where_the_heads_listen() -> None:
    places = [0, 5, 40, 41, 90]
    weights = np.full((5, 2, 120), 1e-4, np.float32)
    for row, (place, end) in enumerate(itertools.pairwise([*places, 120])):
        weights[row, :, place:end] = 1
    times = token_times(weights, slice(0, 5), 110)
    np.testing.assert_allclose(times, np.array(places) * 0.02, atol=0.061)  # half of a median


def test_a_word_after_a_pause_is_no_longer_than_words_are() -> None:
    words = [TimedWord(" Or", 10.0, 15.0, 1.0), TimedWord(" 8", 15.0, 15.3, 1.0)]
    start, end = fit_to_segment(words, 14.0, 15.5, 0.3, 9.0)
    assert (start, end) == (pytest.approx(14.4), 15.3)
    assert words[0].start == pytest.approx(14.4)
