"""libakunu by ctypes, as a program in another language would use it.

`AKUNU_C_LIBRARY` says where the library is; without it, it is looked for where `cmake --build`
of this repository puts it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

OK, ARGUMENT, HANDLE, FILE, UNSUPPORTED = range(5)
CONTEXT, BUSY, SPACE = 7, 8, 9

Handle = ctypes.c_void_p
Callback = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class Adapter(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("path", ctypes.c_char_p))


class AdapterWeight(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("weight", ctypes.c_float))


class LoadOptions(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("device", ctypes.c_char_p),
        ("context", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("kv_memory", ctypes.c_uint64),
        ("kv_type", ctypes.c_char_p),
        ("no_prefix_cache", ctypes.c_bool),
        ("adapters", ctypes.POINTER(Adapter)),
        ("n_adapters", ctypes.c_size_t),
        ("draft", ctypes.c_char_p),
        ("gpu_memory", ctypes.c_uint64),
        ("gpus", ctypes.c_uint32),
        ("prediction_head", ctypes.c_bool),
    )


class ModelInfo(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("architecture", ctypes.c_char * 32),
        ("n_layers", ctypes.c_uint32),
        ("dim", ctypes.c_uint32),
        ("n_heads", ctypes.c_uint32),
        ("n_kv_heads", ctypes.c_uint32),
        ("vocab_size", ctypes.c_uint32),
        ("trained_context", ctypes.c_uint32),
        ("context", ctypes.c_uint32),
        ("embedding_dim", ctypes.c_uint32),
        ("memory_bytes", ctypes.c_uint64),
        ("mapped_bytes", ctypes.c_uint64),
        ("name", ctypes.c_char * 64),
        ("head_dim", ctypes.c_uint32),
        ("ffn_dim", ctypes.c_uint32),
        ("rope_dim", ctypes.c_uint32),
        ("rope_theta", ctypes.c_float),
        ("rope_theta_windowed", ctypes.c_float),
        ("norm_epsilon", ctypes.c_float),
        ("window", ctypes.c_uint32),
        ("latent_rank", ctypes.c_uint32),
        ("n_experts", ctypes.c_uint32),
        ("n_experts_chosen", ctypes.c_uint32),
        ("expert_dim", ctypes.c_uint32),
        ("n_mels", ctypes.c_uint32),
    )


class Sampling(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("temperature", ctypes.c_float),
        ("top_k", ctypes.c_uint32),
        ("top_p", ctypes.c_float),
        ("min_p", ctypes.c_float),
        ("repetition_penalty", ctypes.c_float),
        ("frequency_penalty", ctypes.c_float),
        ("presence_penalty", ctypes.c_float),
        ("seed", ctypes.c_uint64),
    )


class GenerateOptions(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("max_tokens", ctypes.c_uint32),
        ("sampling", ctypes.POINTER(Sampling)),
        ("stop_ids", ctypes.POINTER(ctypes.c_uint32)),
        ("n_stop_ids", ctypes.c_size_t),
        ("ignore_stops", ctypes.c_bool),
        ("adapters", ctypes.POINTER(AdapterWeight)),
        ("n_adapters", ctypes.c_size_t),
        ("speculate", ctypes.c_bool),
        ("grammar", ctypes.c_char_p),
        ("json_schema", ctypes.c_char_p),
        ("regex", ctypes.c_char_p),
    )


class ProfileOptions(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("device", ctypes.c_char_p),
        ("threads", ctypes.c_uint32),
        ("n_prompt", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("repetitions", ctypes.c_uint32),
    )


class Stats(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("finish", ctypes.c_int),
        ("prompt_tokens", ctypes.c_uint32),
        ("cached_tokens", ctypes.c_uint32),
        ("completion_tokens", ctypes.c_uint32),
        ("prompt_seconds", ctypes.c_double),
        ("completion_seconds", ctypes.c_double),
        ("drafted_tokens", ctypes.c_uint32),
    )


class TensorInfo(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("n_dims", ctypes.c_uint32),
        ("dims", ctypes.c_uint64 * 4),
        ("n_bytes", ctypes.c_uint64),
    )


class TranscribeOptions(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("language", ctypes.c_char_p),
        ("task", ctypes.c_char_p),
        ("temperatures", ctypes.POINTER(ctypes.c_float)),
        ("n_temperatures", ctypes.c_size_t),
        ("best_of", ctypes.c_uint32),
        ("prompt", ctypes.c_char_p),
        ("no_timestamps", ctypes.c_bool),
        ("no_previous_text", ctypes.c_bool),
        ("seed", ctypes.c_uint64),
    )


class Segment(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("id", ctypes.c_uint32),
        ("start", ctypes.c_double),
        ("end", ctypes.c_double),
        ("text", ctypes.c_char_p),
        ("text_length", ctypes.c_size_t),
        ("tokens", ctypes.POINTER(ctypes.c_uint32)),
        ("n_tokens", ctypes.c_size_t),
        ("language", ctypes.c_char_p),
        ("language_probability", ctypes.c_double),
        ("temperature", ctypes.c_double),
        ("avg_logprob", ctypes.c_double),
        ("compression_ratio", ctypes.c_double),
        ("no_speech_prob", ctypes.c_double),
    )


class TranscriptionStats(Sized):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("finish", ctypes.c_int),
        ("language", ctypes.c_char * 8),
        ("language_probability", ctypes.c_double),
        ("audio_seconds", ctypes.c_double),
        ("n_segments", ctypes.c_uint32),
        ("n_windows", ctypes.c_uint32),
        ("n_failed_windows", ctypes.c_uint32),
        ("n_tokens", ctypes.c_uint64),
    )


SegmentCallback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(Segment), ctypes.c_void_p)


class CError(Exception):
    """A call that failed: its status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"{status}: {why}")
        self.status = status
        self.why = why


