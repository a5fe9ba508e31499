"""Limits of the engine that options are held to."""

from __future__ import annotations

from typing import Final

from akunu._core import OPTION_LIMITS

MAX_OPTION_WORDS: Final = OPTION_LIMITS["max_option_words"]
MOST_BIASES: Final = MAX_OPTION_WORDS // OPTION_LIMITS["words_per_bias"]  # of a text
MAX_LOGPROBS: Final = OPTION_LIMITS["max_logprobs"]
MOST_DRAFTED: Final = OPTION_LIMITS["most_drafted"]  # tokens of a text at a time
MAX_GPUS: Final = OPTION_LIMITS["max_gpus"]
MAX_THREADS: Final = 256  # of the CPU device, kMaxThreads in backend/cpu/cpu_device.cpp
