"""How a model is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from akunu.common.checks import MAX_UINT32, MAX_UINT64, refusal
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.adapter_options import adapter_paths
from akunu.options.declarations import MEMORY, USUAL, check_options, option
from akunu.options.engine_limits import MAX_GPUS, MAX_THREADS
from akunu.options.option_checks import Integers, Names, flag_check, path_of, thread_count

KV_TYPES = ("f16", "f32", "q8_0", "q4_0")
# Bytes of 32 numbers of a key and 32 of a value. With q4_0 keys are in Q8_0 (34 bytes), values in
# Q4_0 (18).
_BYTES_OF_64 = {"f16": 128, "f32": 256, "q8_0": 68, "q4_0": 34 + 18}

# Which commands have an option.
_ANY = ("embed", "rank", "inspect", "plan", "chat", "complete")
_TEXTS = _ANY[2:]  # models that embed have no cache, and are on one GPU
_PROMPTS = _ANY[3:]
_CHATS = _ANY[4:]


def _device(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise refusal(name, value, 'a name, for example "auto" or "cpu"')
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model is loaded, as `load` and the settings of a server have it alike.

    How an option is added: docs/adding/load-option.md. Those that are `packed` are fields of
    `LoadOptions` in src/inference/context_plan.h.
    """

    device: str = option(
        "auto",
        _device,
        "The device that runs the model, by its name in `akunu devices`.",
        "NAME",
        calls=_ANY,
        more="Models with the same device and threads share it.",
        group=MEMORY,
        default_is="auto, the fastest one",
    )
    context: int | None = option(
        None,
        Integers(1, 2**31 - 1, "or None"),
        "Context window: the most tokens of a text, prompt and completion together.",
        calls=_ANY,
        packed="I",
        other_names=("num_ctx",),
        more="At most as many as the model was trained on.",
        group=USUAL,
        default_is="as many as fit",
    )
    threads: int | Literal["auto"] | None = option(
        None,
        thread_count,
        "CPU threads. `auto` measures which number is fastest.",
        "INTEGER|auto",
        calls=_ANY,
        other_names=("num_thread",),
        more="The [measurement](../speed.md#threads) takes about a second. The text is the same.",
        group=MEMORY,
        range_is=f"1 to {MAX_THREADS}, or auto",
        default_is="one per core",
    )
    gpu_memory: int | None = option(
        None,
        Integers(1, MAX_UINT64, "or None"),
        "The most bytes of each GPU that a model may take. Its other weights stay in the "
        "host's memory.",
        "BYTES",
        calls=_ANY,
        packed="Q",
        more="[Which weights stay there](../models.md#models-larger-than-the-gpu).",
        group=MEMORY,
        default_is="all that is free",
    )
    gpus: int = option(
        1,
        Integers(1, MAX_GPUS),
        "GPUs that compute a model together (tensor parallel).",
        calls=_TEXTS,
        more="[Each a share](../models.md#several-gpus) of heads and columns.",
        group=MEMORY,
    )
    kv_type: str = option(
        "f16",
        Names(KV_TYPES),
        "Number format of the KV cache.",
        "TYPE",
        calls=_TEXTS,
        more="`q8_0` takes 53 % of the memory of `f16`, and `q4_0` (keys in Q8_0, values in Q4_0) "
        "41 %; [the cost in accuracy](../decisions/attention-and-cache.md).",
        group=MEMORY,
    )
    kv_memory: int | None = option(
        None,
        Integers(1, MAX_UINT64, "or None"),
        "Bytes of the KV cache.",
        "BYTES",
        calls=(),
        packed="Q",
        more="",
        group=MEMORY,
        default_is="one full context, or what fits",
    )
    cache_dir: str | os.PathLike[str] | None = option(
        None,
        path_of("a folder"),
        "A folder for the KV cache of prompts, so that later processes reuse it.",
        "FOLDER",
        calls=_PROMPTS,
        more="Prefixes that no longer fit in memory are read from it as well "
        "([prefixes on the disk](../python.md#prefixes-on-the-disk)).",
        group=MEMORY,
        default_is="none",
    )
    cache_size: int = option(
        8 * 2**30,
        Integers(1, MAX_UINT64),
        "The most bytes of each model's files in cache_dir.",
        "BYTES",
        calls=_PROMPTS,
        more="The least recently used prefixes are deleted.",
    )
    prediction_head: bool = option(
        False,
        flag_check,
        "Draft tokens with the model's own prediction head. The completion stays the same.",
        calls=_CHATS,
        packed="?",
        more="Qwen3.5 and Qwen3-Next have one ([drafts](../python.md#draft-tokens)).",
    )


