"""Whether the process was stopped (Ctrl-Z) and continued meanwhile: clocks count that time."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from akunu.text.completion import Completion


class SuspensionWatch:
    """Notices, within `with`, that the process was stopped and continued.

    >>> with SuspensionWatch() as watch:
    ...     signal.raise_signal(signal.SIGCONT)  # what `fg` sends
    >>> watch.was_suspended
    True
    """

    def __init__(self) -> None:
        """Nothing happens before `with`."""
        self.was_suspended = False
        self._before: Any = None

    def __enter__(self) -> SuspensionWatch:
        """Begin to watch; a thread that gets no signals notices nothing."""
        try:
            self._before = signal.signal(signal.SIGCONT, self._went_on)
        except ValueError:  # another thread than the main one
            self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        if self._before is not None:
            signal.signal(signal.SIGCONT, self._before)

    def _went_on(self, number: int, frame: FrameType | None) -> None:
        self.was_suspended = True


def without_times(completion: Completion) -> Completion:
    """Return a completion as if nothing had been measured.

    >>> without_times(Completion("Hi", token_ids=[1, 2], completion_seconds=9.0)).completion_seconds
    0.0
    """
    return Completion(
        completion.text,
        token_ids=completion.token_ids,
        finish_reason=completion.finish_reason,
        stop=completion.stop,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
        cached_tokens=completion.cached_tokens,
        prefix_end=completion.prefix_end,
        drafted_tokens=completion.drafted_tokens,
        accepted_tokens=completion.accepted_tokens,
    )
