"""What a person types: lines with editing and history, and texts over several lines."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType, ModuleType

from akunu.cli import console
from akunu.cli.history import History
from akunu.cli.text_input import as_unicode

_PROMPT = "> "
_MORE = ". "
_QUOTES = '"""'


@dataclass(frozen=True, slots=True)
class Entry:
    """What was typed until it was complete."""

    text: str
    is_block: bool
    """Typed over several lines or between quotes, so that no command is meant."""


class LineEditor:
    """Reads entries from the terminal that is standard input.

    A line that ends in a backslash goes on in the next one. Three quotation marks open a text that
    goes on until the next three. Prompts go to stdout where that is a terminal, else to stderr.
    """

    def __init__(self, history: History, commands: Sequence[str]) -> None:
        """Start with the history's lines; the Tab key completes `commands`."""
        self._history = history
        self._commands = list(commands)
        self._readline: ModuleType | None = None
        self._interrupted_line = ""
        if not console.is_terminal(sys.stdout):
            return  # input() would not edit there
        try:
            import readline
        except ImportError:  # this Python goes without
            return
        self._readline = readline
        readline.set_auto_history(False)  # what is answered to a question is no history
        for entry in history.entries:
            self._remember(entry)
        readline.set_completer(self._complete)
        readline.set_completer_delims(" ")
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def read(self) -> Entry | None:
        """Return the next entry, None when there is no more (Ctrl-D).

        Ctrl-C takes back what was typed of this entry; with nothing typed it raises
        KeyboardInterrupt.
        """
        lines: list[str] = []
        while True:
            try:
                entry = self._read_entry(lines)
            except KeyboardInterrupt:
                if not lines and not self._interrupted_line:
                    raise
                print(file=sys.stderr, flush=True)
                lines.clear()
                continue
            if entry is not None and self._history.add(entry.text):
                self._remember(entry.text)
            return entry

    def choose(self, question: str, answers: str) -> str:
        """Ask until one of these letters is typed and return it; "" for Ctrl-C and Ctrl-D."""
        console.tell(question)  # a prompt may be too long for the line
        while True:
            try:
                line = self._read_line(f"[{'/'.join(answers)}] ")
            except KeyboardInterrupt:
                line = None
            if line is None:
                print(file=sys.stderr, flush=True)
                return ""
            answer = line.strip().lower()[:1]
            if answer and answer in answers:
                return answer

    def _read_entry(self, lines: list[str]) -> Entry | None:
        line = self._read_line(_PROMPT)
        if line is None:
            return None
        opened = line.lstrip()
        if opened.startswith(_QUOTES):
            lines.append(opened[len(_QUOTES) :])
            while not lines[-1].rstrip().endswith(_QUOTES):
                line = self._read_line(_MORE)
                if line is None:
                    return None
                lines.append(line)
            lines[-1] = lines[-1].rstrip()[: -len(_QUOTES)]
            return Entry("\n".join(lines).strip("\n"), is_block=True)
        lines.append(line)
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            line = self._read_line(_MORE)
            if line is None:
                return None
            lines.append(line)
        return Entry("\n".join(lines), is_block=len(lines) > 1)

    def _read_line(self, prompt: str) -> str | None:
        while True:
            try:
                if console.is_terminal(sys.stdout):
                    return as_unicode(self._input(prompt), "the line")
                # stdout is for replies only, but input() would write there.
                print(prompt, end="", file=sys.stderr, flush=True)
                line = sys.stdin.readline()
                return as_unicode(line.rstrip("\n"), "the line") if line else None
            except EOFError:
                return None
            except (UnicodeDecodeError, console.UsageError):
                console.say("akunu: this line is not UTF-8 text; type it again")

    def _input(self, prompt: str) -> str:
        """Return the next line; an interrupt leaves in `_interrupted_line` what was typed of it."""

        def interrupt(number: int, frame: FrameType | None) -> None:
            self._interrupted_line = self._line_so_far()  # it is gone when input() returns
            raise KeyboardInterrupt

        self._interrupted_line = ""
        before = signal.getsignal(signal.SIGINT)
        if not callable(before):  # ignored, as in the background
            return input(prompt)
        signal.signal(signal.SIGINT, interrupt)
        try:
            return input(prompt)
        finally:
            signal.signal(signal.SIGINT, before)

    def _line_so_far(self) -> str:
        return "" if self._readline is None else str(self._readline.get_line_buffer())

    def _remember(self, entry: str) -> None:
        if self._readline is None:
            return
        try:
            self._readline.add_history(entry)
        except ValueError:  # the locale has no such characters, or there is a null character
            return

    def _complete(self, start: str, index: int) -> str | None:
        line = self._line_so_far()
        found = [c for c in self._commands if c.startswith(start)] if line.startswith("/") else []
        return found[index] if index < len(found) and " " not in line else None
