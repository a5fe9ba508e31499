"""How these tests drive the engine, and how they measure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from _pytest.mark import ParameterSet
from golden_values import N_TOKENS
from numpy.typing import ArrayLike, NDArray

import akunu
from akunu import SamplingOptions, _core
from arithmetic import prompts_on_warpgroups, rows_are_streamed

# The devices of this build that are here: one for NVIDIA's GPUs is tested without a GPU, too.
HERE = [
    name
    for name in _core.backends()
    if name != "cuda"
    or any(level["is_available"] and level["is_built"] for level in _core.levels(name))
]

# The GPUs among them, for `pytest.mark.parametrize`.
_NO_GPU = pytest.param("", marks=pytest.mark.skip(reason="there is no GPU here, real or emulated"))
GPUS = [name for name in HERE if name != "cpu"] or [_NO_GPU]

# Largest error beside the largest logit, against Hugging Face in float32.
BOUND_F32_CACHE = 2e-4
BOUND_F16_CACHE = 5e-3


def bound_of_prompts(device: str) -> float:
    """The bound of prompt rows with a cache in F32.

    Inputs that a device rounds to halves cost what keys and values in halves do.
    """
    return BOUND_F16_CACHE if prompts_on_warpgroups(device) else BOUND_F32_CACHE


def bound_of_generated_rows(device: str) -> float:
    """The bound of 1 to 16 rows with a cache in F32, whose inputs a device may round to halves."""
    return BOUND_F16_CACHE if rows_are_streamed(device) else BOUND_F32_CACHE


# A deliberate mistake must move the result by this many bounds, or the bound would hide it.
MUTATION_FACTOR = 20


@contextmanager
def opened(
    path: Path,
    *,
    device: str = "cpu",
    kv_type: str = "f32",
    threads: int = 1,
    kv_memory: int | None = None,
    context: int = 512,
) -> Iterator[Any]:
    """The model at `path`, closed at the end."""
    model = akunu.load(
        path, device=device, context=context, threads=threads, kv_type=kv_type, kv_memory=kv_memory
    )
    try:
        yield model
    finally:
        model.close()


def bytes_of(kv_type: str, n: int) -> int:
    """What `n` numbers of keys and as many of values take in a cache, in whole blocks."""
    of_both = ("q8_0", "q4_0") if kv_type == "q4_0" else (kv_type, kv_type)
    total = 0
    for name in of_both:
        block, n_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]]
        assert n % block == 0
        total += n // block * n_bytes
    return total


def chunked(
    model: Any, tokens: Sequence[int], chunks: Sequence[int], roles: str
) -> NDArray[np.float32]:
    """Logits `[n, vocab_size]`, the tokens taken through the cache in `chunks`.

    No chunks: as large as the device likes.
    """
    assert not chunks or sum(chunks) == len(tokens)
    result: NDArray[np.float32] = model._native.logits_chunked(
        list(tokens), chunks=list(chunks), roles=roles
    )
    return result


def start(
    model: Any,
    prompt: Sequence[int],
    n: int,
    *,
    stop_ids: Sequence[int] = (),
    choice: int = 0,
    priority: int = 0,
    logprobs: int | None = None,
    constraint: Any = None,
    speculation: int = 0,
    keeps_positions: bool = False,
    goes_on_from: Any = None,
    logit_bias: Mapping[int, float] | None = None,
    **sampling: Any,
) -> Any:
    """A generation of `n` tokens, or until one of `stop_ids`; greedy unless `sampling` differs."""
    return model._native.start(
        np.array(prompt, np.uint32),
        max_tokens=n,
        stop_ids=list(stop_ids),
        sampling=SamplingOptions(**sampling).packed(seed=0),
        logit_bias=dict(logit_bias or {}),
        logprobs=logprobs,
        choice=choice,
        priority=priority,
        constraint=constraint,
        speculation=speculation,
        keeps_positions=keeps_positions,
        goes_on_from=goes_on_from,
    )


def finished(generation: Any) -> list[int]:
    """All tokens of a generation."""
    tokens: list[int] = []
    while (new := generation.next(timeout_ms=1000)) is not None:
        tokens += new
    return tokens


def settle(model: Any) -> None:
    """Wait until nothing is under way, and what was generated has been read as a prompt."""
    assert model._native.wait_until_idle(timeout_ms=600_000)


def random_chunks(n: int, largest: int, *, seed: int) -> list[int]:
    """Sizes from 1 to `largest` that sum to `n`."""
    stream = np.random.RandomState(seed)
    chunks: list[int] = []
    while sum(chunks) < n:
        chunks.append(min(int(stream.randint(1, largest + 1)), n - sum(chunks)))
    return chunks


# The ways for tokens to reach the cache: prompt rows in chunks as large as the device has logits
# for and in smaller ones, generated rows one by one (`single` kernels) and up to 16 at a time
# (`few`). Prompts of hundreds of rows in one step have logits for the last row only: see
# test_generation.py.
PATHS: dict[str, tuple[list[int], str]] = {
    "prefill": ([], "prompt"),
    "prefill-chunks": (random_chunks(N_TOKENS, 32, seed=1), "prompt"),
    "prompt-singles": ([1] * N_TOKENS, "prompt"),
    "single": ([1] * N_TOKENS, "generated"),
    "few": (random_chunks(N_TOKENS, 16, seed=2), "generated"),
    "few-16": ([16] * (N_TOKENS // 16) + [N_TOKENS % 16], "generated"),
}

# Hundreds of steps of one row take minutes in an emulator; these have 51 of them, over the edge of
# a page.
GPU_PATHS = {
    **{name: PATHS[name] for name in ("prefill", "prefill-chunks", "few", "few-16")},
    "mixed-prompt": ([32] * 8 + [1] * (N_TOKENS - 256), "prompt"),
    "mixed-generated": ([16] * 16 + [1] * (N_TOKENS - 256), "generated"),
}


def one_of_each(first: Iterable[str], second: Iterable[str]) -> list[ParameterSet]:
    """Every first with every second; with each change as many as there are seconds."""
    seconds = list(second)
    return [
        pytest.param(a, b, marks=() if j == i else pytest.mark.slow)
        for i, a in enumerate(first)
        for j, b in enumerate(seconds)
    ]


def nightly_but(values: Iterable[Any], chosen: Container[Any]) -> list[ParameterSet]:
    """All of these for `pytest.mark.parametrize`: the chosen ones with every change."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in chosen else pytest.mark.slow,
        )
        for value in values
    ]


def relative_error(actual: ArrayLike, expected: ArrayLike) -> float:
    """`max |actual - expected| / max |expected|`; both finite and of one shape."""
    a = np.asarray(actual, np.float64)
    b = np.asarray(expected, np.float64)
    assert a.shape == b.shape
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()
    return float(np.abs(a - b).max() / np.abs(b).max())


def relative_rms(actual: ArrayLike, expected: ArrayLike) -> float:
    """`rms(actual - expected) / rms(expected)`."""
    a = np.asarray(actual, np.float64)
    b = np.asarray(expected, np.float64)
    assert a.shape == b.shape
    return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2)))
