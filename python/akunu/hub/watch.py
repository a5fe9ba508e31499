"""The progress of a download."""

from __future__ import annotations


class Watch:
    """Receives the progress; this one ignores it, the command line's shows it."""

    def say(self, text: str) -> None:
        """Take a sentence about a decision or a finding."""

    def begin(self, what: str, total: int | None, done: int) -> None:
        """Take that a file of `total` bytes begins to arrive; `done` are here from before."""

    def advance(self, n_bytes: int) -> None:
        """Take that this many more bytes are here; fewer than 0: this many have to come again."""

    def end(self) -> None:
        """Take that the file is here, or that the download ended in an error."""


SILENT = Watch()
