"""A microphone as blocks of samples at 16 kHz, by PortAudio (`pip install 'akunu[mic]'`)."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from akunu.errors import AkunuError, ArgumentError
from akunu.speech.mel import SAMPLE_RATE

_BLOCK_SECONDS = 0.1
_LONGEST_WAIT = 5.0
"""Seconds without a sample after which the microphone is gone."""


@dataclass(frozen=True, slots=True)
class Microphone:
    """A device that records."""

    number: int
    name: str
    is_default: bool


class MicrophoneError(AkunuError):
    """There is no microphone, or it stopped; the message says what to do."""


def microphones() -> list[Microphone]:
    """Return the microphones of this machine; AkunuError where sounddevice is not installed."""
    sounddevice = _sounddevice()
    default = sounddevice.default.device[0]
    return [
        Microphone(each["index"], each["name"], each["index"] == default)
        for each in sounddevice.query_devices()
        if each["max_input_channels"] > 0
    ]


@contextmanager
def recording(name: str | None = None) -> Iterator[Iterator[NDArray[np.float32]]]:
    """Record as long as the block lasts; yields blocks of samples at 16 kHz, [n], without end.

    `name`: a part of the microphone's name, or its number; None: the usual one. Blocks that no one
    has taken yet are kept, and come as one. Raises MicrophoneError where there is none and where it
    stops, ArgumentError for a name that none has, AkunuError where a package is missing.
    """
    sounddevice = _sounddevice()
    chosen = _chosen(name)
    heard: queue.SimpleQueue[NDArray[np.float32]] = queue.SimpleQueue()

    def take(samples: Any, n: int, time: Any, status: Any) -> None:
        heard.put(samples[:, 0].copy())

    def settings_of(rate: int) -> dict[str, Any]:
        return {
            "device": chosen.number,
            "samplerate": rate,
            "channels": 1,
            "dtype": "float32",
            "blocksize": int(_BLOCK_SECONDS * rate),
        }

    try:
        rate = SAMPLE_RATE
        try:
            sounddevice.check_input_settings(
                device=chosen.number, channels=1, dtype="float32", samplerate=rate
            )
        except sounddevice.PortAudioError:  # not each device records at any rate
            rate = int(sounddevice.query_devices(chosen.number)["default_samplerate"])
        with sounddevice.InputStream(callback=take, **settings_of(rate)):
            yield _blocks(heard, rate, chosen.name)
    except sounddevice.PortAudioError as error:
        raise MicrophoneError(f"{chosen.name} cannot be recorded from: {error}") from None


def _blocks(
    heard: queue.SimpleQueue[NDArray[np.float32]], rate: int, name: str
) -> Iterator[NDArray[np.float32]]:
    resampled = None if rate == SAMPLE_RATE else _resampler(rate)
    while True:
        try:
            blocks = [heard.get(timeout=_LONGEST_WAIT)]
        except queue.Empty:
            raise MicrophoneError(f"{name} has sent nothing for {_LONGEST_WAIT:g} s") from None
        while not heard.empty():
            blocks.append(heard.get())
        samples = np.concatenate(blocks)
        yield samples if resampled is None else resampled.resample_chunk(samples)


def _resampler(rate: int) -> Any:
    try:
        import soxr
    except ImportError:
        raise AkunuError(
            f"the microphone records at {rate} Hz, and resampling it to {SAMPLE_RATE} Hz needs "
            f"soxr: "
            "pip install 'akunu[audio]', or '.[audio]' in a clone"
        ) from None
    return soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")


def _chosen(name: str | None) -> Microphone:
    found = microphones()
    if not found:
        raise MicrophoneError(
            "PortAudio finds no microphone: connect one, and allow this program to "
            "use it; audio from elsewhere can be piped into akunu transcribe -"
        )
    if name is None:
        return next((each for each in found if each.is_default), found[0])
    fitting = [
        each
        for each in found
        if str(each.number) == name or name.casefold() in each.name.casefold()
    ]
    exact = [each for each in fitting if name in (str(each.number), each.name)]
    if len(exact or fitting) != 1:
        how = "several microphones" if fitting else "no microphone"
        known = ", ".join(f"{each.number} {each.name!r}" for each in found)
        raise ArgumentError(
            f"microphone is {name!r}, which fits {how}; the microphones are {known}"
        )
    return (exact or fitting)[0]


def _sounddevice() -> Any:
    try:
        import sounddevice
    except ImportError:
        raise AkunuError(
            "recording needs sounddevice, which is not installed: pip install 'akunu[mic]', "
            "or '.[mic]' in a clone"
        ) from None
    except OSError:  # the library below it
        raise AkunuError(
            "recording needs PortAudio, which is not installed: apt install libportaudio2, or your "
            "system's package of it"
        ) from None
    return sounddevice
