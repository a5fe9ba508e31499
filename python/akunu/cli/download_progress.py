"""A download as a person sees it: a bar at a terminal, two lines anywhere else."""

from __future__ import annotations

import sys
import time

from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import bytes_text
from akunu.hub.watch import Watch

_BAR = 20  # characters
_STEADY_SECONDS = 3.0  # of a download, before the remaining time is estimated


class DownloadWatch(Watch):
    """Shows the progress of a download on stderr."""

    def __init__(self) -> None:
        """Nothing is under way yet."""
        self._what = ""
        self._total: int | None = None
        self._done = 0
        self._came = 0  # of it in this attempt
        self._since = 0.0
        self._progress: Progress | None = None

    def say(self, text: str) -> None:
        """Write a sentence."""
        console.say(f"akunu: {text}")

    def begin(self, what: str, total: int | None, done: int) -> None:
        """Start the bar; without a terminal, say what begins."""
        self._what, self._total, self._done, self._came = what, total, done, 0
        self._since = time.monotonic()
        if not console.is_terminal(sys.stderr):
            size = "" if total is None else f", {bytes_text(total)}"
            here = f", {bytes_text(done)} of them here" if done else ""
            console.say(f"akunu: fetching {what}{size}{here}")
        self._progress = Progress(self.line, shows_seconds=False)
        self._progress.__enter__()

    def advance(self, n_bytes: int) -> None:
        """Count; another thread draws."""
        self._done += n_bytes
        self._came += n_bytes

    def end(self) -> None:
        """Take the bar away, and say what is here if that is all of it."""
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.stop()
            if self._total is None or self._done >= self._total:
                seconds = max(1e-3, time.monotonic() - self._since)
                speed = f", {bytes_text(int(self._came / seconds))}/s" if self._came else ""
                console.say(f"akunu: {self._what}: {bytes_text(self._done)}{speed}")
            else:
                console.say(
                    f"akunu: {self._what}: {bytes_text(self._done)} of {bytes_text(self._total)} "
                    "are here and stay; the next attempt continues from there"
                )

    def line(self) -> str:
        """Return the bar's line."""
        done, total = self._done, self._total
        seconds = time.monotonic() - self._since
        speed = max(0.0, self._came / seconds) if seconds > 0 else 0.0
        if not total:
            return f"{self._what} {bytes_text(done)}, {bytes_text(int(speed))}/s"
        share = min(1.0, done / total)
        left = ""
        if seconds > _STEADY_SECONDS and speed > 0:
            left = f", {duration_text((total - done) / speed)} left"
        facts = f"{share:.0%} of {bytes_text(total)}, {bytes_text(int(speed))}/s{left}"
        bar = f"[{'#' * int(share * _BAR):<{_BAR}}]"
        return fitted(
            self._what, bar, facts, console.terminal_size(sys.stderr)[0] - len("akunu: ") - 1
        )


def fitted(name: str, bar: str, facts: str, room: int) -> str:
    """Return a line that fits: without the bar, or with less of the name, where there is no room.

    >>> fitted("model-Q8_0.gguf", "[###   ]", "50%", 30)
    'model-Q8_0.gguf [###   ] 50%'
    >>> fitted("model-Q8_0.gguf", "[###   ]", "50%", 20)
    'model-Q8_0.gguf 50%'
    >>> fitted("model-Q8_0.gguf", "[###   ]", "50%", 16)
    '...Q8_0.gguf 50%'
    """
    if len(name) + len(bar) + len(facts) + 2 <= room:
        return f"{name} {bar} {facts}"
    most = max(1, room - len(facts) - 1)
    if len(name) > most:
        name = f"...{name[-max(1, most - 3) :]}"
    return f"{name} {facts}"


def duration_text(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> duration_text(48.2), duration_text(200), duration_text(7300)
    ('48 s', '3 min 20 s', '2 h 1 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
