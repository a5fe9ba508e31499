"""What a model keeps of prompts in a folder, for when it forgot them and for later processes.

The engine reads and writes the files (src/cache/prefix_disk.h). Here the folder is chosen: each
model has one of its own in `cache_dir`, for each way of loading it that changes a bit of its keys
and values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from akunu._model_identity import SeenFile, digest_of
from akunu.errors import AkunuError, UnsupportedModelError

if TYPE_CHECKING:
    from akunu.model import Model
    from akunu.options import LoadOptions


def keep_on_disk(model: Model, options: LoadOptions) -> tuple[str, ...]:
    """Have the engine keep prefixes in `options.cache_dir`; return what to say about it.

    All of the model's files are read once, to know which model it is. Raises ArgumentError for a
    folder that cannot be used, or a limit below a page, and AkunuError for a file that changed.
    """
    assert options.cache_dir is not None
    native = model._open()
    if not native.cache_layout:
        return (
            f"an encoder keeps nothing of earlier texts, so there is nothing in {_dir(options)}",
        )
    try:
        native.keep_on_disk(
            _dir(options) / identity_of(model), options.cache_size, _adapter_digests(model, options)
        )
    except UnsupportedModelError as error:
        return (f"the cache is not kept in {_dir(options)}: {error}",)
    disk = model.occupancy.disk
    return (disk.problem,) if disk is not None and disk.problem else ()


def identity_of(model: Model) -> str:
    """Return a name of all that keys and values depend on beside tokens and adapters."""
    from akunu.session_state import _computed_by, _layout_of

    native = model._open()
    facts = [model._digest, _layout_of(native), _computed_by(native)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _dir(options: LoadOptions) -> Path:
    assert options.cache_dir is not None
    return Path(options.cache_dir).expanduser().absolute()


def _adapter_digests(model: Model, options: LoadOptions) -> list[Sequence[int]]:
    """Return what each adapter is, in the engine's order, as numbers."""
    paths = dict(options.adapters or {})
    return [_digest_of_adapter(Path(paths[name])) for name in model.adapters]


def _digest_of_adapter(path: Path) -> list[int]:
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    try:
        digest = bytes.fromhex(digest_of(tuple(SeenFile.at(each) for each in files)))
    except OSError as error:
        raise AkunuError(f"the adapter {path} cannot be read: {error.strerror}") from None
    return [int.from_bytes(digest[i : i + 4], "little") for i in range(0, len(digest), 4)]
