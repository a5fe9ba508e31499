"""The memory that loaded models may take together; the least recently used make room for others."""

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
        models: Sequence[ServedModel],
        unload: Callable[[ServedModel], Awaitable[object]],
        *,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`limit`: in bytes; None: there is none."""
        self._limit = limit
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
        while self._limit is not None:
            others = [each for each in self._models if each is not served]
            over = sum(each.n_bytes for each in others) + n_bytes - self._limit
            if over <= 0:
                break
            idle = [each for each in others if each.can_go]
            if sum(each.n_bytes for each in idle) < over:
                return False
            await self._unload(min(idle, key=lambda each: each.last_used))
        served.n_bytes = n_bytes
        return True

    def _check_possible(self, served: ServedModel, n_bytes: int) -> None:
        assert self._limit is not None
        pinned = sum(each.n_bytes for each in self._models if each.is_pinned and each is not served)
        if n_bytes + pinned > self._limit:
            beside = f" in addition to {pinned} bytes of pinned models" if pinned else ""
            raise AkunuError(f"it takes {n_bytes} bytes{beside}, and memory is {self._limit} bytes")
