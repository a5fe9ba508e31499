"""Limits of the engine that options are held to."""

from __future__ import annotations

from typing import Final

MAX_OPTION_WORDS: Final = 4096  # kMaxOptionWords in src/core/rows.h
MOST_BIASES: Final = MAX_OPTION_WORDS // 2  # of a text, two words each
MAX_LOGPROBS: Final = 20  # kMaxLogprobs in src/core/rows.h
MOST_DRAFTED: Final = 15  # tokens of a text at a time; kMostDrafted in src/inference/speculation.h
MAX_GPUS: Final = 8  # kMaxRanks in src/core/kernel_params.h
MAX_THREADS: Final = 256  # kMaxThreads in backend/cpu/cpu_device.cpp
SIDE_BY_SIDE: Final = 64  # texts that run at a time, at least: max_texts in src/core/chip.h
