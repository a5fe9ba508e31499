"""How many models may be loaded together; the least recently used make room for others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from akunu.errors import AkunuError
from akunu.server.http.errors import ApiError
from akunu.server.served_model import ServedModel

WAIT_SECONDS: Final = 60.0
"""How long a model waits for others that are in use."""


class Room:
    """Counts the bytes of models, those that are being loaded too; used from one event loop."""

    def __init__(
        self,
        limit: int | None,
        models: Callable[[], Sequence[ServedModel]],
        unload: Callable[[ServedModel], Awaitable[object]],
        *,
        most: int | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`limit`: bytes of all loaded models; `most`: their number. None: there is no limit."""
        self._limit = limit
        self._most = most
        self._models = models
        self._unload = unload
        self._wait_seconds = wait_seconds
        self._freed = asyncio.Event()

    def freed(self) -> None:
        """Say that a model is not in use any more, or was unloaded."""
        self._freed.set()

    async def take(self, served: ServedModel, n_bytes: int) -> None:
        """Have room for a model: others are unloaded, or it waits until they are not in use.

        Raises AkunuError where it never fits, and ApiError where others were in use for too long.
        """
        ends = time.monotonic() + self._wait_seconds
        while not await self.try_to_take(served, n_bytes):
            self._check_possible(served, n_bytes)
            self._freed.clear()
            try:
                await asyncio.wait_for(self._freed.wait(), ends - time.monotonic())
            except asyncio.TimeoutError:
                raise ApiError(
                    503,
                    f"{served.name} waits for memory: other models are in use",
                    param="model",
                    code="model_loading",
                    headers={"retry-after": "5"},
                ) from None

    async def try_to_take(self, served: ServedModel, n_bytes: int) -> bool:
        """Return whether there is room now; idle models are unloaded where that makes enough."""
        while True:
            others = [each for each in self._models() if each is not served and each.n_bytes]
            too_many = self._too_many(len(others))
            over = self._over(others, n_bytes)
            if over <= 0 and too_many <= 0:
                served.n_bytes = n_bytes
                return True
            idle = [each for each in others if each.can_go]
            if sum(each.n_bytes for each in idle) < over or len(idle) < too_many:
                return False
            await self._unload(min(idle, key=lambda each: each.last_used))

    def _over(self, others: Sequence[ServedModel], n_bytes: int) -> int:
        """Return the bytes that these models take too many next to one of `n_bytes`."""
        if self._limit is None:
            return 0
        return sum(each.n_bytes for each in others) + n_bytes - self._limit

    def _too_many(self, n_others: int) -> int:
        """Return how many of this number of models must go for one more."""
        return 0 if self._most is None else n_others + 1 - self._most

    def _check_possible(self, served: ServedModel, n_bytes: int) -> None:
        loaded = [each for each in self._models() if each.n_bytes and each is not served]
        stay = [each for each in loaded if each.is_pinned]
        if self._over(stay, n_bytes) > 0:
            pinned = sum(each.n_bytes for each in stay)
            beside = f" in addition to {pinned} bytes of pinned models" if pinned else ""
            raise AkunuError(f"it takes {n_bytes} bytes{beside}, and memory is {self._limit} bytes")
        if self._too_many(len(stay)) > 0:
            raise AkunuError(
                f"max_loaded is {self._most}, and as many pinned models are loaded: "
                f"{', '.join(each.name for each in stay)}"
            )
