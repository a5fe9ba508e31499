"""The models that a server has: by name, loaded when one is requested, unloaded when idle."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Final

from akunu import loading
from akunu.errors import AkunuError, ArgumentError
from akunu.model import Model
from akunu.options.text_options import LoadOptions
from akunu.server.catalogue.catalogue import Catalogue, Discover
from akunu.server.catalogue.created import CreatedModel, CreatedModels
from akunu.server.catalogue.presets import Preset
from akunu.server.http.errors import ApiError
from akunu.server.model_names import named_sources
from akunu.server.room import WAIT_SECONDS, Room
from akunu.server.served_model import Loaded, ServedModel
from akunu.server.settings import ServerSettings
from akunu.speech.loading import load_whisper_with
from akunu.speech.model import SpeechModel
from akunu.speech.model_kind import is_speech_model
from akunu.storage.model_files import open_model_files

EMBEDDED: Final = "ember"
_MOST_LOADERS: Final = 64
"""Threads that load models; each begins when it is needed."""


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
        memory: int | None = None,
        max_loaded: int | None = None,
        pinned: Sequence[str] = (),
        discover: Discover | None = None,
        presets: Mapping[str, Preset] | None = None,
        created: CreatedModels | None = None,
        default_model: str | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`sources`: what `akunu.load` takes, by the names that requests have, or alone.

        A model has several names where they are separated by commas. `memory`: bytes that loaded
        models may take together, `max_loaded`: how many may be loaded; the least recently used one
        is unloaded for another, and one that finds others in use waits this many seconds.
        `pinned`: names of models that stay loaded. `discover`: finds further models, which have
        neither adapters nor drafts. `presets`: how single models are loaded and answer. `created`:
        where models that requests create are kept; None: it serves none.

        Raises ArgumentError for a name that is there twice, or pinned and not there.
        """
        named = sources if isinstance(sources, Mapping) else named_sources(sources)
        if not named:
            named = {EMBEDDED: EMBEDDED}
        self._catalogue = Catalogue(
            named,
            options or LoadOptions(),
            pinned=pinned,
            discover=discover,
            presets=presets,
            created=created,
        )
        self._default_model = default_model
        if default_model is not None:
            self._catalogue.of_setting("default_model", default_model)
        self._memory = memory
        self._max_loaded = max_loaded
        self._room = Room(
            memory, lambda: self.all, self._unloaded, most=max_loaded, wait_seconds=wait_seconds
        )
        self._idle_seconds = idle_seconds
        # Separate threads: a download that takes hours delays nothing else.
        self._loaders = ThreadPoolExecutor(_MOST_LOADERS, "akunu load")

    @classmethod
    def of(
        cls,
        settings: ServerSettings,
        sources: Mapping[str, str] | Sequence[str] = (EMBEDDED,),
        discover: Discover | None = None,
        presets: Mapping[str, Preset] | None = None,
        created: CreatedModels | None = None,
    ) -> ServedModels:
        """Return models that are loaded and unloaded as the settings of a server say."""
        return cls(
            sources,
            settings.load_options,
            idle_seconds=settings.idle_seconds,
            memory=settings.memory,
            max_loaded=settings.max_loaded,
            pinned=settings.pinned,
            discover=discover,
            presets=presets,
            created=created,
            default_model=settings.default_model,
        )

    @property
    def names(self) -> list[str]:
        """The names of all models, those of the command line first, in their order."""
        return [each.name for each in self.all]

    @property
    def all(self) -> list[ServedModel]:
        """All models, loaded or not."""
        return list(self._catalogue.models.values())

    async def listed(self) -> list[ServedModel]:
        """Return all models, after a look for new ones; of each it is known if it takes audio."""
        await self._look()
        for each in self.all:
            await self.looked_at(each)
        return self.all

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._catalogue.update(await loop.run_in_executor(None, self._catalogue.discovered))

    async def seek(self, name: str | None) -> None:
        """Look for new models where a name is unknown, so that `find` need not.

        The look is in a thread: a disk may be slow, and other requests continue meanwhile.
        """
        if name is None or name in self._catalogue.by_name:
            return
        if self._catalogue.is_worth_a_look(name):
            await self._look()

    def find(self, name: str | None) -> ServedModel:
        """Return the model of a name; None: the first of texts. ApiError where there is none.

        The exact name counts, then the same in other case, where that is only one.
        """
        if name is None:
            return next((each for each in self.all if not each.is_speech), self.all[0])
        return self._catalogue.by_name.get(name) or self._catalogue.find(name)

    def answering(self, name: str | None) -> ServedModel:
        """Return the model that answers requests for a name: as `find`, else the default model."""
        try:
            return self.find(name)
        except ApiError as error:
            if self._default_model is None or error.code != "model_not_found":
                raise
            return self.find(self._default_model)

    def exact_name(self, name: str | None) -> str:
        """Return a model's own name, with the adapter after it that `name` has; as `answering`.

        >>> ServedModels({"small,tiny": "ember"}).exact_name("tiny")
        'small'
        """
        served = self.answering(name)
        adapter = self.adapter_in(name or "", served)
        return f"{served.name}:{adapter}" if adapter else served.name

    def adapter_in(self, name: str, served: ServedModel) -> str:
        """Return the adapter that a name of this model has after its own, or ""."""
        adapter = name.rpartition(":")[2]
        is_adapted = name not in self._catalogue.by_name and adapter in served.adapters
        return adapter if is_adapted else ""

    @asynccontextmanager
    async def use(
        self, name: str | None, keep_seconds: float | None = None
    ) -> AsyncIterator[tuple[ServedModel, Model]]:
        """Hold a model of texts as long as a request needs it; it is loaded if need be.

        `keep_seconds`: how long it stays loaded afterwards without requests, or for ever
        (infinity); None: as the server says. Raises ApiError for one of speech, and what `load`
        raises.
        """
        served = await self._chosen(name, is_speech=False)
        async with self._held(served, keep_seconds) as model:
            if not isinstance(model, Model):
                raise _wrong_kind(
                    f"{served.name} is a speech model: it reads audio, at /v1/audio/transcriptions"
                )
            yield served, model

    @asynccontextmanager
    async def use_speech(self, name: str | None) -> AsyncIterator[tuple[ServedModel, SpeechModel]]:
        """Likewise a model of speech; None: the first of those."""
        served = await self._chosen(name, is_speech=True)
        async with self._held(served) as model:
            if not isinstance(model, SpeechModel):
                raise self._no_speech(served)
            yield served, model

    async def check_speech(self, name: str | None) -> None:
        """Raise ApiError where there is no such model, or it is known to take no audio."""
        served = await self._chosen(name, is_speech=True)
        if await self.looked_at(served) is False:
            raise self._no_speech(served)

    async def _chosen(self, name: str | None, *, is_speech: bool) -> ServedModel:
        """Return the model of a name; None: the first of its kind."""
        if name is not None:
            await self.seek(name)
            return self.answering(name)
        for served in self.all:
            if bool(await self.looked_at(served)) is is_speech:
                return served
        return self.all[0]

    async def looked_at(self, served: ServedModel) -> bool | None:
        """Return whether a model takes audio; None where its file is not on this machine yet."""
        if served.is_speech is None:
            loop = asyncio.get_running_loop()
            served.is_speech = await loop.run_in_executor(None, _is_speech, served)
        return served.is_speech

    def _no_speech(self, served: ServedModel) -> ApiError:
        others = [each.name for each in self.all if each.is_speech]
        there_is = f"there is {', '.join(others)}" if others else "none is served here"
        return _wrong_kind(
            f"{served.name} does not read audio; that needs a Whisper model: {there_is}"
        )

    @asynccontextmanager
    async def _held(
        self, served: ServedModel, keep_seconds: float | None = None
    ) -> AsyncIterator[Loaded]:
        served.n_users += 1
        served.keep_seconds = keep_seconds
        if served.idle_timer is not None:
            served.idle_timer.cancel()
            served.idle_timer = None
        try:
            yield await self._loaded(served)
        finally:
            served.n_users -= 1
            served.last_used = time.monotonic()
            if self._memory is not None or self._max_loaded is not None:  # otherwise no one waits
                self._room.freed()
            self._begin_idling(served)

    def adopt(self, name: str, model: Loaded) -> None:
        """Take a model that is loaded already; it is closed with the others.

        Raises ArgumentError where it takes more than `memory`: it could never be loaded again.
        """
        served = self.find(name)
        if self._memory is not None and model.memory["total"] > self._memory:
            raise ArgumentError(
                f"memory is {self._memory} bytes, and the model {served.name!r} takes "
                f"{model.memory['total']}: allow more, or leave memory out"
            )
        served.hold(model)
        served.is_speech = isinstance(model, SpeechModel)
        served.n_bytes = served.known_bytes = model.memory["total"]

    async def load(self, name: str | None, keep_seconds: float | None = None) -> ServedModel:
        """Have a model loaded; ApiError where that fails, whose cause is what `load` raised.

        `keep_seconds`: as of `use`.
        """
        await self.seek(name)
        served = self.find(name)
        async with self._held(served, keep_seconds):
            return served

    async def unload(self, name: str | None) -> bool:
        """Close a model that no one uses; return whether it was loaded. ApiError where in use."""
        await self.seek(name)
        served = self.find(name)
        if served.n_users or served.loading is not None:
            raise ApiError(
                409, f"{served.name} is in use by {served.n_users} requests", param="model"
            )
        return await self._unloaded(served)

    async def create(self, model: CreatedModel) -> None:
        """Keep and serve a model, in place of a created one of this name.

        Raises ApiError where a model in files has the name, or requests use the one before.
        """
        store = self._catalogue.created
        if store is None:
            raise ApiError(403, "this server keeps no created models", code="not_allowed")
        await self.listed()
        served = self._catalogue.known(model.name)
        if served is not None:
            is_created = served.creation is not None
            if not is_created or served.name.casefold() != model.name.casefold():
                raise ApiError(
                    409, f"{served.name} was not created by a request: choose another name"
                )
            await self.unload(served.name)
        await asyncio.get_running_loop().run_in_executor(None, store.put, model)
        await self.listed()
        now = self._catalogue.known(model.name)
        if now is None or now.creation != model:
            raise ApiError(
                409, f"{model.name} is in use: its new settings apply once it is unloaded"
            )

    def created(self, name: str) -> CreatedModel | None:
        """Return what a request created; None for a model in files. ApiError as `find`."""
        lost = self._catalogue.without_base.get(name)
        return lost or self.find(name).creation

    def created_from(self, base: str) -> list[str]:
        """Return the names of the created models that need a model."""
        return [
            each.name
            for each in self.all
            if each.creation is not None and each.creation.base == base
        ]

    async def delete_created(self, model: CreatedModel) -> None:
        """Delete a created model; ApiError while requests use it."""
        store = self._catalogue.created
        if model.name in self._catalogue.by_name:
            await self.unload(model.name)
        if store is not None:
            await asyncio.get_running_loop().run_in_executor(None, store.remove, model.name)
        await self.listed()

    async def close(self) -> None:
        """Close all models; texts under way end with an error."""
        for served in self.all:
            if served.loading is not None:
                served.loading.cancel()
            if served.idle_timer is not None:
                served.idle_timer.cancel()
            await self._unloaded(served)
        self._loaders.shutdown(wait=False, cancel_futures=True)

    async def _loaded(self, served: ServedModel) -> Loaded:
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
        except ApiError:
            raise
        except AkunuError as error:
            never_again = {"x-should-retry": "false"}
            raise ApiError(
                500,
                f"the model {served.name!r} cannot be loaded: {error}",
                param="model",
                code="model_not_loaded",
                headers=never_again,
            ) from error

    async def _load(self, served: ServedModel) -> Loaded:
        loop = asyncio.get_running_loop()
        try:
            path = await loop.run_in_executor(
                self._loaders, loading.find_model, served.source, served.options
            )
            draft = served.options.draft
            if draft is not None:
                draft_path = await loop.run_in_executor(
                    self._loaders, loading.find_model, draft, served.options
                )
                served.options = replace(served.options, draft=draft_path)
            size = served.known_bytes or await loop.run_in_executor(
                self._loaders, _bytes_of_all, path, served.options
            )
            served.is_speech = await loop.run_in_executor(None, is_speech_model, path)
            begin = _loader(path, served.options, is_speech=served.is_speech)
            while True:
                await self._room.take(served, size)
                model = await loop.run_in_executor(self._loaders, begin)
                size = served.known_bytes = model.memory["total"]
                if await self._room.try_to_take(served, size):
                    served.hold(model)
                    return model
                # It takes more memory than its file suggested: unload it and wait for room.
                await loop.run_in_executor(self._loaders, model.close)
                served.n_bytes = 0
                self._room.freed()
        finally:
            served.loading = None
            if served.model is None:
                served.n_bytes = 0
            if not served.n_users:  # all who wanted it went away while it was loading
                self._begin_idling(served)
            self._room.freed()

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
            served.n_bytes = 0
            self._room.freed()
        return True

    def _begin_idling(self, served: ServedModel) -> None:
        seconds = served.keep_seconds
        if seconds is None:
            seconds = self._idle_seconds or math.inf
        if seconds == math.inf or not served.can_go:
            return
        loop = asyncio.get_running_loop()

        def unload() -> None:
            served.idle_timer = None
            if not served.n_users:
                self._unload_task = asyncio.ensure_future(self._unloaded(served))

        served.idle_timer = loop.call_later(seconds, unload)


def _look_at(task: asyncio.Task[Loaded]) -> None:
    """Take the error of a task for which no one may wait any more; asyncio would complain."""
    if not task.cancelled():
        task.exception()


def _loader(path: Path, options: LoadOptions, *, is_speech: bool) -> Callable[[], Loaded]:
    """Return a function that loads a model; context and adapters mean nothing for speech."""
    if is_speech:
        return partial(load_whisper_with, path, options)
    return partial(loading.load, path, **asdict(options))


def _is_speech(served: ServedModel) -> bool | None:
    try:
        return is_speech_model(loading.find_model(served.source, served.options, local_only=True))
    except AkunuError:
        return None


def _wrong_kind(message: str) -> ApiError:
    return ApiError(400, message, param="model", code="unsupported_model")


def _file_bytes(path: Path) -> int:
    """Return how large a model's file is, all parts of it: about what its weights take."""
    return sum(Path(part).stat().st_size for part in open_model_files(path).parts)


def _bytes_of_all(path: Path, options: LoadOptions) -> int:
    beside = [Path(each) for each in (options.mmproj, options.draft) if each is not None]
    return sum(map(_file_bytes, [path, *beside]))
