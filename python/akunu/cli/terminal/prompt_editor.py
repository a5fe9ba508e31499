"""What a person types at a terminal with a screen: several lines, pastes, history, completion.

prompt_toolkit does the editing. Input while no one reads (a model loads, a reply is
written) waits in the terminal, as quiet_terminal.py keeps it, and is in the next entry.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_completions, has_focus
from prompt_toolkit.history import DummyHistory
from prompt_toolkit.history import History as PromptHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress, KeyPressEvent
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from akunu.cli.conversation.entry import Entry, is_open, parse_entry
from akunu.cli.conversation.history import History
from akunu.cli.terminal import console
from akunu.cli.terminal.line_editor import Complete
from akunu.cli.terminal.quiet_terminal import suspend
from akunu.cli.text_input import as_unicode

_PROMPT = "> "
_MORE = ". "


class _Interrupted(Exception):  # noqa: N818 - it is not an error
    """Ctrl-C, with nothing typed."""


class PromptEditor:
    """A LineEditor whose entries may have several lines.

    Enter ends an entry, unless its last line ends in a backslash or three quotation marks are open;
    Ctrl-J and Alt-Enter begin a new line; what is pasted is part of the entry, newlines and all.
    """

    def __init__(
        self, history: History, complete: Complete, typed: Callable[[], bytes] = bytes
    ) -> None:
        """Start with the history's entries; the Tab key asks `complete`.

        `typed` returns keys that were read from the terminal meanwhile; they come first.
        """
        self._history = history
        self._input = create_input(sys.stdin)
        self._typed = typed
        screen = sys.stdout if console.is_terminal(sys.stdout) else sys.stderr
        # Asking the terminal where its cursor is would mix its answer with what is typed ahead.
        output = Vt100_Output.from_pty(screen)
        output.enable_cpr = False
        depth = None if console.shows_styles(screen) else ColorDepth.DEPTH_1_BIT
        self._entries: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation=_continuation,
            history=_ChatHistory(history),
            completer=_Completer(complete),
            complete_while_typing=False,
            input_processors=[TabsProcessor(tabstop=4, char1=" ", char2=" ")],
            key_bindings=_entry_keys(complete),
            enable_open_in_editor=True,
            input=self._input,
            output=output,
            color_depth=depth,
        )
        self._answers: PromptSession[str] = PromptSession(
            history=DummyHistory(),
            key_bindings=_keys(),
            input=self._input,
            output=output,
            color_depth=depth,
        )

    def read(self) -> Entry | None:
        """Return the next entry, as LineEditor says."""
        try:
            typed = self._ask(self._entries, _PROMPT)
        except EOFError:
            return None
        except _Interrupted:
            raise KeyboardInterrupt from None
        self._history.add(typed)
        return parse_entry(typed)

    def edit(self, text: str) -> str | None:
        """Return `text` as the user edited it, as LineEditor says."""
        # Keys that were typed ahead were not meant for this text.
        ahead = self._keys_typed_ahead()
        try:
            typed = self._ask(self._entries, _PROMPT, text)
        except (EOFError, _Interrupted):
            return None
        finally:
            store_typeahead(self._input, ahead)
        self._history.add(typed)
        return parse_entry(" " + typed).text or None

    def choose(self, question: str, answers: str) -> str:
        """Ask until one of these letters is typed, as LineEditor says."""
        console.tell(question)
        ahead = self._keys_typed_ahead()  # no answer to a question that was not there yet
        try:
            while True:
                answer = self._ask(self._answers, f"[{'/'.join(answers)}] ").strip().lower()[:1]
                if answer and answer in answers:
                    return answer
        except (EOFError, _Interrupted):
            return ""
        finally:
            store_typeahead(self._input, ahead)

    def _ask(self, session: PromptSession[str], prompt: str, default: str = "") -> str:
        """Return what was typed; raises EOFError for Ctrl-D, _Interrupted for Ctrl-C."""
        while True:
            self._take_typed()
            # Here Ctrl-C is a key. One that comes before the keys are read was for the reply.
            before = signal.getsignal(signal.SIGINT)
            signal.signal(signal.SIGINT, lambda number, frame: None)
            try:
                typed = session.prompt(prompt, default=default)
            finally:
                signal.signal(signal.SIGINT, before)
            try:
                return as_unicode(typed, "the text")
            except console.UsageError:
                console.say("akunu: this is not UTF-8 text; type it again")

    def _take_typed(self) -> None:
        pressed: list[KeyPress] = []
        parser = Vt100Parser(pressed.append)
        parser.feed_and_flush(self._typed().decode(sys.stdin.encoding, "surrogateescape"))
        store_typeahead(self._input, pressed)

    def _keys_typed_ahead(self) -> list[KeyPress]:
        self._take_typed()
        with self._input.raw_mode():
            keys = [*get_typeahead(self._input), *self._input.read_keys()]
        return [*keys, *self._input.flush_keys()]


class _ChatHistory(PromptHistory):
    """The chat's history, as prompt_toolkit asks for it; the reader of an entry writes it."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def load_history_strings(self) -> Iterable[str]:
        yield from reversed(self._history.entries)

    def store_string(self, string: str) -> None:
        pass


class _Completer(Completer):
    """Completes the last word of a line that is all there is."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        line = document.text_before_cursor
        if "\n" in line:
            return
        start = len(line.rpartition(" ")[2])
        for word, help_ in self._complete(line):
            yield Completion(word, -start, display_meta=help_)


def _continuation(width: int, line_number: int, wrap_count: int) -> str:
    """Return the prompt of the lines after the first, or of the rest of a wrapped line."""
    return " " * len(_MORE) if wrap_count else _MORE


def _keys() -> KeyBindings:
    """Return the bindings of Ctrl-C and Ctrl-Z."""
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("c-c", filter=typing)
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=_Interrupted())

    @keys.add("c-z", filter=typing)
    def _(event: KeyPressEvent) -> None:
        run_in_terminal(suspend)

    return keys


def _entry_keys(complete: Complete) -> KeyBindings:
    """Return what else the keys of an entry do."""
    keys = _keys()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_open(buffer.text):
            buffer.insert_text("\n")
        elif buffer.text.endswith("\\"):
            buffer.cursor_position = len(buffer.text)
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("tab", filter=typing & ~has_completions)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        line = buffer.document.text_before_cursor
        found = [] if "\n" in line else complete(line)
        if len(found) == 1:  # at once: a key that follows must find it done
            buffer.delete_before_cursor(len(line.rpartition(" ")[2]))
            buffer.insert_text(found[0][0])
        elif found:
            buffer.start_completion(insert_common_part=True)

    @keys.add("c-j", filter=typing)
    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
