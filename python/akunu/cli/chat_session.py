"""A conversation at a terminal: entries in, replies and commands out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import akunu
from akunu.cli import console
from akunu.cli.history import History, history_path
from akunu.cli.interrupts import EXIT_INTERRUPTED
from akunu.cli.line_editor import open_editor
from akunu.cli.loading import title_of
from akunu.cli.reply import Interrupted, why_cut, write_reply
from akunu.cli.reply_output import ReplyOptions
from akunu.cli.saved_conversation import read_conversation, save_conversation
from akunu.cli.statistics import Statistics
from akunu.conversation import Conversation
from akunu.errors import AkunuError, ContextOverflowError
from akunu.model import Model
from akunu.options import SamplingOptions


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    argument: str
    help: str


_COMMANDS = (
    _Command("/help", "", "what can be typed here"),
    _Command("/system", "[TEXT | -]", "show, set or (with -) remove the system message"),
    _Command("/reset", "", "start anew; the system message stays"),
    _Command("/undo", "", "take the last question and its reply back"),
    _Command("/save", "FILE", "write the conversation to a file"),
    _Command("/load", "FILE", "go on with a conversation from a file"),
    _Command("/stats", "", "tokens reused and computed, speeds, context used"),
    _Command("/exit", "", "leave, as Ctrl-D does"),
)
_ALIASES: Mapping[str, str] = MappingProxyType({"/clear": "/reset"})

_TYPING = (
    'A line that ends in \\ goes on in the next one; """ opens a text of several lines, and the',
    'next """ ends it. Ctrl-C stops a reply. A space before a slash makes a question of it.',
)


