"""What a loaded model tells of itself: its shape, its memory, and what it is busy with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from akunu.errors import UnsupportedModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What a model's file says about its shape."""

    architecture: str
    """The family, as GGUF names it: "llama", "qwen3", "gemma2"."""
    name: str
    """The model's own name, "" where the file has none."""
    dim: int
    """Numbers per position in the residual stream."""
    n_layers: int
    """Number of layers."""
    n_heads: int
    """Query heads per layer."""
    n_kv_heads: int
    """Key and value heads per layer; fewer than `n_heads` where heads share them."""
    head_dim: int
    """Numbers per head."""
    ffn_dim: int
    """Width of the feed-forward layers. Where layers differ (as in heads), the most of any."""
    windows: tuple[int, ...]
    """How many positions a token of each layer sees, its own included; 0: all of them."""
    vocab_size: int
    """Rows of the logits; the tokenizer may have fewer tokens."""
    context_length: int
    """Positions that the model was trained on; `Model.context` says how many it has here."""
    rope_theta: float
    """Base of the rotary position embedding."""
    rope_dim: int
    """How many of the `head_dim` numbers are rotated."""
    norm_epsilon: float
    """What the norms add to the mean square."""
    latent_rank: int = 0
    """Latent attention (DeepSeek): the cache keeps this many numbers of a position, and `rope_dim`
    that are rotated, for all heads. 0: it keeps keys and values."""

    @property
    def cache_dim(self) -> int:
        """Numbers that the cache keeps of a position in a layer."""
        if self.latent_rank:
            return self.latent_rank + self.rope_dim
        return 2 * self.n_kv_heads * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePages:
    """Pages of 256 positions in layers that keep the same ones of a text."""

    kind: str
    """What these layers keep: "full", "window 512" where a token sees this many positions,
    "inputs 3" of a convolution over this many, or "states" of a text."""
    in_use: int
    """Pages that texts under way need."""
    cached: int
    """Pages kept for later prompts that begin alike; they make room for any text."""
    free: int
    """Pages with nothing in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskCache:
    """What a model has in its `cache_dir`."""

    files: int
    """Pieces of prompts, of up to 256 tokens each."""
    bytes: int
    """What they take."""
    most_bytes: int
    """What they may take: `cache_size`."""
    written: int
    """Tokens whose keys and values were written since the model was loaded."""
    restored: int
    """Tokens that prompts took over from there, and did not compute."""
    damaged: int
    """Files that were not what was written, and are removed."""
    problem: str
    """The error last; "" where nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """What a model's engine is busy with, as of its last step."""

    waiting: int
    """Requests that wait for a place."""
    running: int
    """Requests that are being computed: prompts, texts and logits."""
    cache: tuple[CachePages, ...]
    """The pages of the key/value cache, of each kind of layer."""
    drafted: int = 0
    """Tokens drafted (`speculation`) since the model was loaded, as of the last step."""
    accepted: int = 0
    """The drafted tokens that were accepted."""
    disk: DiskCache | None = None
    """What is kept in `cache_dir`; None without one."""


class MemoryReport(Mapping[str, int]):
    """Bytes of memory by what they are for, "total" included; `print` shows a table.

    >>> print(MemoryReport({"weights": 3 << 20, "cache": 1 << 20, "total": 4 << 20}))
    weights   3.0 MiB
    cache     1.0 MiB
    total     4.0 MiB

    With a `cache_dir` the table ends with what is kept there, which is not memory.
    """

    disk: DiskCache | None
    """What is kept in `cache_dir`; None without one."""

    def __init__(self, bytes_by_label: Mapping[str, int], disk: DiskCache | None = None) -> None:
        """Keep a copy of `bytes_by_label`."""
        self._bytes = dict(bytes_by_label)
        self.disk = disk

    def __getitem__(self, label: str) -> int:
        """Return the bytes of one label."""
        return self._bytes[label]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the labels, "total" last."""
        return iter(self._bytes)

    def __len__(self) -> int:
        """Return the number of labels."""
        return len(self._bytes)

    def __repr__(self) -> str:
        """Show the numbers themselves."""
        return f"MemoryReport({self._bytes})"

    def __str__(self) -> str:
        """Show one line per label."""
        shown = {label: f"{size / 2**20:.1f} MiB" for label, size in self._bytes.items()}
        if self.disk is not None:
            shown["on the disk"] = f"{self.disk.bytes / 2**20:.1f} MiB"
            shown["there at most"] = f"{self.disk.most_bytes / 2**20:.1f} MiB"
        left = max(map(len, shown), default=0)
        right = max(map(len, shown.values()), default=0)
        return "\n".join(f"{label:<{left}}  {size:>{right}}" for label, size in shown.items())


def no_chat(architecture: str) -> UnsupportedModelError:
    """Return the error of an encoder that shall answer."""
    return UnsupportedModelError(
        f"{architecture} is an encoder: it embeds texts (Model.embed, akunu embed) and generates "
        f"none"
    )
