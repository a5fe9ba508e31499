"""A voice activity detector without a model: energy above the noise, in bands of frequency.

In every 32 ms, the energy of 20 bands (equally wide in mel, 100 Hz to 7 kHz) is compared with the
noise of its band: the tenth percentile of the 16 seconds around, which pauses between words reach
even in fluent speech. The mean of the bands' decibels above their noise says how probable speech
is: 6 dB are 0.5. So steady sounds are none, whatever their level and colour: noise, hum, tones,
fans. Sounds that come and go are: a door, a cough, music; to tell those apart takes a trained
detector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from akunu.speech.mel import SAMPLE_RATE

_CHUNK = 512
_BANDS = 20
_LOW_HERTZ, _HIGH_HERTZ = 100.0, 7000.0
_SMOOTHED = 3
"""Chunks whose mean energy stands for the middle one: noise alone varies less then."""
_NOISE_SECONDS = 8
"""Before and after, in which the noise is looked for."""
_NOISE_PERCENTILE = 10
_MIDDLE_DECIBELS = 6.0
_STEEPNESS = 1.5
_QUIETEST = -90.0
"""Decibels below full scale that are silence whatever lies below: the noise of 16-bit numbers."""
_RANGE = 50.0
"""Decibels below the loud parts of a band that are silence, though digital silence lies lower."""
_CHUNKS_AT_ONCE = 4096


def speech_probabilities(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how probable speech is in each 512 samples at 16 kHz; the last may be fewer."""
    if len(samples) == 0:
        return np.zeros(0, np.float32)
    decibels = _band_decibels(samples)
    above = np.clip(decibels - _noise(decibels), 0.0, 30.0).mean(axis=1)
    likely: NDArray[np.float32] = 1 / (1 + np.exp((_MIDDLE_DECIBELS - above) / _STEEPNESS))
    return likely.astype(np.float32)


def _band_decibels(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the energy of each band in each chunk, [chunks, bands], in decibels of full scale."""
    n_chunks = -(-len(samples) // _CHUNK)
    padded = np.zeros(n_chunks * _CHUNK, np.float32)
    padded[: len(samples)] = samples
    chunks = padded.reshape(n_chunks, _CHUNK)
    if len(samples) >= _CHUNK:  # whole, too: a sound cut off is loud in all bands
        chunks[-1] = samples[-_CHUNK:]
    window = np.hanning(_CHUNK).astype(np.float32)
    edges = _band_edges()
    # A sine of full scale has 0 dB: its bins sum to 3/32 of the squared length.
    full = 3 / 32 * _CHUNK**2
    energy = np.empty((n_chunks, _BANDS), np.float32)
    for first in range(0, n_chunks, _CHUNKS_AT_ONCE):
        spectrum = np.fft.rfft(chunks[first : first + _CHUNKS_AT_ONCE] * window)
        power = spectrum.real**2 + spectrum.imag**2
        energy[first : first + _CHUNKS_AT_ONCE] = (
            np.add.reduceat(power, edges[:-1], axis=1)[:, :_BANDS] / full
        )
    return (10 * np.log10(np.maximum(_smoothed(energy), 1e-12))).astype(np.float32)


def _band_edges() -> NDArray[np.intp]:
    """Return the first bin of each band, and the bin after the last."""

    def mel(hertz: float) -> float:
        return 2595 * float(np.log10(1 + hertz / 700))

    mels = np.linspace(mel(_LOW_HERTZ), mel(_HIGH_HERTZ), _BANDS + 1)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    return np.round(hertz * _CHUNK / SAMPLE_RATE).astype(np.intp)


def _smoothed(energy: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each chunk and its neighbours."""
    half = _SMOOTHED // 2
    sums = np.cumsum(np.pad(energy, ((half + 1, half), (0, 0))), axis=0, dtype=np.float64)
    counts = np.convolve(np.ones(len(energy)), np.ones(_SMOOTHED), "same")[: len(energy)]
    return ((sums[_SMOOTHED:] - sums[:-_SMOOTHED]) / counts[:, None]).astype(np.float32)


def _noise(decibels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the noise of each chunk's bands, computed once a second."""
    second = SAMPLE_RATE // _CHUNK
    n_around = _NOISE_SECONDS * second
    silence = np.maximum(_QUIETEST, np.percentile(decibels, 95, axis=0) - _RANGE)
    noise = np.empty_like(decibels)
    for first in range(0, len(decibels), second):
        around = decibels[max(0, first - n_around) : first + second + n_around]
        floor = np.percentile(around, _NOISE_PERCENTILE, axis=0)
        noise[first : first + second] = np.maximum(floor, silence)
    return noise
