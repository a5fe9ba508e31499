"""The work of a call whose texts give rows of numbers each: some are under way at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from akunu.errors import QueueFullError
from akunu.text.batches import MOST_BEGUN

if TYPE_CHECKING:
    from akunu import _core

Begun = TypeVar("Begun")


class RowJob(Generic[Begun]):
    """Texts in order. A subclass says what they are, how one begins and what takes its result."""

    def __init__(self, *, batch_rows: int | None = None) -> None:
        """`batch_rows`: most tokens of all texts under way; None: no limit."""
        self._batch_rows = batch_rows
        self._under_way: deque[tuple[_core.PendingLogits, int]] = deque()
        self._n_rows = 0
        self.n_tokens = 0
        """Tokens of all texts that were begun."""

    def prepared(self) -> Iterator[Begun]:
        """Yield each text as `begin` takes it; an error names it."""
        raise NotImplementedError

    def n_rows_of(self, text: Begun) -> int:
        """Return how many tokens a text has."""
        raise NotImplementedError

    def begin(self, text: Begun) -> _core.PendingLogits:
        """Have the engine begin it."""
        raise NotImplementedError

    def take(self, rows: NDArray[np.float32]) -> None:
        """Keep the result of the next text."""
        raise NotImplementedError

    def try_begin(self, text: Begun) -> bool:
        """Begin a text, unless those under way are as many as may be, or no more may wait."""
        n_rows, most_rows = self.n_rows_of(text), self._batch_rows
        if self._under_way and (
            len(self._under_way) >= MOST_BEGUN
            or (most_rows is not None and self._n_rows + n_rows > most_rows)
        ):
            return False
        try:
            pending = self.begin(text)
        except QueueFullError:
            if not self._under_way:
                raise
            return False
        self._under_way.append((pending, n_rows))
        self._n_rows += n_rows
        self.n_tokens += n_rows
        return True

    def first(self) -> _core.PendingLogits | None:
        """Return the first that is under way; it counts as such no more. None: there is none."""
        if not self._under_way:
            return None
        pending, n_rows = self._under_way.popleft()
        self._n_rows -= n_rows
        return pending

    def cancel(self) -> None:
        """Cancel the texts under way."""
        for pending, _ in self._under_way:
            pending.cancel()

    def work(self) -> None:
        """Do all of it."""
        try:
            for text in self.prepared():
                while not self.try_begin(text):
                    self._finish_first()
            while self._under_way:
                self._finish_first()
        finally:
            self.cancel()

    def _finish_first(self) -> None:
        pending = self.first()
        assert pending is not None
        self.take(pending.result())

    async def work_async(
        self,
        wait: Callable[[_core.PendingLogits], Awaitable[None]],
        texts: Iterable[Begun] | None = None,
    ) -> None:
        """Do all of it; `wait` waits until a result can be taken.

        `texts`: what `prepared` has given, for who called it in another thread.
        """

        async def finish(pending: _core.PendingLogits) -> None:
            await wait(pending)
            self.take(pending.take())

        try:
            for text in self.prepared() if texts is None else texts:
                while not self.try_begin(text):
                    if pending := self.first():
                        await finish(pending)
            while pending := self.first():
                await finish(pending)
        finally:
            self.cancel()
