"""The front end's speed beside transformers': `python tools/mel_speed.py` (extra `oracle`).

Both turn 30 seconds of noise into a spectrogram, in turns, so that both meet the same machine; the
median of 20 times each is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from transformers import WhisperFeatureExtractor

from akunu.speech.mel import log_mel

THREADS = 2


def milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def main() -> None:
    torch.set_num_threads(THREADS)
    extractor = WhisperFeatureExtractor()
    wave = np.random.default_rng(0).standard_normal(480_000).astype(np.float32)
    ours, theirs = [], []
    for _ in range(20):
        ours.append(milliseconds(lambda: log_mel(wave, threads=THREADS)))
        theirs.append(
            milliseconds(lambda: extractor(wave, sampling_rate=16_000, return_tensors="np"))
        )
    ratio = median(theirs) / median(ours)
    print(f"30 s of audio, {THREADS} threads: akunu {median(ours):.1f} ms, ", end="")
    print(f"transformers {median(theirs):.1f} ms, {ratio:.1f} times as long")


if __name__ == "__main__":
    main()
