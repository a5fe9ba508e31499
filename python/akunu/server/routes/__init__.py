"""Routes that belong to no dialect. Each file is found here by itself; nothing else lists it.

A file's `router` is there with and without /v1, its `root_router` as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from fastapi import APIRouter


def routers(name: str) -> Iterator[APIRouter]:
    """Iterate over the routers of this name, `router` or `root_router`, in the files here."""
    for file in iter_modules(__path__, f"{__name__}."):
        router: APIRouter | None = getattr(import_module(file.name), name, None)
        if router is not None:
            yield router
