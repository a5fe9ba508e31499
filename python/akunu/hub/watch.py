"""What a download tells of itself while it goes on."""

from __future__ import annotations


class Watch:
    """Told what is going on; this one keeps it to itself, the command line's shows it."""

    def say(self, text: str) -> None:
        """Take a sentence about what was decided or found."""

    def begin(self, what: str, total: int | None, done: int) -> None:
        """Take that a file of `total` bytes begins to arrive; `done` are here from before."""

    def advance(self, n_bytes: int) -> None:
        """Take that so many more bytes are here; fewer than 0: so many have to come again."""

    def end(self) -> None:
        """Take that the file is here, or that the download ended in an error."""


SILENT = Watch()
