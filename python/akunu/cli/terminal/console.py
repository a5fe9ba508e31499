"""Where the command line writes, and how it ends: one place for streams and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from akunu.cli.terminal.interrupts import EXIT_INTERRUPTED
from akunu.cli.terminal.rows import wrap_lines
from akunu.errors import AkunuError, ArgumentError

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE

DIM = "2"
RED = "31"

# A model's text must not steer the terminal: control characters but tab and newline become visible.
# So do the characters that turn the direction of writing around what follows them.
_CONTROL_CHARACTERS = {
    **{
        code: f"\\x{code:02x}"
        for code in (*range(0x20), *range(0x7F, 0xA0))
        if chr(code) not in "\t\n"
    },
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
}


class UsageError(ArgumentError):
    """The command line makes no sense."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at this stream (it is None where a process has none)."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def shows_styles(stream: TextIO | None) -> bool:
    """Whether this stream is a terminal that knows colours, and its user wants them."""
    return (
        is_terminal(stream)
        and os.environ.get("TERM", "dumb") != "dumb"
        and not os.environ.get("NO_COLOR")
    )


def styled(text: str, style: str, stream: TextIO | None) -> str:
    """Return `text` in a style (DIM, RED), or as it is where the stream shows none."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and shows_styles(stream) else text


def terminal_size(stream: TextIO | None) -> tuple[int, int]:
    """Return how many columns and rows a terminal has; 80 and 24 where no one knows."""
    try:
        size = os.get_terminal_size(stream.fileno()) if stream is not None else (0, 0)
    except (OSError, ValueError):
        size = (0, 0)
    return size[0] or 80, size[1] or 24


def can_show(text: str, stream: TextIO | None) -> bool:
    """Whether a stream's encoding has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def prepare_streams() -> None:
    """Let no character fail to print: what the terminal cannot show is escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the process was started without; it needs one to its end
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def for_terminal(text: str) -> str:
    """Return `text` with control characters made visible."""
    return text.translate(_CONTROL_CHARACTERS)


def plus_minus() -> str:
    """Return the sign between a value and its error, as stdout can show it."""
    sign = "\N{PLUS-MINUS SIGN}"
    return sign if can_show(sign, sys.stdout) else "+-"


def write(text: str) -> None:
    """Write a part of the result to stdout at once; at a terminal it cannot steer it."""
    put(for_terminal(text) if is_terminal(sys.stdout) else text)


def put(text: str) -> None:
    """Write to stdout at once, escape codes as they are."""
    sys.stdout.write(text)
    sys.stdout.flush()


def say(text: str, *, indent: int = 0) -> None:
    """Write a line about the progress to stderr.

    A terminal shows it broken at words; what does not fit continues after `indent` spaces.
    """
    _write_line(text, DIM, indent)


def tell(text: str, *, indent: int = 0) -> None:
    """Write a line that was requested to stderr, as `say` does."""
    _write_line(text, None, indent)


def complain(text: str) -> None:
    """Write an error to stderr, in one line."""
    with suppress(OSError, ValueError):  # no one is left to tell
        _write_line(f"akunu: error: {' '.join(text.split())}", RED)


def _write_line(text: str, style: str | None, indent: int = 0) -> None:
    if is_terminal(sys.stderr):
        width = terminal_size(sys.stderr)[0]
        text = wrap_lines(for_terminal(text), width, indent=" " * indent)
        text = text if style is None else styled(text, style, sys.stderr)
    print(text, file=sys.stderr, flush=True)


def reported(run: Callable[[], int]) -> int:
    """Return what `run` returns, or say what went wrong and return its exit code."""
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return EXIT_BROKEN_PIPE
    except UsageError as error:
        complain(str(error))
        return EXIT_USAGE
    except AkunuError as error:
        complain(str(error))
        return EXIT_ERROR
    except MemoryError:
        complain("there is not enough memory")
        return EXIT_ERROR
    except OSError as error:
        _drop_output()
        what = error.strerror or str(error) or type(error).__name__
        complain(f"{error.filename}: {what}" if error.filename else what)
        return EXIT_ERROR
    return code


def _drop_output() -> None:
    """Drop what a stream does not take: Python would try again, and complain, when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
