"""Measuring one test of a benchmark on a loaded model."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.cli.measuring.bench_plan import Test
from akunu.errors import AkunuError
from akunu.model import Model
from akunu.options.text_options import SamplingOptions

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Result:
    """The nanoseconds of every repetition of a test."""

    test: Test
    samples_ns: tuple[int, ...]

    @property
    def samples_ts(self) -> list[float]:
        """Tokens per second of every repetition."""
        return [self.test.n_tokens * 1e9 / ns for ns in self.samples_ns]

    @property
    def avg_ns(self) -> int:
        """The mean of the nanoseconds."""
        return round(statistics.fmean(self.samples_ns))

    @property
    def stddev_ns(self) -> int:
        """Their standard deviation, that of a sample."""
        return round(_deviation(list(self.samples_ns)))

    @property
    def avg_ts(self) -> float:
        """The mean of the tokens per second."""
        return statistics.fmean(self.samples_ts)

    @property
    def stddev_ts(self) -> float:
        """Their standard deviation, that of a sample."""
        return _deviation(self.samples_ts)


def begin_text(
    native: _core.NativeModel, prompt: NDArray[np.uint32], n_tokens: int
) -> _core.Generation:
    """Begin a text of this many tokens, whether or not the model would end it before."""
    return native.start(
        prompt,
        max_tokens=n_tokens,
        stop_ids=[],
        sampling=SamplingOptions().packed(seed=0),
        logit_bias={},
    )


def _deviation(values: list[float] | list[int]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


class Bench:
    """Runs tests on a model with random tokens, always the same ones for the same seed."""

    def __init__(self, model: Model, seed: int = 1) -> None:
        """`model` must have a context for every test."""
        self._native = model._open()
        self._vocab_size = model.config.vocab_size
        self._random = random.Random(seed)

    def measure(self, test: Test, repetitions: int, tell: Callable[[str], None]) -> Result:
        """Run a test once for warming up and then `repetitions` times; `tell` hears of it."""
        prefix = self._tokens(test.n_depth)
        tell(f"{test.name}: warming up")
        self._sample(Test(test.n_prompt, min(test.n_gen, 1), test.n_depth), prefix)
        samples = []
        for number in range(repetitions):
            tell(f"{test.name}: {number + 1} of {repetitions}")
            samples.append(self._sample(test, prefix))
        return Result(test, tuple(samples))

    def _sample(self, test: Test, prefix: list[int]) -> int:
        """Return the nanoseconds that the test takes once `prefix` is computed."""
        for _ in range(_ATTEMPTS):
            if prefix:
                self._run(prefix, 1)  # leaves them in the cache, if they are not there
            # A token opens what is generated; its own time is the prompt's.
            fresh = self._tokens(max(test.n_prompt, 1))
            generation = self._run([*prefix, *fresh], test.n_gen + 1)
            if generation.cached_tokens == test.n_depth:
                seconds = generation.completion_seconds(test.n_gen + 1) if test.n_gen else 0.0
                seconds += generation.prompt_seconds if test.n_prompt else 0.0
                return max(1, round(seconds * 1e9))
        raise AkunuError(
            f"{test.name}: the cache does not hold the {test.n_depth} tokens before the test"
        )

    def _run(self, tokens: list[int], n_gen: int) -> _core.Generation:
        generation = begin_text(self._native, np.array(tokens, dtype=np.uint32), n_gen)
        try:
            while generation.next() is not None:
                pass
        except BaseException:
            generation.cancel()
            raise
        if generation.completion_tokens != n_gen:
            raise AkunuError(
                f"the model generated {generation.completion_tokens} of {n_gen} tokens"
            )
        return generation

    def _tokens(self, count: int) -> list[int]:
        return [self._random.randrange(self._vocab_size) for _ in range(count)]
