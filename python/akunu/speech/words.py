"""When each word is said: the model's attention to speech, aligned with its text.

Attention of some heads follows what is said. Dynamic time warping finds the way through it on which
every token has a stretch of time; words are tokens up to the next space.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from akunu.speech.segments import Word
from akunu.speech.vocabulary.tokenizer import SECONDS_PER_TIMESTAMP, WhisperTokenizer

BEFORE = "\"'“¿([{-"
"""Punctuation that belongs to the word after it."""
BEHIND = "\"'.。,，!！?？:：”)]}、"
"""Punctuation that belongs to the word before it."""
_WITHOUT_SPACES = ("zh", "ja", "th", "lo", "my", "yue")
_SENTENCE_ENDS = ".。!！?？"
_MEDIAN = 7
"""Positions that a median is of."""
_LONGEST_MEDIAN = 0.7
"""Seconds: no language's words are longer as a rule."""


@dataclass(slots=True)
class TimedWord:
    """A word in the making."""

    word: str
    start: float
    end: float
    probability: float

    def finished(self) -> Word:
        """Return it as users see it."""
        return Word(round(self.start, 2), round(self.end, 2), self.word, self.probability)


def word_pieces(
    tokenizer: WhisperTokenizer, tokens: Sequence[int], language: str
) -> list[tuple[str, int]]:
    """Return words, and how many tokens each has."""
    pieces = _characters(tokenizer, tokens)
    if language in _WITHOUT_SPACES:
        return pieces
    words: list[tuple[str, int]] = []
    for text, n in pieces:
        begins = text.startswith(" ") or text.strip() in string.punctuation
        if begins or not words:
            words.append((text, n))
        else:
            words[-1] = (words[-1][0] + text, words[-1][1] + n)
    return words


def _characters(tokenizer: WhisperTokenizer, tokens: Sequence[int]) -> list[tuple[str, int]]:
    """Tokens whose texts are whole characters; one may need several."""
    whole = tokenizer.decode(tokens)
    pieces: list[tuple[str, int]] = []
    open_tokens: list[int] = []
    at = 0
    for token in tokens:
        open_tokens.append(token)
        text = tokenizer.decode(open_tokens)
        broken = text.find("\ufffd")
        is_really_there = broken >= 0 and whole[at + broken : at + broken + 1] == "\ufffd"
        if broken < 0 or is_really_there:
            pieces.append((text, len(open_tokens)))
            at += len(text)
            open_tokens = []
    if open_tokens:
        pieces.append((tokenizer.decode(open_tokens), len(open_tokens)))
    return pieces


def token_times(
    weights: NDArray[np.float32], wanted: slice, n_positions: int
) -> NDArray[np.float64]:
    """Return the seconds at which the tokens of the `wanted` rows begin.

    `weights`: attention of the alignment heads, [rows, heads, positions]; a row belongs to the
    token before the one that it chooses. `n_positions`: positions of the window that are audio.
    """
    heard: NDArray[Any] = weights[:, :, :n_positions].astype(np.float64)
    shares: NDArray[Any] = heard / np.maximum(heard.sum(axis=2, keepdims=True), 1e-30)
    deviation = shares.std(axis=0)
    scaled: NDArray[Any] = (shares - shares.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    attention = _medians(scaled).mean(axis=1)[wanted]
    rows, positions = warp(-attention)
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    return positions[begins].astype(np.float64) * SECONDS_PER_TIMESTAMP


def _medians(values: NDArray[Any]) -> NDArray[Any]:
    """Medians of each number and its neighbours, along the last axis; mirrored at both ends."""
    pad = _MEDIAN // 2
    if values.shape[-1] <= pad:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(pad, pad)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _MEDIAN, axis=-1)
    middle: NDArray[Any] = np.partition(windows, pad, axis=-1)[..., pad]
    return middle


