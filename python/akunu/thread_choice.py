"""`threads="auto"`: a model reads and writes with several numbers of threads; the best is taken.

What a model writes never depends on it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from akunu import _core
from akunu.errors import AkunuError
from akunu.options.option_checks import AUTO
from akunu.options.text_options import LoadOptions, SamplingOptions

PROMPT_TOKENS: Final = 256
"""Prompt tokens of the turn for which the number of threads is chosen."""
GENERATED_TOKENS: Final = 128
"""Generated tokens of that turn."""

_AS_GOOD: Final = 1.03  # times the shortest time: repeated measurements differ by 3 %
_LEAST_SECONDS: Final = 0.03  # of a piece, or it is made longer
_MOST_READ, _MOST_WRITTEN = 256, 32
_SECONDS: Final = 0.7  # in which rounds begin
_MOST_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class ThreadPoint:
    """What was measured with one number of threads: tokens a second."""

    threads: int
    reading: float
    writing: float

    @property
    def turn_seconds(self) -> float:
        """How long a turn of 256 tokens read and 128 written takes at these rates.

        >>> ThreadPoint(threads=4, reading=512.0, writing=64.0).turn_seconds
        2.5
        """
        return PROMPT_TOKENS / self.reading + GENERATED_TOKENS / self.writing


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """The measurements, from few threads to many, and the chosen number."""

    points: tuple[ThreadPoint, ...]
    threads: int

    @classmethod
    def of(cls, points: Sequence[ThreadPoint]) -> ThreadChoice:
        """Take the fewest threads whose turn is within 3 % of the shortest.

        >>> slow, fast = ThreadPoint(1, 100.0, 10.0), ThreadPoint(2, 200.0, 20.0)
        >>> ThreadChoice.of([slow, fast, ThreadPoint(4, 205.0, 20.2)]).threads
        2
        """
        shortest = min(point.turn_seconds for point in points)
        good = [p.threads for p in points if p.turn_seconds <= _AS_GOOD * shortest]
        return cls(tuple(sorted(points, key=lambda point: point.threads)), min(good))

    def note(self) -> str:
        """Say in a line what was taken, and why.

        >>> ThreadChoice.of([ThreadPoint(1, 100.0, 10.0), ThreadPoint(2, 200.0, 20.0)]).note()
        'threads is 2, as measured: read and written per second with 1: 100, 10.0; 2: 200, 20.0'
        """
        each = "; ".join(f"{p.threads}: {p.reading:.0f}, {p.writing:.1f}" for p in self.points)
        return f"threads is {self.threads}, as measured: read and written per second with {each}"


def counts_to_try(cores: int, processors: int, *, from_one: bool = False) -> list[int]:
    """Return which numbers of threads are tried; `processors`: more, where a core has two.

    `from_one`: also those that are slow wherever others are not, for a whole curve.

    >>> counts_to_try(16, 32)
    [4, 8, 12, 16, 32]
    >>> counts_to_try(2, 2)
    [1, 2]
    >>> counts_to_try(6, 6, from_one=True)
    [1, 2, 3, 4, 6]
    """
    counts = {processors, cores, *(cores * part // 4 for part in (1, 2, 3))}
    if from_one:
        counts |= {1 << bit for bit in range(cores.bit_length())}
    return sorted(counts - {0})


def with_chosen_threads(
    path: Path, options: LoadOptions
) -> tuple[LoadOptions, ThreadChoice | None]:
    """Return the options with a number of threads in the place of "auto", and what was measured.

    Where the device is no CPU, or there is no such device, "auto" is the default, as it is for an
    encoder, which writes no tokens. Raises what loading the model raises.
    """
    if options.threads != AUTO:
        return options, None
    counts = counts_on(options.device)
    if not counts or is_encoder(path, options):
        return replace(options, threads=None), None
    choice = choose_threads(path, options, counts)
    return replace(options, threads=choice.threads), choice


def is_encoder(path: Path, options: LoadOptions) -> bool:
    """Return whether a model embeds texts and writes none; raises what loading it raises."""
    native = _loaded(path, replace(options, threads=None), context=1)
    try:
        return native.embedding is not None
    finally:
        native.close()


def _loaded(path: Path, options: LoadOptions, context: int) -> _core.NativeModel:
    """Load the engine's part of a model."""
    return _core.NativeLoad(
        os.fspath(path),
        device=options.device,
        context=context,
        threads=int(options.threads or 0),
        kv_type=options.kv_type,
        kv_memory=None,
        prefix_cache=False,
        max_waiting=1,
    ).result()


