"""Who is told how a request for text goes: the metrics and the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from akunu.server.http.errors import ApiError
    from akunu.text.async_text_stream import AsyncTextStream
    from akunu.text.completion import Completion


class Observer:
    """Told of one request; this one keeps nothing of it."""

    def began(self, model: str, streams: Sequence[AsyncTextStream]) -> None:
        """Its texts have a place, or wait for one."""

    def part(self, stream: AsyncTextStream) -> None:
        """A part of a text has come."""

    def ended(self, replies: Sequence[Completion]) -> None:
        """All texts are over, or were cancelled."""

    def failed(self, told: ApiError, error: BaseException) -> None:
        """A stream that had begun ended with an error."""


SILENT = Observer()
