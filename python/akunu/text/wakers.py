"""How coroutines wait for the engine: one file descriptor per event loop and model.

The engine's thread never waits for Python. It notes which task has news and writes a byte; the loop
watches that file descriptor (`add_reader`) and wakes the waiting tasks. No one polls, and a
loop with nothing under way has no file descriptor of ours.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from typing import TypeVar

from akunu import _core
from akunu.errors import MisuseError
from akunu.grammar.separate_process import cancel_compiling

Result = TypeVar("Result")


class Wakers:
    """The event loops in which something of a model is under way."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_loop: dict[asyncio.AbstractEventLoop, _LoopWaker] = {}

    def join(self, task: _core.Generation | _core.PendingLogits) -> Place:
        """Have the running event loop hear of the task's news."""
        loop = running_loop()
        waker = self._by_loop.get(loop)
        if waker is None:
            waker = self._by_loop[loop] = _LoopWaker(loop, self._by_loop)
        return Place(waker, task)


class Place:
    """One task among those of which a loop hears; leave it when the task is over."""

    def __init__(self, waker: _LoopWaker, task: _core.Generation | _core.PendingLogits) -> None:
        """Use `Wakers.join`."""
        self._waker = waker
        self.loop = waker.loop
        """The event loop in which one may wait here."""
        self._task = task
        self._id = next(waker.ids)
        self._news: asyncio.Future[None] | None = None
        self._has_heard = False
        waker.places[self._id] = self
        task.wake(waker.native, self._id)

    async def news(self) -> bool:
        """Wait until there may be news since the last call; return whether that took a wait."""
        if self._has_heard or self._waker.is_forked:  # there, taking the news raises an error
            self._has_heard = False
            return False
        self._news = self._waker.loop.create_future()
        try:
            await self._news
        finally:
            self._news = None
        self._has_heard = False
        return True

    def wake(self) -> None:
        """Wake the task that waits here; in the loop's own thread."""
        self._has_heard = True
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def interrupt(self) -> None:
        """Wake the task that waits here; from any thread."""
        if asyncio._get_running_loop() is self._waker.loop:
            self.wake()
        else:
            with suppress(RuntimeError):  # the loop is closed: no one waits
                self._waker.loop.call_soon_threadsafe(self.wake)

    def leave(self) -> None:
        """Hear no more of it; from any thread."""
        if asyncio._get_running_loop() is self._waker.loop:
            self._leave()
        else:
            self.leave_later()

    def leave_later(self) -> None:
        """Hear no more of it, when the loop comes to it: for `__del__`, which runs anywhere."""
        try:
            self._waker.loop.call_soon_threadsafe(self._leave)
        except RuntimeError:  # the loop is closed, and so watches nothing any more
            self._waker.forget_loop()

    def _leave(self) -> None:
        if self._waker.places.pop(self._id, None) is not None and not self._waker.is_forked:
            self._task.wake(None)
        self._waker.close_if_idle()


class _LoopWaker:
    """Wakes those of one loop; everything here happens in the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        by_loop: dict[asyncio.AbstractEventLoop, _LoopWaker],
    ) -> None:
        self.loop = loop
        self.native = _core.Waker()
        self.places: dict[int, Place] = {}
        self.ids = count()
        self._by_loop = by_loop
        self._made_in = os.getpid()
        self._thread: _WaitingThread | None = None
        try:
            loop.add_reader(self.native.fileno(), self._tell)
        except NotImplementedError:
            self._thread = _WaitingThread(self.native, loop, self._tell)

    @property
    def is_forked(self) -> bool:
        """Whether this is another process, whose copy of the loop watches with what is ours."""
        return os.getpid() != self._made_in

    def close_if_idle(self) -> None:
        """Watch no more where nothing is under way."""
        if self.places or self._by_loop.get(self.loop) is not self:
            return
        del self._by_loop[self.loop]
        if self._thread is not None:
            self._thread.stop()
        elif not self.is_forked:
            self.loop.remove_reader(self.native.fileno())

    def forget_loop(self) -> None:
        """Let go of a loop that was closed."""
        if self._by_loop.get(self.loop) is self:
            del self._by_loop[self.loop]
        if self._thread is not None:
            self._thread.stop()

    def _tell(self, ids: Sequence[int] | None = None) -> None:
        """Wake those of these tasks; None: of which there is news."""
        for each in self.native.take() if ids is None else ids:
            if (place := self.places.get(each)) is not None:
                place.wake()


class _WaitingThread(threading.Thread):
    """Waits in the place of a loop that cannot watch file descriptors."""

    def __init__(
        self,
        native: _core.Waker,
        loop: asyncio.AbstractEventLoop,
        tell: Callable[[list[int]], None],
    ) -> None:
        super().__init__(name="akunu waker", daemon=True)
        self._native = native
        self._loop = loop
        self._tell = tell
        self._stopped = False
        self.start()

    def run(self) -> None:
        with suppress(RuntimeError):  # the loop was closed
            while not self._stopped:
                self._native.wait()
                if ids := self._native.take():
                    self._loop.call_soon_threadsafe(self._tell, ids)

    def stop(self) -> None:
        self._stopped = True
        self._native.interrupt()


async def result_of(function: Callable[[], Result]) -> Result:
    """Call a function that takes long in a thread of the loop's own executor.

    Cancelling it ends the grammars that it compiles in other processes.
    """
    loop = running_loop()
    try:
        return await loop.run_in_executor(None, copy_context().run, function)
    except asyncio.CancelledError:  # which the thread does not hear of
        cancel_compiling()
        raise


async def done(wakers: Wakers, pending: _core.PendingLogits) -> None:
    """Wait until a pending result can be taken; a caller that stops waiting cancels it."""
    place = wakers.join(pending)
    try:
        while not pending.is_done():
            await place.news()
    finally:
        pending.cancel()
        place.leave()


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop; MisuseError where asyncio has none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise MisuseError(
            "this needs a running asyncio event loop, such as in asyncio.run(); without one, use "
            "generate, chat or logits, with trio in a thread"
        ) from None
