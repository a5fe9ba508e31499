"""Whisper's front end: speech at 16 kHz becomes a log-mel spectrogram (computed in src/speech)."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from akunu import _core
from akunu.common.checks import integer
from akunu.errors import ArgumentError

SAMPLE_RATE = 16_000
"""Samples per second of everything that Whisper reads."""
FRAME = 400
"""Samples that a frame sees."""
HOP = 160
"""Samples from one frame to the next: a frame is 10 ms."""
WINDOW_SAMPLES = 30 * SAMPLE_RATE
"""What the encoder sees at once."""
_BINS = FRAME // 2 + 1


def log_mel(
    samples: ArrayLike,
    filters: NDArray[np.float32] | None = None,
    *,
    n_mels: int = 80,
    padding: int = 0,
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return the log-mel spectrogram [n_mels, frames] of samples at 16 kHz and zeros after them.

    There is a frame for every 160 samples. `filters`: the model's own mel filters, [n_mels, 201];
    without them those of `mel_filters(n_mels)`. `padding` is how many zeros follow the samples:
    for one window of 30 seconds, `WINDOW_SAMPLES - len(samples)`. `threads`: how many work on it;
    by default one for each 30 seconds, at most as many as there are processors.

    Raises ArgumentError for samples that are not numbers in one dimension, are not finite, or are,
    with their padding, fewer than 201.

    >>> log_mel(np.zeros(16_000, np.float32)).shape
    (80, 100)
    """
    wave = mono_samples(samples)
    padding = integer("padding", padding, 0, 2**40)
    weights = mel_filters(n_mels) if filters is None else filters
    if threads is None:
        windows = (len(wave) + WINDOW_SAMPLES - 1) // WINDOW_SAMPLES
        threads = max(1, min(windows, os.cpu_count() or 1))
    return _core.log_mel(wave, weights, padding, integer("threads", threads, 1, 1024))


def mono_samples(samples: ArrayLike) -> NDArray[np.float32]:
    """Return samples as float32 in one dimension; ArgumentError where that loses something."""
    wave = np.asarray(samples)
    if wave.dtype.kind != "f":
        raise ArgumentError(f"samples must be floating-point numbers, not {wave.dtype}")
    if wave.ndim != 1:
        raise ArgumentError(f"samples must have one dimension, not {wave.ndim}")
    wave = np.ascontiguousarray(wave, np.float32)
    finite = np.isfinite(wave)
    if not finite.all():
        at = int(np.argmin(finite))
        raise ArgumentError(f"sample {at} is {wave[at]}: samples must be finite numbers")
    return wave


@cache
def mel_filters(n_mels: int) -> NDArray[np.float32]:
    """Return Whisper's mel filters, [n_mels, 201]: what its models with 80 or 128 bands hold.

    Triangles between frequencies that are equally far apart on Slaney's mel scale, from 0 to 8 kHz,
    each divided by half its width.
    """
    n_mels = integer("n_mels", n_mels, 1, 1024)
    mels = np.linspace(_mel(0.0), _mel(SAMPLE_RATE / 2), n_mels + 2)
    edges = _hertz(mels)
    bins = np.linspace(0, SAMPLE_RATE / 2, _BINS)
    widths = np.diff(edges)
    rising = (bins - edges[:-2, None]) / widths[:-1, None]
    falling = (edges[2:, None] - bins) / widths[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    filters = (triangles * (2.0 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)
    filters.flags.writeable = False
    return filters


# Slaney's scale: 3 mels are 200 Hz up to 1 kHz, from there 27 mels are a factor of 6.4.
_LINEAR = 200.0 / 3
_KNEE = 1000.0 / _LINEAR
_LOGARITHMIC = np.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    return hertz / _LINEAR if hertz < 1000 else float(_KNEE + np.log(hertz / 1000) / _LOGARITHMIC)


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    above = 1000.0 * np.exp(_LOGARITHMIC * (mels - _KNEE))
    return np.where(mels < _KNEE, mels * _LINEAR, above)