@explains_typos_of_init
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions(ModelOptions):
    """How a model is loaded.

    For each option None is its default, as if it was not given. Raises ArgumentError for values
    that make no sense and MisuseError for an option that does not exist.

    >>> LoadOptions(context=2048, threads=2).kv_type
    'f16'
    """

    prefix_cache: bool = option(
        True,
        flag_check,
        "Reuse the KV cache of an earlier prompt with the same prefix.",
        calls=(),
        opposite="no_prefix_cache",
    )
    max_waiting: int = option(
        1024,
        Integers(1, MAX_UINT32),
        "The most requests that may wait; one more raises QueueFullError.",
        calls=(),
    )
    adapters: Mapping[str, str | os.PathLike[str]] | tuple[tuple[str, Path], ...] | None = option(
        None,
        adapter_paths,
        "Load a LoRA adapter and use it: a GGUF file or a peft directory.",
        "NAME=PATH",
        flag="--adapter",
        is_list=True,
        calls=_CHATS,
        accepts="Mapping[str, str | os.PathLike[str]] | None",
        more="Requests name it; see [adapters](../models.md#adapters).",
    )
    mmproj: str | os.PathLike[str] | None = option(
        None,
        path_of("the path of a file"),
        "The image encoder of a GGUF model: its mmproj file.",
        "FILE",
        calls=_CHATS,
        more="As llama.cpp's tools write it ([images](../embeddings-speech-images.md#images)).",
    )
    chat_template: str | os.PathLike[str] | None = option(
        None,
        path_of("the path of a file, or a template"),
        "A file with a Jinja chat template, in place of the model's own.",
        "FILE",
        calls=("inspect", "chat"),
        more="In Python also the template's text.",
    )
    warm_up: bool = option(
        False,
        flag_check,
        "Compute a few tokens when a model is loaded, so that the first request is as fast as "
        "others.",
        calls=(),
        more="The server does it.",
    )
    draft: str | os.PathLike[str] | None = option(
        None,
        path_of("a path or name of a model"),
        "A smaller model with the same vocabulary that drafts tokens. The completion "
        "stays the same.",
        "MODEL",
        calls=_CHATS,
        more="See [drafts](../python.md#draft-tokens).",
    )

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense."""
        check_options(self)
        object.__setattr__(self, "adapters", self.adapters or ())
        if self.gpus > 1 and self.device not in ("auto", "cuda"):
            raise ArgumentError(
                f"gpus is {self.gpus}, but device is {self.device!r}; only cuda runs a model on "
                f"several GPUs"
            )
        if self.prediction_head and self.draft is not None:
            raise ArgumentError("draft and prediction_head both draft tokens: set one of them")
        if self.prediction_head and self.gpus > 1:
            raise ArgumentError("a prediction head runs on one GPU; gpus must be 1")
        if self.cache_dir is not None:
            if not self.prefix_cache:
                raise ArgumentError("cache_dir keeps prefixes, but prefix_cache is False")
            if self.gpus > 1:
                raise ArgumentError("cache_dir works on one GPU; gpus must be 1")


def kv_bytes(kv_type: str, n: int) -> int:
    """Return the bytes of `n` numbers of a cache, keys and values, whole blocks of either.

    >>> kv_bytes("q8_0", 64), kv_bytes("q4_0", 64)
    (68, 52)
    """
    return n * _BYTES_OF_64[kv_type] // 64