class Library:
    """The functions of the library; a status that is not AKUNU_OK is a CError."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))
        for name in ("version", "last_error", "status_name"):
            getattr(self.c, f"akunu_{name}").restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.c, f"akunu_{name}")(*arguments)
        if status != OK:
            raise CError(status, self.c.akunu_last_error().decode())

    def new(self, name: str, *arguments: Any) -> Handle:
        """Return the handle that a function writes to its last argument."""
        handle = Handle()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    def text(self, name: str, *arguments: Any) -> str:
        return self.bytes(name, *arguments).decode()

    def bytes(self, name: str, *arguments: Any) -> bytes:
        """Return what a function writes into a buffer of characters."""
        length = ctypes.c_size_t()
        self.call(name, *arguments, None, ctypes.c_size_t(0), ctypes.byref(length))
        buffer = ctypes.create_string_buffer(length.value + 1)
        room = ctypes.c_size_t(length.value + 1)
        self.call(name, *arguments, buffer, room, ctypes.byref(length))
        return buffer.raw[: length.value]

    def encode(
        self, tokenizer: Handle, text: str, *, special: bool = False, parse: bool = False
    ) -> list[int]:
        raw = text.encode()
        return self.encode_bytes(tokenizer, raw, special=special, parse=parse)

    def encode_bytes(
        self, tokenizer: Handle, raw: bytes, *, special: bool = False, parse: bool = False
    ) -> list[int]:
        length = ctypes.c_size_t(4 * len(raw) + 8)
        buffer = (ctypes.c_uint32 * length.value)()
        self.call(
            "encode", tokenizer, raw, ctypes.c_size_t(len(raw)), special, parse,
            buffer, length, ctypes.byref(length),
        )  # fmt: skip
        return buffer[: length.value]

    def decode(self, tokenizer: Handle, ids: list[int], *, skip_special: bool = False) -> str:
        tokens = (ctypes.c_uint32 * len(ids))(*ids)
        return self.text("decode", tokenizer, tokens, ctypes.c_size_t(len(ids)), skip_special)


def find_library() -> Path | None:
    """Return where the library is, if it was built."""
    named = os.environ.get("AKUNU_C_LIBRARY")
    if named:
        return Path(named)
    return next(iter(sorted(ROOT.glob("build*/src/capi/libakunu.so"))), None)


@pytest.fixture(scope="session")
def library() -> Library:
    path = find_library()
    if path is None:
        pytest.skip(
            "libakunu is not built: cmake -DAKUNU_C_LIBRARY=ON, or AKUNU_C_LIBRARY says where"
        )
    return Library(path)


def as_callback(function: Callable[[int, bytes], bool]) -> Any:
    """Return a token callback of a function of the token and its text."""

    def called(token: int, text: int, length: int, _user: int) -> bool:
        return function(token, ctypes.string_at(text, length))

    return Callback(called)
