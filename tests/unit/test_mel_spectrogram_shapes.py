"""The front end without transformers: what can be checked in the head, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from akunu import ArgumentError
from akunu.speech.mel import WINDOW_SAMPLES, log_mel, mel_filters
from lines import each_line


def test_silence_is_the_floor_in_every_band() -> None:
    # log10(1e-10) = -10, and (-10 + 4) / 4 = -1.5
    assert (log_mel(np.zeros(16_000, np.float32)) == -1.5).all()


def test_there_is_a_frame_for_every_160_samples() -> None:
    assert log_mel(np.zeros(1599, np.float32), n_mels=128).shape == (128, 9)
    assert log_mel(np.zeros(0, np.float32), padding=WINDOW_SAMPLES).shape == (80, 3000)


def test_a_tone_is_loudest_in_the_band_whose_filter_passes_it() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000).astype(np.float32)
    bin_of_tone = 25  # of 40 Hz each
    assert log_mel(tone)[:, 50].argmax() == mel_filters(80)[:, bin_of_tone].argmax()


def test_padding_is_zeros_after_the_samples() -> None:
    wave = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    padded = log_mel(np.pad(wave, (0, 5000)))
    assert (log_mel(wave, padding=5000) == padded).all()


def test_threads_do_not_change_a_bit() -> None:
    wave = np.random.default_rng(1).standard_normal(200_000).astype(np.float32)
    assert (log_mel(wave, threads=1) == log_mel(wave, threads=4)).all()


@each_line(
    ("samples", "said"),
    [
        (np.zeros(200, np.float32), "at least 201 samples"),
        (np.array([0.0, np.nan] * 200, np.float32), "sample 1 is nan"),
        (np.zeros((300, 2), np.float32), "one dimension, not 2"),
        (np.zeros(300, np.int16), "floating-point numbers, not int16"),
    ],
)
def test_what_makes_no_spectrogram_is_refused(samples: np.ndarray, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        log_mel(samples)


def test_filters_of_another_width_are_refused() -> None:
    with pytest.raises(ArgumentError, match="201 weights"):
        log_mel(np.zeros(300, np.float32), np.ones((80, 200), np.float32))
