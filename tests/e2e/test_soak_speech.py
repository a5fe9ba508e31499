"""Transcriptions for a long time, side by side, some of them left: memory stays flat."""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "models"))

import brief_speech

import akunu
from akunu.speech.model import SpeechModel

SIDE_BY_SIDE = 4


def resident_bytes() -> int:
    """Return what the process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def transcribe(model: SpeechModel, seed: int) -> None:
    """Hear some seconds of noise with options that are drawn; a quarter is left after a segment."""
    draw = random.Random(seed)
    n_samples = draw.randrange(1, 12 * 16_000)
    samples = np.random.default_rng(seed).standard_normal(n_samples).astype(np.float32) * 0.1
    heard = model.transcribe(
        samples,
        language=draw.choice([None, "en", "de"]),
        beam_size=draw.choice([1, 5]),
        temperature=draw.choice([0.0, 0.6]),
        word_timestamps=draw.random() < 0.3,
        vad=False,
        no_speech_threshold=None,
        stream=True,
    )
    with closing(heard):
        for _ in heard:
            if draw.random() < 0.25:
                break


def run_soak(folder: Path, n: int) -> list[int]:
    """Memory at ten times."""
    memory = []
    path = brief_speech.write(folder / "model")
    with akunu.load_whisper(path, threads=2) as model, ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        for tenth in range(10):
            seeds = range(tenth * n // 10, (tenth + 1) * n // 10)
            for _ in threads.map(lambda seed: transcribe(model, seed), seeds):
                pass
            memory.append(resident_bytes())
    return memory


def test_transcriptions_that_are_left_leave_nothing_running(tmp_path: Path) -> None:
    assert len(run_soak(tmp_path, 20)) == 10


@pytest.mark.slow
def test_1000_transcriptions_leave_memory_flat(tmp_path: Path) -> None:
    memory = run_soak(tmp_path, 1000)
    # The first tenths fill caches and arenas of the allocator; from there on nothing may grow.
    assert max(memory[5:]) - memory[4] < 16 * 2**20, memory
