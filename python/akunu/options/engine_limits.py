"""Limits of the engine that options are held to."""

from __future__ import annotations

from typing import Final

from akunu import _core

MAX_OPTION_WORDS: Final = _core.OPTION_LIMITS["max_option_words"]
MOST_BIASES: Final = MAX_OPTION_WORDS // _core.OPTION_LIMITS["words_per_bias"]  # of a text
MAX_LOGPROBS: Final = _core.OPTION_LIMITS["max_logprobs"]
MOST_DRAFTED: Final = _core.OPTION_LIMITS["most_drafted"]  # tokens of a text at a time
MAX_GPUS: Final = _core.OPTION_LIMITS["max_gpus"]
MAX_THREADS: Final = 256  # of the CPU device, kMaxThreads in backend/cpu/cpu_device.cpp
SIDE_BY_SIDE: Final = 64  # texts that run at a time, at least: max_texts in src/core/chip.h
