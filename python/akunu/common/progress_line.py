"""What the argument `progress` of long calls is: nothing, a line for a person, or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from akunu.cli.terminal.progress import Progress
from akunu.common.checks import refusal

ProgressCallback: TypeAlias = Callable[[int, int], None]


@contextmanager
def progress_callback(
    progress: bool | ProgressCallback, what: str
) -> Iterator[ProgressCallback | None]:
    """Yield what is to be called with how many texts are done, of how many; None: nothing.

    True writes a line to standard error, where that is a terminal, as long as the block lasts.
    `what`: what is done to the texts. Raises ArgumentError for anything else.
    """
    if not isinstance(progress, bool):
        if not callable(progress):
            raise refusal("progress", progress, "True, False or a function", "")
        yield progress
        return
    if not progress:
        yield None
        return
    counts = [0, 0]

    def count(done: int, of: int) -> None:
        counts[:] = done, of

    with Progress(lambda: f"{what} {counts[0]} of {counts[1]} texts"):
        yield count
