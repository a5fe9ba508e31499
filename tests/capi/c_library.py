"""libakunu by ctypes, as a program in another language would use it.

`AKUNU_C_LIBRARY` says where the library is; without it, it is looked for where `cmake --build`
of this repository puts it.
"""

from __future__ import annotations

import ctypes
import os
import re
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


_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "char": ctypes.c_char,
    "const char*": ctypes.c_char_p,
    "akunu_finish": ctypes.c_int,
}


def fields_of(name: str) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a struct as include/akunu/types.h has them."""
    header = (ROOT / "include" / "akunu" / "types.h").read_text()
    body = re.search(rf"^typedef struct akunu_{name} {{(.*?)}}", header, re.DOTALL | re.MULTILINE)
    assert body
    plain = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
    fields = []
    for kind, field, length in re.findall(r"([\w\s*]*[\s*])(\w+)(?:\[(\d+)\])?;", plain):
        kind = " ".join(kind.split())
        pointed = kind.removesuffix("* const*").removeprefix("const ").removesuffix("*")
        found = _TYPES.get(kind)
        if kind.endswith("* const*"):
            found = ctypes.POINTER(_TYPES[f"const {pointed}*"])
        elif found is None:
            found = ctypes.POINTER(_TYPES[pointed])
        fields.append((field, found * int(length) if length else found))
    return tuple(fields)


class Adapter(ctypes.Structure):
    _fields_ = fields_of("adapter")


_TYPES["akunu_adapter"] = Adapter


class AdapterWeight(ctypes.Structure):
    _fields_ = fields_of("adapter_weight")


_TYPES["akunu_adapter_weight"] = AdapterWeight


class TokenBias(ctypes.Structure):
    _fields_ = fields_of("token_bias")


_TYPES["akunu_token_bias"] = TokenBias


class LoadOptions(Sized):
    _fields_ = fields_of("load_options")


class ModelInfo(Sized):
    _fields_ = fields_of("model_info")


class Sampling(Sized):
    _fields_ = fields_of("sampling")


_TYPES["akunu_sampling"] = Sampling


class GenerateOptions(Sized):
    _fields_ = fields_of("generate_options")


class ProfileOptions(Sized):
    _fields_ = fields_of("profile_options")


class Stats(Sized):
    _fields_ = fields_of("generation_stats")


class TensorInfo(Sized):
    _fields_ = fields_of("tensor_info")


class TranscribeOptions(Sized):
    _fields_ = fields_of("transcribe_options")


class Segment(Sized):
    _fields_ = fields_of("segment")


class TranscriptionStats(Sized):
    _fields_ = fields_of("transcription_stats")


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
