"""llama.cpp's C API from the wheel `xllamacpp`, which brings it built: nothing is compiled here.

The wheel's library exports the functions of llama.h; the structs below are those of the llama.h
that it was built from. They change from version to version, and with a struct that does not fit,
memory is overwritten: another version than `VERSION`, or other default values than the known ones,
raise ImportError. What is defined here has the names that `llama_cpp` (llama-cpp-python) has.

The library exports neither `llama_model_quantize` nor anything for instructions beyond AVX2: speed
is compared with a llama.cpp that was built for the machine (docs/reference/benchmarks.md).
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import platform
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_bool,
    c_char_p,
    c_float,
    c_int,
    c_int8,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_void_p,
)
from pathlib import Path
from typing import Any

VERSION = "2026.10.11549"
__version__ = VERSION

GGML_TYPE_F32 = 0
GGML_TYPE_F16 = 1
LLAMA_FLASH_ATTN_TYPE_AUTO = -1
LLAMA_FLASH_ATTN_TYPE_DISABLED = 0

llama_token = c_int32
llama_log_callback = CFUNCTYPE(None, c_int, c_char_p, c_void_p)


class llama_model_params(ctypes.Structure):  # noqa: N801, llama.h's name
    _fields_ = (
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int),
        ("load_mode", c_int),
        ("lazy_mode", c_int),
        ("main_gpu", c_int32),
        ("tensor_split", c_void_p),
        ("progress_callback", c_void_p),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("vocab_only", c_bool),
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
    )


class llama_context_params(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int),
        ("rope_scaling_type", c_int),
        ("pooling_type", c_int),
        ("attention_type", c_int),
        ("flash_attn_type", c_int),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int),
        ("type_v", c_int),
        ("moe_cache_size", c_size_t),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", c_void_p),
        ("n_samplers", c_size_t),
        ("ctx_other", c_void_p),
    )


class llama_batch(ctypes.Structure):  # noqa: N801
    _fields_ = (
        ("n_tokens", c_int32),
        ("token", POINTER(llama_token)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    )


# What `llama_*_default_params` return; fields that are not here are 0, false or null.
_DEFAULTS: dict[type[ctypes.Structure], dict[str, float]] = {
    llama_model_params: {
        "n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "lazy_mode": 1, "use_extra_bufts": 1,
    },
    llama_context_params: {
        "n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "n_outputs_max_per_seq": 1,
        "n_threads": 4, "n_threads_batch": 4, "rope_scaling_type": -1, "pooling_type": -1,
        "attention_type": -1, "flash_attn_type": -1, "yarn_ext_factor": -1, "yarn_attn_factor": -1,
        "yarn_beta_fast": -1, "yarn_beta_slow": -1, "defrag_thold": -1, "type_k": GGML_TYPE_F16,
        "type_v": GGML_TYPE_F16, "offload_kqv": 1, "no_perf": 1, "op_offload": 1, "swa_full": 1,
    },
}  # fmt: skip


def _open() -> ctypes.CDLL:
    """The library inside the wheel; the package itself is not imported."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{sys.executable} has no xllamacpp: pip install xllamacpp=={VERSION}")
    found = importlib.metadata.version("xllamacpp")
    if found != VERSION:
        raise ImportError(
            f"xllamacpp {found} is installed, and its structs are known for {VERSION} only: "
            f"pip install xllamacpp=={VERSION}"
        )
    libraries = sorted(Path(spec.submodule_search_locations[0]).glob("xllamacpp*.so"))
    if len(libraries) != 1:
        raise ImportError(f"expected one library xllamacpp*.so, found {libraries}")
    return ctypes.CDLL(str(libraries[0]))


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """The library's function of that name, with its types."""
    function = getattr(_library, name)
    function.restype = result
    function.argtypes = arguments
    return function


