"""The native engine, private to this package; tests/e2e/test_stub.py compares."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

@final
class GgufTensor:
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def type_name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...

@final
class GgufFile:
    def __init__(self, path: str | bytes | os.PathLike[str]) -> None: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: str, /) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def keys(self) -> list[str]: ...
    def get(self, key: str, default: object = None) -> Any: ...
    @property
    def path(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def alignment(self) -> int: ...
    @property
    def tensors(self) -> list[GgufTensor]: ...

@final
class Generation:
    def next(self, timeout_ms: int) -> list[int] | None: ...
    def cancel(self) -> None: ...
    def cut(self, n_tokens: int) -> None: ...
    def completion_seconds(self, n_tokens: int) -> float: ...
    @property
    def finish_reason(self) -> str: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def completion_tokens(self) -> int: ...
    @property
    def prompt_tokens_done(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def prompt_seconds(self) -> float: ...

@final
class NativeModel:
    def __init__(
        self,
        path: str,
        *,
        device: str,
        context: int | None,
        threads: int,
        kv_type: str,
        kv_memory: int | None,
        prefix_cache: bool,
    ) -> None: ...
    def start(
        self,
        tokens: NDArray[np.uint32],
        *,
        max_tokens: int,
        stop_ids: list[int],
        temperature: float,
        top_k: int,
        top_p: float,
        min_p: float,
        repetition_penalty: float,
        frequency_penalty: float,
        presence_penalty: float,
        penalty_window: int,
        seed: int,
        choice: int,
    ) -> Generation: ...
    def logits(self, tokens: NDArray[np.uint32], first: int = 0) -> NDArray[np.float32]: ...
    def logits_chunked(
        self, tokens: NDArray[np.uint32], chunks: list[int], roles: str = "prompt"
    ) -> NDArray[np.float32]: ...
    def labels(self, row_class: str = "single") -> list[str]: ...
    def close(self) -> None: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def memory(self) -> dict[str, int]: ...
    @property
    def context(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...

def devices() -> list[dict[str, Any]]: ...
def operations() -> list[dict[str, Any]]: ...
def run_operation(
    operation: str,
    *,
    operands: Mapping[int | str, Any],
    params: bytes,
    rows: bytes,
    spans: bytes = b"",
    pages: NDArray[np.uint32] | None = None,
    sequences: bytes = b"",
    device: str = "cpu",
    threads: int = 1,
    isa: str = "",
    row_class: str = "single",
    activation: str = "f32",
    cache: str = "f16",
    extent: str = "rows",
    repeat: int = 1,
    first_row: int = 0,
    n_rows: int | None = None,
    first_head_row: int = 0,
    n_head_rows: int | None = None,
    first_span: int = 0,
    n_spans: int | None = None,
) -> dict[Any, Any]: ...
