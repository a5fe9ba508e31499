"""Ctrl-C, from the first line of a command to its last.

Python raises KeyboardInterrupt wherever the main thread happens to be. In the middle of an import
that is nowhere to be caught: an extension module makes an ImportError of it, a callback of the
import machinery prints and forgets it. In a text that is evaluated (Typer evaluates annotations)
CPython notes it, and ends the process by the signal later. So an interrupt that meets one of these
waits until that is done; a second one ends the process there and then.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

EXIT_INTERRUPTED = 130  # 128 + SIGINT

_LOOK_AGAIN_SECONDS = 0.005

before_exit: Callable[[], None] | None = None
"""What to do before a second Ctrl-C ends the process: put the terminal back, for example."""


class _Interrupts:
    """What SIGINT does while a command runs."""

    def __init__(self) -> None:
        self.is_over = False
        self._waits = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """SIGINT: raise KeyboardInterrupt, now or as soon as nothing is imported or evaluated."""
        if self.is_over or self._waits:
            if before_exit is not None:
                before_exit()
            os._exit(EXIT_INTERRUPTED)
        if not _is_importing(frame):
            raise KeyboardInterrupt
        self._waits = True
        before = signal.getsignal(signal.SIGALRM)

        def look_again(number: int, frame: FrameType | None) -> None:
            if _is_importing(frame):
                signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN_SECONDS)
                return
            signal.signal(signal.SIGALRM, before)
            self._waits = False
            self.handle(number, frame)

        signal.signal(signal.SIGALRM, look_again)
        signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN_SECONDS)


def guarded(run: Callable[[], int], *, is_process: bool) -> int:
    """Return what `run` returns, or 130 where Ctrl-C ended it.

    `is_process`: the process ends with this, so that a late Ctrl-C need not be reported. Else the
    handler that was there before is put back. A SIGINT that is ignored, as of a command that a
    script has put into the background, and one in a thread that gets no signals, stay as they are.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return run()
    interrupts = _Interrupts()
    try:
        signal.signal(signal.SIGINT, interrupts.handle)
    except ValueError:  # another thread than the main one
        return run()
    try:
        return run()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        if is_process:
            interrupts.is_over = True
        else:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether an import or `eval` within `guarded` is among the callers of this frame."""
    while frame is not None and frame.f_code is not guarded.__code__:
        code = frame.f_code
        is_evaluated = code.co_filename == "<string>" and code.co_name == "<module>"
        if is_evaluated or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
