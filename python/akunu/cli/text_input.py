"""Text that comes from options, files and standard input, whatever encoding the locale claims."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import termios
from pathlib import Path
from typing import Final

from akunu.cli.terminal import console

STDIN: Final = "{stdin}"


def as_unicode(text: str, what: str) -> str:
    """Return an argument as text; raises UsageError where it is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return decoded(os.fsencode(text), what)
    return text


def decoded(data: bytes, what: str) -> str:
    """Return UTF-8 bytes as text, without a byte order mark; raises UsageError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise console.UsageError(f"{what} is not UTF-8 text at byte {error.start}") from None


def standard_input() -> str:
    """Return all that standard input has; "" where the process was started without."""
    if sys.stdin is None:
        return ""
    return decoded(sys.stdin.buffer.read(), "standard input")


def with_standard_input(question: str) -> str | None:
    """Return a question with what standard input has; None where it does not ask for that.

    "-" is all that standard input has, {stdin} is where it goes.
    """
    if question.strip() != "-" and STDIN not in question:
        return None
    if console.is_terminal(sys.stdin):
        console.say("akunu: type the text; Ctrl-D in an empty line ends it")
    text = standard_input().rstrip("\r\n")
    return text if question.strip() == "-" else question.replace(STDIN, text)


def has_unread_input() -> bool:
    """Whether someone has given standard input something that was not read; never waits.

    A file that was read in part belongs to someone else: a loop of a shell, for example.
    """
    if sys.stdin is None or console.is_terminal(sys.stdin):
        return False
    try:
        descriptor = sys.stdin.fileno()
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return status.st_size > 0 and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        if not stat.S_ISFIFO(status.st_mode) and not stat.S_ISSOCK(status.st_mode):
            return False
        waiting = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))
    except (OSError, ValueError):  # closed
        return False
    return any(waiting)  # the number of bytes; 0 at the end


def file_text(path: Path) -> str:
    """Return a file's text; raises UsageError where it is not UTF-8, OSError from the system."""
    return decoded(path.read_bytes(), str(path))


def text_of(
    prompt: str | None, path: Path | None, *, command: str, options: str = "--prompt or --file"
) -> str:
    """Return the text that --prompt, --file or standard input gives.

    Raises UsageError where both are passed, or none and no one pipes anything in.
    """
    if prompt is not None and path is not None:
        raise console.UsageError("--prompt and --file both set the text: use one of them")
    if prompt is not None:
        if has_unread_input():
            console.say(
                "akunu: --prompt is set, so standard input is not read; add </dev/null to hide "
                "this note"
            )
        return as_unicode(prompt, "--prompt")
    if path is not None and str(path) != "-":
        if path.is_dir():
            raise console.UsageError(f"{path} is a directory")
        return file_text(path)
    if path is None and console.is_terminal(sys.stdin):
        raise console.UsageError(
            f"there is no text: set it with {options}, or pipe it into akunu {command}"
        )
    return standard_input()
