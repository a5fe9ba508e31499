"""Downloads that requests began: one for each name, for all clients that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

from akunu import loading
from akunu.hub.names import RepoName
from akunu.hub.watch import Watch
from akunu.options.text_options import LoadOptions

_PAUSE_SECONDS: Final = 0.1  # between two reports to a client
_MOST_AT_A_TIME: Final = 4


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a download is."""

    file: str = ""
    """What arrives now; "" before the first file."""
    total: int | None = None
    """Bytes of it; None: not known."""
    n_here: int = 0


class _Pull(Watch):
    """One download. Its thread reports to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.progress = PullProgress()
        self.changed = asyncio.Event()
        self.task: asyncio.Future[object]
        self._loop = loop

    def begin(self, what: str, total: int | None, done: int) -> None:
        """Take that a file begins to arrive."""
        self._report(lambda _: PullProgress(what, total, done))

    def advance(self, n_bytes: int) -> None:
        """Take that more of it is here."""
        self._report(lambda now: replace(now, n_here=now.n_here + n_bytes))

    def _report(self, change: Callable[[PullProgress], PullProgress]) -> None:
        def take() -> None:
            self.progress = change(self.progress)
            self.changed.set()

        self._loop.call_soon_threadsafe(take)


class Pulls:
    """The downloads of a server; used from its event loop alone."""

    def __init__(self) -> None:
        """Nothing is under way."""
        self._pulls: dict[str, _Pull] = {}
        self._threads = ThreadPoolExecutor(_MOST_AT_A_TIME, "akunu pull")

    async def pull(self, name: RepoName) -> AsyncIterator[PullProgress]:
        """Fetch a model and yield how far it is; another download of the same name is joined.

        A client that goes away does not end it. Raises what `akunu.pull` raises.
        """
        key = str(name).lower()
        pull = self._pulls.get(key)
        if pull is None:
            loop = asyncio.get_running_loop()
            pull = self._pulls[key] = _Pull(loop)
            pull.task = loop.run_in_executor(self._threads, _fetch, name, pull)
            pull.task.add_done_callback(lambda _: self._ended(key))
        told = None
        while not pull.task.done():
            if pull.progress != told:
                told = pull.progress
                yield told
            pull.changed.clear()
            changed = asyncio.ensure_future(pull.changed.wait())
            either: list[asyncio.Future[Any]] = [changed, pull.task]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            await asyncio.wait([pull.task], timeout=_PAUSE_SECONDS)
        pull.task.result()
        if pull.progress != told:
            yield pull.progress

    def is_under_way(self, name: RepoName) -> bool:
        """Whether a model is being downloaded."""
        return str(name).lower() in self._pulls

    def close(self) -> None:
        """Begin no more downloads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ended(self, key: str) -> None:
        pull = self._pulls.pop(key)
        if not pull.task.cancelled():
            pull.task.exception()  # no one may wait for it; asyncio would complain


def _fetch(name: RepoName, watch: Watch) -> object:
    return loading.fetch(name, LoadOptions(), watch, must_fit=False)