class ChatSession:
    """What a person at a terminal talks to."""

    def __init__(
        self,
        model: Model,
        conversation: Conversation,
        sampling: SamplingOptions,
        typed_before: bytes = b"",
        reply: ReplyOptions = ReplyOptions(),  # noqa: B008 - it is frozen
    ) -> None:
        """Use `hold`; `typed_before`: see QuietTerminal."""
        self._model = model
        self._conversation = conversation
        self._sampling = sampling
        self._reply = reply
        self._statistics = Statistics(model.context)
        self._history = History(history_path())
        self._editor = open_editor(self._history, _complete, typed_before)
        self._is_saved = True
        self._handlers: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/system": self._system,
            "/reset": self._reset,
            "/undo": self._undo,
            "/save": self._save,
            "/load": self._load,
            "/stats": self._stats,
        }

    def hold(self) -> int:
        """Read questions and answer them until the person leaves; return the exit code."""
        name = f"{title_of(self._model)}, context {self._model.context} tokens"
        console.say(f"akunu {akunu.__version__}: {name}; /help lists commands, /exit leaves")
        told = ""
        while True:
            if self._history.problem != told:
                told = self._history.problem
                _say(f"what you type is not kept for the next chat: {told}")
            try:
                entry = self._editor.read()
            except KeyboardInterrupt:
                print(file=sys.stderr)
                return EXIT_INTERRUPTED
            if entry is None:
                print(file=sys.stderr)
                return 0
            if not entry.command:
                if entry.text.strip():
                    self._ask(entry.text)
            elif entry.command == "/exit":
                return 0
            else:
                self._run_command(entry.command, entry.argument)

    def _run_command(self, word: str, argument: str) -> None:
        handler = self._handlers.get(_ALIASES.get(word, word))
        if handler is None:
            _say(f"there is no command {word}: /help lists them, a space in front makes a question")
            return
        try:
            handler(argument)
        except (AkunuError, OSError) as error:
            what = error.strerror if isinstance(error, OSError) else None
            where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
            _say(f"{where}{what or error}")
        except KeyboardInterrupt:
            _say("stopped")

    def _ask(self, question: str) -> None:
        while True:
            try:
                completion = write_reply(
                    self._model, self._conversation, question, self._sampling, self._reply
                )
            except Interrupted as interrupted:
                console.write("\n")
                if interrupted.completion is None:
                    _say("stopped; the question is forgotten")
                else:
                    self._took(interrupted.completion)
                    _say("stopped")
                return
            except KeyboardInterrupt:  # before anything was computed
                _say("stopped; the question is forgotten")
                return
            except ContextOverflowError:
                if not self._make_room(question):
                    return
            except AkunuError as error:
                _say(str(error))
                return
            else:
                self._took(completion)
                cut = why_cut(completion, self._model, self._sampling)
                if cut:
                    _say(cut)
                return

    def _took(self, completion: akunu.Completion) -> None:
        self._statistics.add(completion)
        self._is_saved = False

    def _make_room(self, question: str) -> bool:
        """Say that the context is full, and do what the person chooses; False: give up."""
        talk, context = self._conversation, self._model.context
        needed = len(talk.prompt(question))
        turns = len(talk.turns)
        if not turns:
            _say(
                f"this question takes {needed} tokens, the context has {context}: it is forgotten; "
                "--context N gives more room"
            )
            return False
        _say(
            f"the context is full: {turns} turns and this question take {needed} tokens, "
            f"of {context}"
        )
        choice = self._editor.choose(
            "akunu: drop the oldest turns (d), start anew with this question (n), or stop (s)?",
            "dns",
        )
        if choice == "d":
            room = context // 4  # for the reply, and for some turns until the next time
            dropped = 0
            while talk.turns and len(talk.prompt(question)) > context - room:
                talk.drop_oldest()
                dropped += 1
            _say(f"dropped the oldest {dropped} of {turns} turns")
            return True
        if choice == "n":
            talk.reset()
            _say("a new conversation")
            return True
        _say(
            "the question is forgotten; /reset starts anew, /undo takes a turn back, "
            "--context N gives more room"
        )
        return False

    def _help(self, _: str) -> None:
        usages = [f"{c.name} {c.argument}".rstrip() for c in _COMMANDS]
        width = max(map(len, usages))
        for command, usage in zip(_COMMANDS, usages, strict=True):
            console.tell(f"{usage:<{width}}  {command.help}")
        for line in _TYPING:
            console.tell(line)

    def _system(self, text: str) -> None:
        if not text:
            shown = self._conversation.system
            _say("there is no system message" if shown is None else f"system message: {shown}")
            return
        self._conversation.system = None if text == "-" else text
        _say("the system message is gone" if text == "-" else "the system message is set")

    def _reset(self, _: str) -> None:
        self._conversation.reset()
        self._is_saved = True
        _say("a new conversation")

    def _undo(self, _: str) -> None:
        turn = self._conversation.undo()
        if turn is None:
            _say("there is nothing to take back")
            return
        self._is_saved = False
        question = " ".join(turn.question.split())
        if len(question) > 60:
            question = question[:57] + "..."
        _say(f'took back "{question}" and its reply; {_count(self._conversation)} left')

    def _save(self, name: str) -> None:
        if not name:
            _say("/save FILE: where to?")
            return
        path = Path(name).expanduser()
        if path.is_dir():
            _say(f"{name} is a directory")
            return
        if path.exists() and self._editor.choose(f"akunu: {name} exists; replace it?", "yn") != "y":
            _say("nothing was saved")
            return
        save_conversation(path, self._conversation, title_of(self._model))
        self._is_saved = True
        _say(f"saved {_count(self._conversation)} to {name}")

    def _load(self, name: str) -> None:
        if not name:
            _say("/load FILE: where from?")
            return
        system, turns = read_conversation(Path(name).expanduser())
        if (
            self._conversation.turns
            and not self._is_saved
            and self._editor.choose("akunu: forget this conversation? It is not saved.", "yn")
            != "y"
        ):
            _say("nothing was loaded")
            return
        self._conversation.replace(system, turns)
        self._is_saved = True
        said = "" if system is None else " and its system message"
        _say(f"loaded {_count(self._conversation)}{said} from {name}")

    def _stats(self, _: str) -> None:
        for line in self._statistics.lines(len(self._conversation.turns)):
            console.tell(line)


def _complete(line: str) -> list[tuple[str, str]]:
    return [(c.name, c.help) for c in _COMMANDS if line and c.name.startswith(line)]


def _say(text: str) -> None:
    console.say(f"akunu: {text}")


def _count(conversation: Conversation) -> str:
    count = len(conversation.turns)
    return "one turn" if count == 1 else f"{count} turns"