def warp(cost: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the cheapest way from the first corner of a matrix to the last, as rows and columns.

    A step goes to the next row, the next column, or both.

    >>> rows, columns = warp(np.array([[0.0, 0.0, 9.0], [9.0, 9.0, 0.0]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1], [0, 1, 2])
    """
    n, m = cost.shape
    # Along diagonals, whose numbers depend on those of the two before alone.
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0
    step = np.zeros((n + 1, m + 1), np.int8)
    step[0, :], step[:, 0] = 2, 1
    for diagonal in range(n + m - 1):
        i = np.arange(max(0, diagonal - m + 1), min(n, diagonal + 1))
        j = diagonal - i
        ways = np.stack([total[i, j], total[i, j + 1], total[i + 1, j]])
        # Ways that cost the same take the next column, as Whisper's own program does.
        best = np.where(
            (ways[0] < ways[1]) & (ways[0] < ways[2]),
            0,
            np.where((ways[1] < ways[0]) & (ways[1] < ways[2]), 1, 2),
        )
        step[i + 1, j + 1] = best
        total[i + 1, j + 1] = cost[i, j] + np.take_along_axis(ways, best[None], axis=0)[0]
    rows, columns = [], []
    i_at, j_at = n, m
    while i_at > 0 or j_at > 0:
        rows.append(i_at - 1)
        columns.append(j_at - 1)
        way = step[i_at, j_at]
        i_at -= way != 2
        j_at -= way != 1
    return np.array(rows[::-1], np.intp), np.array(columns[::-1], np.intp)


def timed_words(
    tokenizer: WhisperTokenizer,
    texts: Sequence[Sequence[int]],
    language: str,
    times: NDArray[np.float64],
    logprobs: NDArray[np.float32],
) -> list[list[TimedWord]]:
    """Return the words of each segment's text tokens.

    `times`: at which each token of all begins, and the end of the last. `logprobs`: of each token.
    """
    segments: list[list[TimedWord]] = []
    at = 0
    probabilities = np.exp(logprobs.astype(np.float64))
    for text in texts:
        words = []
        for word, n in word_pieces(tokenizer, text, language):
            probability = float(probabilities[at : at + n].mean())
            words.append(TimedWord(word, float(times[at]), float(times[at + n]), probability))
            at += n
        segments.append(words)
    every = [word for words in segments for word in words]
    _shorten_at_sentences(every, usual_duration(every))
    return [_with_punctuation(words) for words in segments]


def usual_duration(words: Sequence[TimedWord]) -> float:
    """Return the median of what words take, in seconds."""
    durations = [word.end - word.start for word in words if word.end != word.start]
    return min(_LONGEST_MEDIAN, float(np.median(durations))) if durations else 0.0


def _shorten_at_sentences(words: list[TimedWord], usual: float) -> None:
    """A pause belongs to no word: where sentences meet, a long one loses it."""
    if usual == 0:
        return
    for before, word in pairwise(words):
        if word.end - word.start <= 2 * usual:
            continue
        if word.word.strip() in _SENTENCE_ENDS:
            word.end = word.start + 2 * usual
        elif before.word.strip() in _SENTENCE_ENDS:
            word.start = word.end - 2 * usual


def _with_punctuation(words: list[TimedWord]) -> list[TimedWord]:
    """Punctuation joins its word, which keeps its times."""
    at = len(words) - 1
    for i in range(len(words) - 2, -1, -1):
        one, other = words[i], words[at]
        if one.word.startswith(" ") and one.word.strip() and one.word.strip() in BEFORE:
            other.word = one.word + other.word
            one.word = ""
        else:
            at = i
    at = 0
    for i in range(1, len(words)):
        one, other = words[at], words[i]
        if other.word and one.word and not one.word.endswith(" ") and other.word in BEHIND:
            one.word += other.word
            other.word = ""
        else:
            at = i
    return [word for word in words if word.word]


def fit_to_segment(
    words: list[TimedWord], start: float, end: float, usual: float, spoken_until: float
) -> tuple[float, float]:
    """Return the segment's times by its words', some of which are shortened.

    The first words after a pause are no longer than words are; and where the segment's own times
    are far inside of a word, they are the better ones.
    """
    longest = 2 * usual
    first, last = words[0], words[-1]
    second = words[1] if len(words) > 1 else None
    after_pause = first.end - spoken_until > 4 * usual
    is_long = first.end - first.start > longest or (
        second is not None and second.end - first.start > 2 * longest
    )
    if after_pause and is_long:
        if second is not None and second.end - second.start > longest:
            first.end = second.start = max(second.end / 2, second.end - longest)
        first.start = max(0.0, first.end - longest)
    if start < first.end and start - 0.5 > first.start:
        first.start = max(0.0, min(first.end - usual, start))
    else:
        start = first.start
    if end > last.start and end + 0.5 < last.end:
        last.end = max(last.start + usual, end)
    else:
        end = last.end
    return start, end
