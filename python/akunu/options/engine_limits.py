"""Limits of the engine that options are held to.

They stand here as numbers, and not as `_core.OPTION_LIMITS`, so that a command line shows its help
without loading the engine. tests/unit/test_generated_options.py compares the two.
"""

from __future__ import annotations

from typing import Final

MAX_OPTION_WORDS: Final = 4096
WORDS_PER_BIAS: Final = 2  # a token and a number
MOST_BIASES: Final = MAX_OPTION_WORDS // WORDS_PER_BIAS  # of a text
MAX_LOGPROBS: Final = 20
MOST_DRAFTED: Final = 15  # tokens of a text at a time
MAX_GPUS: Final = 8
MAX_THREADS: Final = 256  # of the CPU device, kMaxThreads in backend/cpu/cpu_device.cpp
SIDE_BY_SIDE: Final = 64  # texts that run at a time, at least: max_texts in src/core/chip.h
