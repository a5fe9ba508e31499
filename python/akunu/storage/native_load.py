"""The engine's part of loading a model, in its own thread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from akunu import _core
from akunu.options.declarations import declared_of
from akunu.options.text_options import LoadOptions


def begin_load(
    path: Path,
    options: LoadOptions,
    alignment_heads: Sequence[tuple[int, int]] = (),
    draft_path: Path | None = None,
) -> _core.NativeLoad:
    """Have the engine load its part of a model; no one has to wait for it.

    `alignment_heads`: (layer, head) of a model of speech whose attention says when words are said.
    `draft_path`: of the model that proposes tokens; its vocabulary is the caller's to check.
    """
    return _core.NativeLoad(
        os.fspath(path),
        device=options.device,
        threads=int(options.threads or 0),
        kv_type=options.kv_type,
        gpus=options.gpus,
        prefix_cache=options.prefix_cache,
        max_waiting=options.max_waiting,
        adapters={name: os.fspath(each) for name, each in dict(options.adapters or {}).items()},
        alignment_heads=alignment_heads,
        draft=None if draft_path is None else os.fspath(draft_path),
        mmproj=None if options.mmproj is None else os.path.expanduser(options.mmproj),
        **{
            name: getattr(options, name)
            for name, declared in declared_of(LoadOptions).items()
            if declared.packed
        },
    )


def begin_context(of: _core.NativeModel, options: LoadOptions) -> _core.NativeLoad:
    """Have the engine make another context over the weights of a model that is loaded."""
    return of.new_context(
        kv_type=options.kv_type,
        prefix_cache=options.prefix_cache,
        max_waiting=options.max_waiting,
        context=options.context,
        kv_memory=options.kv_memory,
    )
