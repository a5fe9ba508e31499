"""Where the command line writes, and how it ends: one place for streams and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TextIO

from akunu.errors import AkunuError, ArgumentError

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE

# A model's text must not steer the terminal: control characters but tab and newline become visible.
_CONTROL_CHARACTERS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


class UsageError(ArgumentError):
    """The command line makes no sense."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at this stream (it is None where a process has none)."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


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


def say(text: str) -> None:
    """Write a line about what is going on to stderr."""
    _write_line(text, "dim")


def complain(text: str) -> None:
    """Write an error to stderr, in one line."""
    _write_line(f"akunu: error: {' '.join(text.split())}", "red")


def _write_line(text: str, style: str) -> None:
    if not is_terminal(sys.stderr):
        print(text, file=sys.stderr, flush=True)
        return
    from rich.console import Console

    # soft_wrap: the terminal breaks lines, so that a copied path stays whole.
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    console.print(for_terminal(text), style=style)


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
    except OSError as error:
        _drop_output()
        what = error.strerror or str(error) or type(error).__name__
        complain(f"{error.filename}: {what}" if error.filename else what)
        return EXIT_ERROR
    return code


def _drop_output() -> None:
    """Drop what stdout does not take: Python would try again, and complain, when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
