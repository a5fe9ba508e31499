"""The front end beside transformers' WhisperFeatureExtractor, in NumPy and on PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from akunu.speech.mel import WINDOW_SAMPLES, log_mel, mel_filters

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

RATE = 16_000


def speech_like(n: int) -> NDArray[np.float32]:
    """Harmonics of a moving pitch in bursts, above faint noise."""
    time = np.arange(n) / RATE
    phase = 2 * np.pi * (140 * time + 6 * np.sin(2 * np.pi * 1.5 * time))
    voice = sum(np.sin(k * phase) / k**1.5 for k in range(1, 30)) * (np.sin(7 * time) > -0.3)
    noise = np.random.default_rng(5).standard_normal(n) * 0.003
    return (0.1 * voice + noise).astype(np.float32)


def one_sample() -> NDArray[np.float32]:
    return np.array([0.5], np.float32)


SIGNALS = {
    "short": speech_like(20_000),
    "silent": np.zeros(30_000, np.float32),
    "one sample": one_sample(),
    "no sample": np.zeros(0, np.float32),
    "30 seconds": speech_like(WINDOW_SAMPLES),
    "the last frame of a window": np.pad(speech_like(200), (WINDOW_SAMPLES - 200, 0)),
}


@pytest.mark.parametrize("n_mels", [80, 128])
@pytest.mark.parametrize("name", SIGNALS)
def test_a_window_equals_that_of_the_feature_extractor(name: str, n_mels: int) -> None:
    wave = SIGNALS[name]
    extractor = transformers.WhisperFeatureExtractor(feature_size=n_mels)
    padded = np.pad(wave, (0, WINDOW_SAMPLES - len(wave)))
    theirs = extractor._np_extract_fbank_features(padded[None], "cpu")[0]
    ours = log_mel(wave, n_mels=n_mels, padding=WINDOW_SAMPLES - len(wave))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    # PyTorch computes in single precision: bands far below their frame are off by more than 1e-5.
    single = extractor(wave, sampling_rate=RATE, return_tensors="np").input_features[0]
    np.testing.assert_allclose(ours, single, rtol=0, atol=5e-5)
    assert (np.abs(ours - single) <= 1e-5).mean() > 0.999


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [201, 479_999, 480_001, 1_234_567])
def test_audio_of_any_length_equals_that_of_the_feature_extractor(n: int, threads: int) -> None:
    wave = speech_like(n)
    extractor = transformers.WhisperFeatureExtractor()
    theirs = extractor._np_extract_fbank_features(wave[None], "cpu")[0]
    ours = log_mel(wave, threads=threads)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_a_pure_tone_equals_the_extractors_double_precision() -> None:
    # Its own single precision is off by 2e-5 here: most bands lie 80 dB below the tone.
    wave = (0.5 * np.sin(2 * np.pi * 440 * np.arange(WINDOW_SAMPLES) / RATE)).astype(np.float32)
    theirs = transformers.WhisperFeatureExtractor()._np_extract_fbank_features(wave[None], "cpu")
    np.testing.assert_allclose(log_mel(wave), theirs[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_mels", [80, 128])
def test_mel_filters_equal_those_of_the_feature_extractor(n_mels: int) -> None:
    theirs = transformers.WhisperFeatureExtractor(feature_size=n_mels).mel_filters.T
    np.testing.assert_allclose(mel_filters(n_mels), theirs, rtol=0, atol=1e-8)