def counts_on(device: str, *, from_one: bool = False) -> list[int]:
    """Return the numbers of threads to try on a device; none where it has no threads."""
    for found in _core.devices():
        if device in ("auto", found["backend"]):
            if "processors" not in found:  # a GPU
                return []
            return counts_to_try(found["workers"], found["processors"], from_one=from_one)
    return []


def choose_threads(
    path: Path,
    options: LoadOptions,
    counts: Sequence[int],
    tell: Callable[[str], None] = lambda what: None,
) -> ThreadChoice:
    """Measure a model with several numbers of threads, in turns; `tell` hears how far it is.

    A small model takes a second. A large one takes as long as a prompt and some generated tokens
    for each number. Raises what loading the model raises.
    """
    with ExitStack() as models:
        tried: dict[int, _Tried] = {}
        for count in counts:
            tell(f"{count} threads: loading")
            tried[count] = models.enter_context(_Tried(path, replace(options, threads=count)))
        longest = tried[max(counts)]
        piece = longest.sized_piece()  # this reads the file, if it is not in memory yet
        for count, each in tried.items():
            tell(f"{count} threads: warming up")
            each.measure(_Piece(8, 1))
        seconds: dict[int, list[tuple[float, float]]] = {count: [] for count in counts}
        start = time.perf_counter()
        for number in range(_MOST_ROUNDS):
            for count, each in tried.items():
                tell(f"{count} threads: round {number + 1}")
                seconds[count].append(each.measure(piece))
            if time.perf_counter() - start > _SECONDS:
                break
    points = [
        ThreadPoint(
            count,
            piece.read / median(reading for reading, _ in taken),
            piece.written / median(writing for _, writing in taken),
        )
        for count, taken in seconds.items()
    ]
    return ThreadChoice.of(points)


@dataclass(frozen=True, slots=True)
class _Piece:
    read: int
    written: int


class _Tried:
    """The engine's part of a model, with some number of threads."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        self._native = _loaded(path, options, _MOST_READ + _MOST_WRITTEN + 2)
        self._random = random.Random(1)
        config = self._native.config
        self._n_tokens = int(config["vocab_size"])
        # A model that was trained on less has less.
        self._most_read = max(1, min(_MOST_READ, self._native.context - _MOST_WRITTEN - 2))

    def __enter__(self) -> _Tried:
        return self

    def __exit__(self, *_: object) -> None:
        self._native.close()

    def measure(self, piece: _Piece) -> tuple[float, float]:
        """Return the seconds that reading and writing take."""
        tokens = [self._random.randrange(self._n_tokens) for _ in range(piece.read)]
        generation = self._native.start(
            np.array(tokens, dtype=np.uint32),
            max_tokens=piece.written + 1,  # the time of the first is the prompt's
            stop_ids=[],
            sampling=SamplingOptions().packed(seed=0),
            logit_bias={},
        )
        try:
            while generation.next() is not None:
                pass
        except BaseException:
            generation.cancel()
            raise
        if generation.completion_tokens != piece.written + 1:
            raise AkunuError(
                f"{generation.completion_tokens} of {piece.written + 1} tokens were generated"
            )
        writing = generation.completion_seconds(piece.written + 1)
        return max(generation.prompt_seconds, 1e-9), max(writing, 1e-9)

    def sized_piece(self) -> _Piece:
        """Return a piece whose parts are long enough to be measured, if a model can be so fast."""
        read, written = min(32, self._most_read), 4
        self.measure(_Piece(8, 1))
        while True:
            reading, writing = self.measure(_Piece(read, written))
            longer_read = min(2 * read if reading < _LEAST_SECONDS else read, self._most_read)
            longer_written = 2 * written if writing < _LEAST_SECONDS else written
            longer_written = min(longer_written, _MOST_WRITTEN)
            if (longer_read, longer_written) == (read, written):
                return _Piece(read, written)
            read, written = longer_read, longer_written