def _returned(name: str, params: type[ctypes.Structure]) -> tuple[Any, int]:
    """What the function `name` returns, read as `params`, and how many bytes it wrote beyond."""
    if platform.machine() != "x86_64":

        class Padded(ctypes.Structure):
            """Room for a struct that is larger than ours; libffi does not say what was written."""

            _fields_ = (("params", params), ("room", c_uint8 * 256))

        return _function(name, Padded)().params, 0
    # There, the place for a large result is a hidden first argument, which we give ourselves.
    unwritten = b"\xa5" * 256
    memory = ctypes.create_string_buffer(ctypes.sizeof(params) + len(unwritten))
    ctypes.memmove(ctypes.byref(memory, ctypes.sizeof(params)), unwritten, len(unwritten))
    _function(name, c_void_p, c_void_p)(memory)
    beyond = memory.raw[ctypes.sizeof(params) :]
    return params.from_buffer_copy(memory), len(beyond.rstrip(b"\xa5"))


def _check_defaults(name: str, params: type[ctypes.Structure]) -> None:
    """ImportError where the function `name` returns another struct than `params`."""
    returned, beyond = _returned(name, params)
    wrong = []
    for field, *_ in params._fields_:
        found, expected = getattr(returned, field) or 0, _DEFAULTS[params].get(field, 0)
        if found != expected:
            wrong.append(f"{field} = {found} instead of {expected}")
    if beyond:
        wrong.append(f"{beyond} bytes more")
    if wrong:
        raise ImportError(
            f"{params.__name__} of xllamacpp {VERSION} is not laid out as in {__file__}: "
            f"{name} returned {', '.join(wrong)}"
        )


_library = _open()
_check_defaults("llama_model_default_params", llama_model_params)
_check_defaults("llama_context_default_params", llama_context_params)

llama_backend_init = _function("llama_backend_init", None)
llama_log_set = _function("llama_log_set", None, llama_log_callback, c_void_p)
llama_print_system_info = _function("llama_print_system_info", c_char_p)

llama_model_default_params = _function("llama_model_default_params", llama_model_params)
llama_model_load_from_file = _function(
    "llama_model_load_from_file", c_void_p, c_char_p, llama_model_params
)
llama_model_free = _function("llama_model_free", None, c_void_p)
llama_model_get_vocab = _function("llama_model_get_vocab", c_void_p, c_void_p)
llama_model_n_embd = _function("llama_model_n_embd", c_int32, c_void_p)
llama_vocab_n_tokens = _function("llama_vocab_n_tokens", c_int32, c_void_p)
llama_tokenize = _function(
    "llama_tokenize",
    c_int32,
    *(c_void_p, c_char_p, c_int32, POINTER(llama_token), c_int32, c_bool, c_bool),
)
llama_detokenize = _function(
    "llama_detokenize",
    c_int32,
    *(c_void_p, POINTER(llama_token), c_int32, c_char_p, c_int32, c_bool, c_bool),
)

llama_context_default_params = _function("llama_context_default_params", llama_context_params)
llama_init_from_model = _function("llama_init_from_model", c_void_p, c_void_p, llama_context_params)
llama_free = _function("llama_free", None, c_void_p)
llama_get_memory = _function("llama_get_memory", c_void_p, c_void_p)
llama_memory_clear = _function("llama_memory_clear", None, c_void_p, c_bool)
llama_batch_init = _function("llama_batch_init", llama_batch, c_int32, c_int32, c_int32)
llama_batch_get_one = _function("llama_batch_get_one", llama_batch, POINTER(llama_token), c_int32)
llama_batch_free = _function("llama_batch_free", None, llama_batch)
llama_decode = _function("llama_decode", c_int32, c_void_p, llama_batch)
llama_encode = _function("llama_encode", c_int32, c_void_p, llama_batch)
llama_get_embeddings_seq = _function(
    "llama_get_embeddings_seq", POINTER(c_float), c_void_p, c_int32
)
llama_get_logits = _function("llama_get_logits", POINTER(c_float), c_void_p)
llama_synchronize = _function("llama_synchronize", None, c_void_p)

ggml_quantize_chunk = _function(
    "ggml_quantize_chunk",
    c_size_t,
    *(c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p),
)
