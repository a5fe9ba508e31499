"""`akunu chat`: one answer, or a conversation."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass

import akunu
from akunu.chat import ChatTemplate
from akunu.cli import console
from akunu.errors import ContextOverflowError
from akunu.model import PACKAGED_MODELS, Model, load
from akunu.options import LoadOptions, SamplingOptions

_INPUT_PROMPT = "> "
_COMMANDS = "/exit or Ctrl-D leaves, /clear starts a new conversation"
_START_ANEW = "/clear starts a new conversation, --context N gives one more room"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """What the command line asked for."""

    model: str
    prompt: str | None
    system: str | None
    load: LoadOptions
    sampling: SamplingOptions

    def run(self) -> int:
        """Answer once or hold a conversation; return the exit code."""
        system = None if self.system is None else _as_unicode(self.system, "--system")
        question = _question(self.prompt)
        with load(self.model, **asdict(self.load)) as model:
            for note in model.notes:
                console.say(f"akunu: {note}")
            ChatTemplate.of(model.tokenizer)  # a model that cannot chat says so before you type
            conversation = Conversation(model, system, self.sampling)
            if question is None:
                return conversation.hold()
            cut = conversation.answer(question)
            if cut:
                console.say(f"akunu: {cut}")
            return 0


class Conversation:
    """Messages so far, and the model that answers them."""

    def __init__(self, model: Model, system: str | None, sampling: SamplingOptions) -> None:
        """Start with the system message only."""
        self._model = model
        self._sampling = sampling
        self._opening = [] if system is None else [{"role": "system", "content": system}]
        self._messages = list(self._opening)

    def answer(self, question: str) -> str | None:
        """Write the reply to stdout as it comes, remember both; return why it was cut, if it was.

        An interrupted reply is remembered as far as it came. A question without any reply, as one
        that does not fit any more, is forgotten.
        """
        messages = [*self._messages, {"role": "user", "content": question}]
        reply = ""
        try:
            pieces = self._model.chat(messages, stream=True, **asdict(self._sampling))
            with pieces:
                for piece in pieces:
                    reply += piece
                    _write(piece)
        finally:
            if reply:
                messages.append({"role": "assistant", "content": reply})
                self._messages = messages
        if not reply.endswith("\n"):
            _write("\n")
        if not reply:  # a turn without words is a turn as well, for a template
            self._messages = [*messages, {"role": "assistant", "content": ""}]
        if pieces.finish_reason != "length":
            return None
        limit = self._sampling.max_tokens
        if limit is not None and pieces.completion_tokens >= limit:
            return f"the reply was cut after {limit} tokens (--max-tokens)"
        return f"the reply was cut: the context of {self._model.context} tokens is full"

    def hold(self) -> int:
        """Read questions and answer them until the person leaves; return the exit code."""
        with suppress(ImportError):  # line editing, where this Python has it
            import readline  # noqa: F401
        console.say(f"akunu {akunu.__version__}: {_title(self._model)}; {_COMMANDS}")
        while True:
            try:
                line = _read_line()
            except KeyboardInterrupt:
                print(file=sys.stderr)
                return console.EXIT_INTERRUPTED
            if line is None:
                print(file=sys.stderr)
                return 0
            question = line.strip()
            if question == "/exit":
                return 0
            if question == "/clear":
                self._messages = list(self._opening)
                console.say("akunu: a new conversation")
            elif re.fullmatch(r"/\w+", question):
                console.say(f"akunu: there is no command {question}; {_COMMANDS}")
            elif question:
                self._take_turn(question)

    def _take_turn(self, question: str) -> None:
        try:
            cut = self.answer(question)
        except KeyboardInterrupt:
            print(flush=True)
            console.say("akunu: stopped")
        except ContextOverflowError as error:
            console.say(f"akunu: the context is full, {error}; {_START_ANEW}")
        else:
            if cut:
                console.say(f"akunu: {cut}; {_START_ANEW}")


def _title(model: Model) -> str:
    if model.path == PACKAGED_MODELS["ember"]:
        name = "Ember, a small demonstration model"
    else:
        name = model.config.name or model.path.name
    return f"{name}, context {model.context} tokens"


def _question(prompt: str | None) -> str | None:
    """Return what to answer once, from --prompt and standard input; None: talk."""
    piped = None if console.is_terminal(sys.stdin) else _read_standard_input()
    if prompt is None:
        if piped is not None and not piped.strip():
            raise console.UsageError(
                "standard input is empty and no terminal: give a question with --prompt"
            )
        return piped
    prompt = _as_unicode(prompt, "--prompt")
    return f"{prompt}\n\n{piped}" if piped else prompt


def _read_standard_input() -> str:
    if sys.stdin is None:  # the process was started without
        return ""
    return _decoded(sys.stdin.buffer.read(), "standard input").rstrip("\r\n")


def _as_unicode(text: str, what: str) -> str:
    """Return an argument as text, whatever encoding the locale claims."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _decoded(os.fsencode(text), what)
    return text


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise console.UsageError(f"{what} is not UTF-8 text at byte {error.start}") from None


def _read_line() -> str | None:
    """Return the next line that the person types, None at the end."""
    while True:
        try:
            if console.is_terminal(sys.stdout):
                return _as_unicode(input(_INPUT_PROMPT), "the line")
            # stdout is for replies only, but input() would write there.
            print(_INPUT_PROMPT, end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            return _as_unicode(line, "the line") if line else None
        except EOFError:
            return None
        except (UnicodeDecodeError, console.UsageError):
            console.say("akunu: this line is not UTF-8 text; type it again")


def _write(text: str) -> None:
    sys.stdout.write(console.for_terminal(text) if console.is_terminal(sys.stdout) else text)
    sys.stdout.flush()
