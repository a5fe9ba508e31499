# Written by tools/options.py from the declarations in this folder; do not edit.
"""Keyword arguments of calls, for type checkers and editors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from typing import Literal, TypedDict


class SamplingArguments(TypedDict, total=False):
    """The keyword arguments that `SamplingOptions` takes."""

    max_tokens: int | None
    """The most tokens to generate; otherwise until the model stops or the context is full."""

    temperature: float | None
    """0 (the default) takes the most likely words; higher surprises more."""

    top_k: int | None
    """Choose among this many likely tokens; 0 (the default): among all."""

    top_p: float | None
    """Choose among the fewest tokens that reach this sum; default: 1, all."""

    min_p: float | None
    """Drop tokens less likely than this share of the likeliest; default: 0, none."""

    typical_p: float | None
    """Choose among the tokens of the most usual surprise, up to this sum; default: 1, all."""

    top_n_sigma: float | None
    """Drop logits so many standard deviations below the largest; default: 0, none."""

    xtc_probability: float | None
    """How often the likeliest tokens are dropped, for variety; default: 0, never."""

    xtc_threshold: float | None
    """Which those are: all that are this likely but the last of them; default: 0.1."""

    repetition_penalty: float | None
    """Above 1 (the default): what was said lately is less likely."""

    frequency_penalty: float | None
    """Above 0 (the default): the less likely, the more often it was said."""

    presence_penalty: float | None
    """Above 0 (the default): less likely, however often it was said."""

    penalty_window: int | None
    """Penalties look at so many of the latest tokens; default: 64."""

    penalize_prompt: bool | None
    """Whether penalties and DRY look at the prompt too, or at the reply alone."""

    dry_multiplier: float | None
    """DRY: above 0 (the default), going on as it was said before is less likely."""

    dry_base: float | None
    """DRY: each further token of a repetition costs so many times more; default: 1.75."""

    dry_allowed_length: int | None
    """DRY: so many tokens may be repeated before it costs something; default: 2."""

    dry_penalty_last_n: int | None
    """DRY looks at so many of the latest tokens; default: all."""

    dry_sequence_breakers: str | Sequence[str] | Set[str] | None
    """DRY: no repetition goes beyond one of these."""

    samplers: Sequence[str] | None
    """What is done to the logits, in which order; what is left out is not done."""

    min_tokens: int | None
    """The least tokens to generate: the model cannot end its text before."""

    seed: int | None
    """The same seed gives the same text."""

    stop: str | Sequence[str] | Set[str] | None
    """The text ends before the first of these that appears."""

    stop_token_ids: Sequence[int] | Set[int] | None
    """The text ends before the first of these tokens, as before the model's own."""

    ignore_eos: bool | None
    """Whether the tokens with which the model ends its texts cannot be chosen."""

    context_overflow: str | None
    """Where the context is full: stop, error, shift: forget the oldest, go on; or reread."""

    speculation: int | str | None
    """Tokens drafted as the text went before: auto, off or how many. It stays the same."""

    logit_bias: Mapping[int, float] | None
    """What is added to the logits of tokens, by their ids; -inf bans one."""

    adapters: str | Mapping[str, float] | None
    """The adapter of the model that the text has, or several with a weight each."""

    logprobs: int | None
    """Also tell how likely each token was, and so many of the most likely ones."""

    prompt_logprobs: int | None
    """Likewise of the prompt's tokens, which are computed anew for that."""

    echo: bool | None
    """Whether the text begins with that of the prompt."""

    answer_index: int | None
    """Which of several answers with one seed this is; n=3 gives 0, 1 and 2."""


class LoadArguments(TypedDict, total=False):
    """The keyword arguments that `LoadOptions` takes."""

    device: str | None
    """A name that `akunu devices` shows."""

    context: int | None
    """Tokens that one text may have; default: what fits."""

    threads: int | Literal["auto"] | None
    """Threads of the CPU; default: one per core; auto: what a measurement says."""

    gpu_memory: int | None
    """Bytes of each GPU that a model may take; other weights are read from the host's memory."""

    gpus: int | None
    """GPUs that compute a model together."""

    kv_type: str | None
    """Number format of the cache: f16, f32, q8_0 or q4_0."""

    kv_memory: int | None
    """Bytes for the cache; default: one full context."""

    cache_dir: str | os.PathLike[str] | None
    """A folder that keeps what was computed of prompts, for later starts."""

    cache_size: int | None
    """Bytes that each model may have in cache_dir."""

    prediction_head: bool | None
    """The model's own prediction head proposes tokens."""

    prefix_cache: bool | None
    """Whether a prompt uses what the cache has of an earlier text that begins alike."""

    max_waiting: int | None
    """Requests that may wait for their turn; one more is a QueueFullError."""

    adapters: Mapping[str, str | os.PathLike[str]] | None
    """Load and use a LoRA adapter: GGUF, or a directory of peft."""

    mmproj: str | os.PathLike[str] | None
    """The encoder of images of a model in GGUF."""

    draft: str | os.PathLike[str] | None
    """A smaller model that proposes tokens; same vocabulary."""
