"""The models that a server has: by name, loaded when one is asked for, unloaded when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from akunu.errors import AkunuError, ArgumentError
from akunu.model import Model
from akunu.options import LoadOptions
from akunu.server.errors import ApiError, invalid

EMBEDDED: Final = "ember"


@dataclass(slots=True, eq=False)
class ServedModel:
    """A model by the name that requests have; it may be loaded or not."""

    name: str
    source: str
    """What `akunu.load` takes."""
    options: LoadOptions
    created: int = field(default_factory=lambda: int(time.time()))
    model: Model | None = None
    n_users: int = 0
    loading: asyncio.Task[Model] | None = None
    unloading: asyncio.Future[None] | None = None
    idle_timer: asyncio.TimerHandle | None = None


class ServedModels:
    """The models of a server; used from its event loop alone.

    >>> ServedModels({"small": "ember"}).names
    ['small']
    """

    def __init__(
        self,
        sources: Mapping[str, str] | Sequence[str] = (EMBEDDED,),
        options: LoadOptions | None = None,
        *,
        idle_seconds: float = 0.0,
    ) -> None:
        """`sources`: what `akunu.load` takes, by the names that requests have, or alone.

        Raises ArgumentError for a name that is there twice.
        """
        named = sources if isinstance(sources, Mapping) else named_sources(sources)
        if not named:
            named = {EMBEDDED: EMBEDDED}
        chosen = options or LoadOptions()
        self._models = {name: ServedModel(name, source, chosen) for name, source in named.items()}
        self._idle_seconds = idle_seconds

    @property
    def names(self) -> list[str]:
        """What requests may ask for, in the order of the command line."""
        return list(self._models)

    @property
    def all(self) -> list[ServedModel]:
        """All models, loaded or not."""
        return list(self._models.values())

    def find(self, name: str | None) -> ServedModel:
        """Return the model of a name; None: the first. ApiError where there is none.

        The exact name counts, then the same in other case, where that is only one.
        """
        if name is None:
            return next(iter(self._models.values()))
        if name in self._models:
            return self._models[name]
        alike = [each for each in self._models if each.casefold() == name.casefold()]
        if len(alike) == 1:
            return self._models[alike[0]]
        if alike:
            raise invalid("model", f"model {name!r} may be {' or '.join(alike)}: say which")
        raise ApiError(
            404,
            f"the model {name!r} is not served here; there is {', '.join(self._models)}",
            param="model",
            code="model_not_found",
        )

    @asynccontextmanager
    async def use(self, name: str | None) -> AsyncIterator[tuple[ServedModel, Model]]:
        """Hold a model as long as a request needs it; it is loaded if need be."""
        served = self.find(name)
        served.n_users += 1
        if served.idle_timer is not None:
            served.idle_timer.cancel()
            served.idle_timer = None
        try:
            yield served, await self._loaded(served)
        finally:
            served.n_users -= 1
            self._begin_idling(served)

    def adopt(self, name: str, model: Model) -> None:
        """Take a model that is loaded already; it is closed with the others."""
        self.find(name).model = model

    async def load(self, name: str | None) -> ServedModel:
        """Have a model loaded; ApiError where that fails, whose cause is what `load` raised."""
        async with self.use(name) as (served, _):
            return served

    async def unload(self, name: str | None) -> bool:
        """Close a model that nobody uses; return whether it was loaded. ApiError where in use."""
        served = self.find(name)
        if served.n_users or served.loading is not None:
            raise ApiError(
                409, f"{served.name} is in use by {served.n_users} requests", param="model"
            )
        return await self._unloaded(served)

    async def close(self) -> None:
        """Close all models; texts under way end with an error."""
        for served in self.all:
            if served.loading is not None:
                served.loading.cancel()
            if served.idle_timer is not None:
                served.idle_timer.cancel()
            await self._unloaded(served)

    async def _loaded(self, served: ServedModel) -> Model:
        if served.unloading is not None:
            await asyncio.shield(served.unloading)
        if served.model is not None:
            return served.model
        if served.loading is None:
            served.loading = asyncio.ensure_future(self._load(served))
            served.loading.add_done_callback(_look_at)
        try:
            # Several requests may wait for it; one that goes away does not end it for the others.
            return await asyncio.shield(served.loading)
        except AkunuError as error:
            never_again = {"x-should-retry": "false"}
            raise ApiError(
                500,
                f"the model {served.name!r} cannot be loaded: {error}",
                param="model",
                code="model_not_loaded",
                headers=never_again,
            ) from error

    async def _load(self, served: ServedModel) -> Model:
        from akunu.loading import load

        loop = asyncio.get_running_loop()
        begin = partial(load, served.source, **asdict(served.options))
        try:
            served.model = await loop.run_in_executor(None, begin)
        finally:
            served.loading = None
        return served.model

    async def _unloaded(self, served: ServedModel) -> bool:
        model, served.model = served.model, None
        if model is None:
            return False
        loop = asyncio.get_running_loop()
        served.unloading = loop.run_in_executor(None, model.close)
        try:
            await asyncio.shield(served.unloading)
        finally:
            served.unloading = None
        return True

    def _begin_idling(self, served: ServedModel) -> None:
        if self._idle_seconds <= 0 or served.n_users or served.model is None:
            return
        loop = asyncio.get_running_loop()

        def unload() -> None:
            served.idle_timer = None
            if not served.n_users:
                self._unload_task = asyncio.ensure_future(self._unloaded(served))

        served.idle_timer = loop.call_later(self._idle_seconds, unload)


def _look_at(task: asyncio.Task[Model]) -> None:
    """Take the error of a task for which nobody may wait any more; asyncio would complain."""
    if not task.cancelled():
        task.exception()


def named_sources(given: Sequence[str]) -> dict[str, str]:
    """Return sources by the names that requests have: `name=source`, or what the source is called.

    >>> named_sources(["ember", "big=/models/qwen3-8b.gguf", "/models/small.gguf"])
    {'ember': 'ember', 'big': '/models/qwen3-8b.gguf', 'small': '/models/small.gguf'}
    """
    named: dict[str, str] = {}
    for each in given:
        alias, equals, source = each.partition("=")
        if not equals or alias.startswith("https://") or Path(each).exists():
            alias, source = _name_of(each), each
        if not alias or not source:
            raise ArgumentError(f"{each!r} is no model: write MODEL, or NAME=MODEL")
        if alias in named:
            raise ArgumentError(f"two models are called {alias!r}: name one with NAME=MODEL")
        named[alias] = source
    return named


def _name_of(source: str) -> str:
    """Return what to call a model: a file by its name, all others as they are written."""
    if source.lower().endswith(".gguf"):
        return source.rpartition("/")[2][: -len(".gguf")]
    return source
