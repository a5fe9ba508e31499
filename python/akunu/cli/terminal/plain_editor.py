"""What a person types at a terminal that cannot move its cursor (TERM=dumb): line by line."""

from __future__ import annotations

import signal
import sys
from types import FrameType, ModuleType

from akunu.cli.conversation.entry import Entry, is_open, parse_entry
from akunu.cli.conversation.history import History
from akunu.cli.terminal import console
from akunu.cli.text_input import as_unicode

_PROMPT = "> "
_MORE = ". "


class PlainEditor:
    """A LineEditor that asks for a line at a time.

    A line that ends in a backslash continues in the next one. Three quotation marks open a text
    that continues until the next three. Prompts go to stdout where that is a terminal, else to
    stderr.
    """

    def __init__(self, history: History) -> None:
        """Start with the history's entries, which Ctrl-P brings back where readline is there."""
        self._history = history
        self._readline: ModuleType | None = None
        self._interrupted_line = ""
        if not console.is_terminal(sys.stdout):
            return  # input() would not edit there
        try:
            import readline
        except ImportError:  # this Python goes without
            return
        self._readline = readline
        readline.set_auto_history(False)  # what is answered to a question is not history
        for entry in history.entries:
            self._remember(entry)

    def read(self) -> Entry | None:
        """Return the next entry, as LineEditor says."""
        lines: list[str] = []
        while True:
            try:
                complete = self._read_lines(lines)
            except KeyboardInterrupt:
                if not lines and not self._interrupted_line:
                    raise
                print(file=sys.stderr, flush=True)
                lines.clear()
                continue
            if not complete:
                return None
            typed = "\n".join(lines)
            if self._history.add(typed):
                self._remember(typed)
            return parse_entry(typed)

    def edit(self, text: str) -> str | None:
        """Return what is typed in place of `text`, as LineEditor says."""
        console.tell(text)
        console.say("akunu: type it again; an empty line leaves it unchanged")
        try:
            lines: list[str] = []
            complete = self._read_lines(lines)
        except KeyboardInterrupt:
            complete = False
        if not complete:
            print(file=sys.stderr, flush=True)
            return None
        return parse_entry(" " + "\n".join(lines)).text or None

    def choose(self, question: str, answers: str) -> str:
        """Ask until one of these letters is typed, as LineEditor says."""
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

    def _read_lines(self, lines: list[str]) -> bool:
        """Append lines to `lines` until they are complete; False where there are no more."""
        prompt = _PROMPT
        while True:
            line = self._read_line(prompt)
            if line is None:
                return False
            lines.append(line)
            if is_open("\n".join(lines)):
                pass
            elif line.endswith("\\"):
                lines[-1] = line[:-1]
            else:
                return True
            prompt = _MORE

    def _read_line(self, prompt: str) -> str | None:
        while True:
            try:
                if console.is_terminal(sys.stdout):
                    return as_unicode(self._input(prompt), "the line")
                # input() would write its prompt to stdout, where only replies belong.
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
