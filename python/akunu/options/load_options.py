"""How a model is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from akunu.common.checks import MAX_UINT32, MAX_UINT64, flag, integer, refusal
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.adapter_options import adapter_paths

KV_TYPES = ("f16", "f32", "q8_0", "q4_0")
# Half of the numbers are keys, which are Q8_0 beside values in Q4_0.
_BYTES_OF_64 = {"f16": 128, "f32": 256, "q8_0": 68, "q4_0": 34 + 18}
AUTO: Final = "auto"  # threads: as many as measurement says
MAX_GPUS = 8  # kMaxRanks in src/core/kernel_params.h
MAX_THREADS = 256  # kMaxThreads in backend/cpu/cpu_device.cpp


@explains_typos_of_init
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a model is loaded.

    For each option None is its default, as if it was not given. Raises ArgumentError for values
    that make no sense and MisuseError for an option that does not exist.

    >>> LoadOptions(context=2048, threads=2).kv_type
    'f16'
    """

    device: str = "auto"
    """"auto", or the name of a device as `akunu devices` lists them, for example "cpu". Models with
    the same device and threads share it, and take turns."""
    context: int | None = None
    """Positions per conversation, prompt and reply together; None: as many as the model was
    trained on, or as many as memory allows."""
    threads: int | Literal["auto"] | None = None
    """Threads of the CPU device; None: one per core that this process may use. "auto": reads and
    writes a little with several numbers of threads and takes the best; see `Model.thread_choice`.
    The text does not depend on it."""
    kv_type: str = "f16"
    """Number format of the cache: "f16", "f32", or blocks of 32 numbers with a scale, for
    heads that are whole blocks: "q8_0", 53 % of the memory of f16, or "q4_0", whose
    keys are Q8_0 and whose values are Q4_0, rotated: 41 %."""
    kv_memory: int | None = None
    """Bytes for the cache; None: one full context, or what fits."""
    gpu_memory: int | None = None
    """Bytes of each GPU's own memory (CUDA) that the model may take; None: what is free. Weights
    that find no room there stay in the host's memory, where the GPU reads them: tables of
    embeddings first, then experts, then the last layers. The text is the same."""
    gpus: int = 1
    """GPUs (CUDA) that compute the model together, each a share of its heads and of its
    feed-forward columns: the first ones that this process sees."""
    prefix_cache: bool = True
    """Whether a prompt that begins like an earlier text uses what is left of it in the cache, and
    begins sooner; the text is the same. Replies are read as a prompt for that when the engine is
    idle."""
    cache_dir: str | os.PathLike[str] | None = None
    """A folder in which what was computed of prompts is kept, for when the cache has forgotten it
    and for later processes; several may share it. The text is the same. All of the model's files
    are read when it is loaded, to know which model it is."""
    cache_size: int = 8 * 2**30
    """Bytes that the model may have in `cache_dir`; what was used least recently goes."""
    max_waiting: int = 1024
    """Requests that may wait for their turn; one more is a QueueFullError."""
    adapters: Mapping[str, str | os.PathLike[str]] | tuple[tuple[str, Path], ...] | None = None
    """Low-rank adapters (LoRA), by the names that requests have: GGUF files, or directories that
    `peft` saved. A request without one is computed as if there were none."""
    mmproj: str | os.PathLike[str] | None = None
    """The GGUF file of the encoder of images that belongs to a model in GGUF, as llama.cpp's tools
    write it; see docs/images.md."""
    draft: str | os.PathLike[str] | None = None
    """A smaller model with the same vocabulary, which proposes tokens: what `load` takes as a path
    or name. It lies on the same device, with a cache for one context. The text is the same."""
    prediction_head: bool = False
    """Whether the model's own prediction head (`mtp.*`, in GGUF `nextn.*`, of Qwen3.5 and
    Qwen3-Next) is loaded and proposes tokens; a model without one is refused. The text is the
    same."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in (
            "device",
            "kv_type",
            "gpus",
            "prefix_cache",
            "cache_size",
            "max_waiting",
            "prediction_head",
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, type(self).__dataclass_fields__[name].default)
        if not isinstance(self.device, str) or not self.device.isprintable() or not self.device:
            raise refusal("device", self.device, 'a name, for example "auto" or "cpu"', "")
        if not isinstance(self.kv_type, str) or self.kv_type not in KV_TYPES:
            raise refusal("kv_type", self.kv_type, " or ".join(map(repr, KV_TYPES)), "")
        for name, highest in (
            ("context", 2**31 - 1),
            ("kv_memory", MAX_UINT64),
            ("gpu_memory", MAX_UINT64),
        ):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, integer(name, value, 1, highest, "or None"))
        object.__setattr__(self, "gpus", integer("gpus", self.gpus, 1, MAX_GPUS))
        if self.gpus > 1 and self.device not in ("auto", "cuda"):
            raise ArgumentError(
                f"gpus is {self.gpus}, and the device {self.device!r} is one; cuda may be several"
            )
        if self.threads is not None:
            object.__setattr__(self, "threads", thread_count("threads", self.threads, "or None"))
        object.__setattr__(self, "adapters", adapter_paths("adapters", self.adapters))
        if self.draft is not None and not (
            isinstance(self.draft, (str, os.PathLike)) and os.fspath(self.draft)
        ):
            raise refusal("draft", self.draft, "a path or name of a model", "or None")
        if self.mmproj is not None and not (
            isinstance(self.mmproj, (str, os.PathLike)) and os.fspath(self.mmproj)
        ):
            raise refusal("mmproj", self.mmproj, "the path of a file", "or None")
        flag("prefix_cache", self.prefix_cache)
        flag("prediction_head", self.prediction_head)
        if self.prediction_head and self.draft is not None:
            raise ArgumentError("draft and prediction_head both propose tokens: give one of them")
        if self.prediction_head and self.gpus > 1:
            raise ArgumentError("a prediction head runs on one GPU; gpus must be 1 for it")
        if self.cache_dir is not None:
            if not isinstance(self.cache_dir, (str, os.PathLike)) or not os.fspath(self.cache_dir):
                raise refusal("cache_dir", self.cache_dir, "a folder", "or None")
            if not self.prefix_cache:
                raise ArgumentError("cache_dir keeps prefixes, and prefix_cache=False keeps none")
            if self.gpus > 1:
                raise ArgumentError("cache_dir keeps what one GPU computed; gpus must be 1 for it")
        size = integer("cache_size", self.cache_size, 1, MAX_UINT64)
        object.__setattr__(self, "cache_size", size)
        waiting = integer("max_waiting", self.max_waiting, 1, MAX_UINT32)
        object.__setattr__(self, "max_waiting", waiting)


def kv_bytes(kv_type: str, n: int) -> int:
    """Return the bytes of `n` numbers of a cache, keys and values, whole blocks of either.

    >>> kv_bytes("q8_0", 64), kv_bytes("q4_0", 64)
    (68, 52)
    """
    return n * _BYTES_OF_64[kv_type] // 64


def thread_count(name: str, value: object, besides: str = "") -> int | Literal["auto"]:
    """Return a number of threads, or "auto"; ArgumentError for what is neither."""
    if isinstance(value, str) and value == AUTO:
        return AUTO
    try:
        return integer(name, value, 1, MAX_THREADS)
    except ArgumentError:
        allowed = f'an integer from 1 to {MAX_THREADS} or "{AUTO}"'
        raise refusal(name, value, allowed, besides) from None
