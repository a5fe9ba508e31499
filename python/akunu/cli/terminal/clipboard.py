"""The clipboard of the person at the terminal."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from typing import Final

from akunu.cli.terminal import console
from akunu.cli.terminal.editors import has_screen
from akunu.errors import AkunuError

_SECONDS: Final = 5
# Terminals take at least this much in one sequence; some drop what is longer.
_MOST_BYTES: Final = 74_994


class ClipboardError(AkunuError):
    """There is no way to the clipboard from here."""


def copy_text(text: str) -> str:
    """Copy `text` and return how, to stand after "copied"; raises ClipboardError.

    A program of the desktop that this process can reach does it, else the terminal (OSC 52).
    """
    for command in _programs():
        try:
            # xclip and wl-copy leave a process that holds the text. With pipes for its
            # output we would wait until that one ends.
            done = subprocess.run(
                command,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return f"with {command[0]}"
    if not has_screen():
        raise ClipboardError("there is no clipboard program: wl-copy, xclip, xsel or pbcopy")
    data = text.encode()
    if len(data) > _MOST_BYTES:
        raise ClipboardError(
            f"the reply has {len(data)} bytes, a terminal takes {_MOST_BYTES}: /save writes a file"
        )
    screen = sys.stdout if console.is_terminal(sys.stdout) else sys.stderr
    screen.write(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    screen.flush()
    return "through the terminal (OSC 52), if the terminal allows it"


def _programs() -> list[list[str]]:
    """Return the commands that reach a clipboard from here, the best first."""
    found = []
    if os.environ.get("WAYLAND_DISPLAY"):
        found.append(["wl-copy"])
    if os.environ.get("DISPLAY"):
        found += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    if sys.platform == "darwin":
        found.append(["pbcopy"])
    return [command for command in found if shutil.which(command[0])]
