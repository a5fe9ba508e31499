"""Text that comes from options, files and standard input, whatever encoding the locale claims."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from akunu.cli import console


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
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise console.UsageError(f"{what} is not UTF-8 text at byte {error.start}") from None


def standard_input() -> str:
    """Return all that standard input has; "" where the process was started without."""
    if sys.stdin is None:
        return ""
    return decoded(sys.stdin.buffer.read(), "standard input")


def file_text(path: Path) -> str:
    """Return a file's text; raises UsageError where it is not UTF-8, OSError from the system."""
    return decoded(path.read_bytes(), str(path))


def text_of(
    prompt: str | None, path: Path | None, *, command: str, options: str = "--prompt or --file"
) -> str:
    """Return the text that --prompt, --file or standard input gives.

    Raises UsageError where both are given, or none and nobody pipes anything in.
    """
    if prompt is not None and path is not None:
        raise console.UsageError("--prompt and --file are two ways to give one text")
    if prompt is not None:
        return as_unicode(prompt, "--prompt")
    if path is not None and str(path) != "-":
        if path.is_dir():
            raise console.UsageError(f"{path} is a directory")
        return file_text(path)
    if path is None and console.is_terminal(sys.stdin):
        raise console.UsageError(
            f"there is no text: give one with {options}, or pipe it into akunu {command}"
        )
    return standard_input()
