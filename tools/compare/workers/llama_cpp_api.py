"""llama.cpp's C API for the workers, and a model loaded with it, without a word on stderr."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

try:
    import llama_cpp as api
except ImportError as error:
    sys.exit(f"{sys.executable} has no llama-cpp-python ({error}); see docs/benchmarks.md")

__all__ = ["api", "load_model"]

_silent = api.llama_log_callback(lambda level, text, data: None)  # llama.cpp keeps the pointer


def load_model(path: str) -> Any:
    """The model of a GGUF file, on the CPU; ends the process where llama.cpp cannot load it."""
    api.llama_log_set(_silent, ctypes.c_void_p(0))
    api.llama_backend_init()
    params = api.llama_model_default_params()
    params.n_gpu_layers = 0
    model = api.llama_model_load_from_file(path.encode(), params)
    if not model:
        sys.exit(f"llama.cpp cannot load {path}")
    return model
