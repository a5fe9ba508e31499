"""A model's prefixes in a folder: for prompts that left its memory, and for later processes.

The engine reads and writes the files (src/cache/prefix_disk.h). This module chooses the folder in
`cache_dir`: there is one for each model and for each way of loading it that changes the bits of its
keys and values.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from akunu.errors import AkunuError, UnsupportedModelError
from akunu.model_facts import Occupancy
from akunu.options.text_options import LoadOptions
from akunu.storage.cache_identity import KeyedModel, computed_on, layout_of
from akunu.storage.model_identity import SeenFile, digest_of

if TYPE_CHECKING:
    from akunu import _core

_SUFFIX: Final = ".run"
_PIECE: Final = 256  # tokens of a whole piece
_HEAD: Final = 72 + 4  # bytes of a file without adapters, next to its tokens and pages


class CachedModel(KeyedModel, Protocol):
    """A model whose prefixes are kept on the disk: `akunu.Model`."""

    @property
    def occupancy(self) -> Occupancy:
        """What is in use."""

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of its adapters."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What lies in a folder now."""

    models: int
    """Folders of models, each in one way of loading it."""
    files: int
    bytes: int


def kept_in(cache_dir: Path) -> Kept:
    """Count what all models have in a `cache_dir`; nothing where there is no such folder.

    Raises AkunuError for a folder that cannot be read.
    """
    sizes = [list(_sizes(folder)) for folder in _entries(cache_dir) if folder.is_dir()]
    sizes = [each for each in sizes if each]
    return Kept(len(sizes), sum(map(len, sizes)), sum(map(sum, sizes)))


def kept_of(model: CachedModel, cache_dir: Path) -> Kept:
    """Count what a model has in a `cache_dir`, loaded as it is; reads all of its files once."""
    sizes = list(_sizes(cache_dir / identity_of(model)))
    return Kept(int(bool(sizes)), len(sizes), sum(sizes))


def bytes_per_token(native: _core.NativeModel) -> int | None:
    """Return what keys and values of a token take on the disk; None where none are kept there.

    At most: pages that a sliding window has left behind may be gone before they are written. States
    of recurrent layers are not of tokens: of each place where a text can continue they take
    `native.state_bytes`.
    """
    layout = native.cache_layout
    if not layout or any(group["kind"] == "encoder" for group in layout):
        return None
    layers: list[tuple[int, int, int, int]] = [
        layer for group in layout if group["kind"] != "states" for layer in group["layers"]
    ]
    return sum(n_heads * n_bytes * n_pools for _, n_heads, n_bytes, n_pools in layers)


def tokens_in(size: int, token_bytes: int, state_bytes: int = 0) -> int:
    """Return how many tokens `size` bytes hold of one text, in whole pieces, with its states."""
    return max(0, size - state_bytes) // (_HEAD + _PIECE * (4 + token_bytes)) * _PIECE


def _sizes(folder: Path) -> Iterator[int]:
    for path in _entries(folder):
        if path.suffix == _SUFFIX:
            try:
                yield path.stat().st_size
            except FileNotFoundError:  # another process made room
                continue


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise AkunuError(f"{folder} cannot be read: {error.strerror}") from None


def keep_on_disk(model: CachedModel, options: LoadOptions) -> tuple[str, ...]:
    """Have the engine keep prefixes in `options.cache_dir`; return what to say about it.

    All of the model's files are read once, to know which model it is. Raises ArgumentError for a
    folder that cannot be used, or a limit below a page, and AkunuError for a file that changed.
    """
    assert options.cache_dir is not None
    native = model._open()
    if not native.cache_layout:
        return (f"an encoder has no KV cache, so nothing is kept in {_dir(options)}",)
    try:
        native.keep_on_disk(
            _dir(options) / identity_of(model), options.cache_size, _adapter_digests(model, options)
        )
    except UnsupportedModelError as error:
        return (f"the cache is not kept in {_dir(options)}: {error}",)
    disk = model.occupancy.disk
    notes: tuple[str, ...] = (disk.problem,) if disk is not None and disk.problem else ()
    free = shutil.disk_usage(_dir(options)).free
    if not tokens_in(free, bytes_per_token(native) or 0, native.state_bytes):
        notes += (
            f"the disk of {_dir(options)} has {free} bytes left: no more prefixes are kept there "
            f"until 256 tokens fit",
        )
    return notes


def identity_of(model: CachedModel) -> str:
    """Return a name of all that keys and values depend on next to tokens and adapters."""
    native = model._open()
    facts = [model._digest, layout_of(native), computed_on(native)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _dir(options: LoadOptions) -> Path:
    assert options.cache_dir is not None
    return Path(options.cache_dir).expanduser().absolute()


def _adapter_digests(model: CachedModel, options: LoadOptions) -> list[Sequence[int]]:
    """Return what each adapter is, in the engine's order, as numbers."""
    paths = dict(options.adapters or {})
    return [digest_of_adapter(Path(paths[name])) for name in model.adapters]


def digest_of_adapter(path: Path) -> list[int]:
    """Return what an adapter is, as numbers; AkunuError for files that cannot be read."""
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    try:
        digest = bytes.fromhex(digest_of(tuple(SeenFile.at(each) for each in files)))
    except OSError as error:
        raise AkunuError(f"the adapter {path} cannot be read: {error.strerror}") from None
    return [int.from_bytes(digest[i : i + 4], "little") for i in range(0, len(digest), 4)]
