"""What a person at a chat can type after a slash."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from akunu.cli.conversation import settings
from akunu.cli.conversation.chat_session import ChatSession
from akunu.cli.conversation.saved_conversation import read_conversation, save_conversation
from akunu.cli.loading import title_of
from akunu.cli.output_constraint import FORMS, constraint_of
from akunu.cli.reply.output import SWITCHES, switch, switched
from akunu.cli.terminal import console
from akunu.cli.terminal.clipboard import ClipboardError, copy_text
from akunu.cli.wording import counted, reason, shortened, thinking_of
from akunu.errors import AkunuError, ArgumentError
from akunu.images.reader import read_image


@dataclass(frozen=True, slots=True)
class Command:
    """A command, as /help shows it."""

    name: str
    argument: str
    help: str
    aliases: tuple[str, ...] = ()
    more: str = ""
    """What else /help NAME says."""


COMMANDS: Final = (
    Command("/help", "[COMMAND]", "show the commands", ("/?",)),
    Command(
        "/system",
        "[TEXT | -]",
        "show, set or (with -) remove the system message",
        ("/sys",),
        'Write several lines between """ and """. It applies from the next question.',
    ),
    Command(
        "/set",
        "NAME VALUE",
        "set an option: /set temperature 0.8",
        (),
        "The value `default` restores the setting in the model file, or akunu's default. /show "
        "lists the names. One of schema FILE, json_object on, regex, choice and grammar FILE "
        "constrains replies.",
    ),
    Command("/show", "[NAME]", "show the model and every option of /set"),
    Command(
        "/model",
        "[NAME]",
        "show the model, or load another one",
        (),
        "NAME is a file or a name, as on the command line. The conversation continues. If the "
        "model does not load, the current one stays.",
    ),
    Command(
        "/image",
        "[FILE | -]",
        "show, add or (with -) remove images of the next question",
        (),
        "Repeat it for several images. The model must read images (/show). Everything after "
        "/image is the file name, including spaces. Images stay in the conversation, but /save "
        "does not write them.",
    ),
    Command("/retry", "", "answer the last question again"),
    Command("/edit", "", "edit the last question and answer it again"),
    Command("/continue", "", "continue a reply that was cut"),
    Command(
        "/copy",
        "",
        "copy the last reply to the clipboard",
        (),
        "Thinking is not copied. Over ssh the terminal copies it (OSC 52), if it can.",
    ),
    Command("/undo", "[N]", "remove the last question and its reply, or the last N"),
    Command("/reset", "", "clear the conversation; the system message stays", ("/clear",)),
    Command(
        "/save",
        "FILE",
        "write the conversation to a file",
        (),
        "The file is JSON, and only you can read it. Everything after /save is the file name, "
        "including spaces.",
    ),
    Command(
        "/load",
        "FILE",
        "continue a conversation from a file",
        (),
        "The file comes from /save; akunu chat --load FILE starts with it.",
    ),
    Command("/stats", "", "show tokens, speeds and the context in use"),
    Command("/exit", "", "leave, as Ctrl-D does", ("/quit", "/bye")),
)

_NO_SAMPLING: Final = (settings.THINKING, settings.THINKING_BUDGET, *FORMS, *SWITCHES)
"""Names that `/set` knows besides the fields of SamplingOptions."""

_TYPING: Final = (
    "Enter sends. Alt-Enter, Ctrl-J, or Enter after a \\ begins a new line; a paste is one entry. "
    '""" begins a text of several lines, and the next """ ends it. Ctrl-R searches earlier input. '
    "Ctrl-C stops a reply. With a space before the slash, the line is a question."
)
_NARROW: Final = 60  # columns: below, what a command does stands below it


def find(name: str) -> Command | None:
    """Return the command of a name or an alias, None where there is none."""
    for command in COMMANDS:
        if name in (command.name, *command.aliases):
            return command
    return None


def complete(line: str) -> list[tuple[str, str]]:
    """Return what the last word of a line may become, each with a word of help.

    >>> complete("/und")
    [('/undo', 'remove the last question and its reply, or the last N')]
    >>> [word for word, _ in complete("/set top")]
    ['top_k', 'top_p', 'top_n_sigma']
    """
    if not line.startswith("/"):
        return []
    name, space, argument = line.partition(" ")
    if not space:
        return [(c.name, c.help) for c in COMMANDS if c.name.startswith(line)]
    command = find(name)
    if command is None:
        return []
    if command.name in ("/set", "/show") and " " not in argument:
        names = _names()
        return [(each, "") for each in names if each.startswith(argument)]
    if command.name == "/help":
        return [(c.name, "") for c in COMMANDS if c.name[1:].startswith(argument.lstrip("/"))]
    if command.name in ("/save", "/load", "/model", "/image") and " " not in argument:
        return [(path, "") for path in _paths(argument, models=command.name == "/model")]
    return []


class ChatCommands:
    """Carries out commands on a session."""

    def __init__(self, session: ChatSession) -> None:
        """Use `run`."""
        self._session = session
        self._handlers: Mapping[str, Callable[[str], None]] = {
            "/help": self._help,
            "/system": self._system,
            "/set": self._set,
            "/show": self._show,
            "/model": self._model,
            "/image": self._image,
            "/retry": self._retry,
            "/edit": self._edit,
            "/continue": self._continue,
            "/copy": self._copy,
            "/undo": self._undo,
            "/reset": self._reset,
            "/save": self._save,
            "/load": self._load,
            "/stats": self._stats,
        }

    def run(self, name: str, argument: str) -> bool:
        """Do what a command says, or say why not; return whether the person leaves."""
        command = find(name)
        if command is None:
            _say(
                f"there is no command {name}{_suggestion(name) or ':'} /help lists them; with a "
                f"space in front, the line is a question"
            )
        elif argument and not command.argument:
            _say(f"{command.name} takes no argument, got {shortened(argument)!r}")
        elif command.name == "/exit":
            return True
        else:
            try:
                self._handlers[command.name](argument)
            except (AkunuError, OSError) as error:
                _say(reason(error))
        return False

    def _help(self, name: str) -> None:
        if name:
            command = find("/" + name.removeprefix("/"))
            if command is None:
                _say(f"there is no command {name}{_suggestion('/' + name.removeprefix('/'))}")
                return
            also = f" (also {', '.join(command.aliases)})" if command.aliases else ""
            console.tell(f"{command.name} {command.argument}".rstrip() + f"  {command.help}{also}")
            if command.more:
                console.tell(command.more)
            if command.name == "/set":
                console.tell(f"Names: {', '.join(_names())}.")
            return
        usages = [f"{c.name} {c.argument}".rstrip() for c in COMMANDS]
        width = max(map(len, usages))
        is_narrow = console.terminal_size(sys.stderr)[0] < _NARROW
        for command, usage in zip(COMMANDS, usages, strict=True):
            if is_narrow:
                console.tell(usage)
                console.tell(f"    {command.help}", indent=4)
            else:
                console.tell(f"{usage:<{width}}  {command.help}", indent=width + 2)
        console.tell(_TYPING)

    def _system(self, text: str) -> None:
        talk = self._session.conversation
        if not text:
            shown = talk.system
            _say("there is no system message" if shown is None else f"system message: {shown}")
            return
        talk.system = None if text == "-" else text
        _say("the system message is removed" if text == "-" else "the system message is set")

    def _set(self, argument: str) -> None:
        name, _, value = argument.removeprefix("parameter ").strip().partition(" ")
        if name == "system":
            self._system(value.strip())
        elif not value.strip():
            self._show(name)
        elif name in (settings.THINKING, settings.THINKING_BUDGET):
            self._think(name, value.strip())
        elif name in FORMS:
            session = self._session
            form = constraint_of(name, value.strip())
            if form is not None or (session.form is not None and session.form.name == name):
                session.form = form
            _say(f"{name} is {self._form(name)}")
        elif name in SWITCHES:
            session = self._session
            session.reply = switched(session.reply, name, value.strip())
            _say(f"{name} is {switch(session.reply, name)}")
        else:
            session = self._session
            field = settings.field_name(name, _NO_SAMPLING)
            given = settings.changed(session.given, name, value.strip())
            n_tokens = session.model.config.vocab_size
            for option in ("logit_bias", "stop_token_ids"):
                for token in given.get(option) or ():
                    if token >= n_tokens:
                        raise ArgumentError(
                            f"token {token} of {option} is outside the vocabulary of {n_tokens}"
                        )
            session.given = given
            now = settings.shown(getattr(session.sampling, field))
            _say(f"{field} is {now}{settings.escapes_in(field, value.strip())}")

    def _think(self, name: str, text: str) -> None:
        talk = self._session.conversation
        budget = talk.thinking_budget
        try:
            if name == settings.THINKING:
                talk.thinking = thinking_of(text)
            else:
                talk.thinking_budget = settings.budget_of(text)
        except ArgumentError as error:
            raise ArgumentError(settings.thinking_refused(error)) from None
        _say(f"{name} is {self._thinking(name)}")
        if name == settings.THINKING and talk.thinking_budget != budget:
            _say(f"{settings.THINKING_BUDGET} is removed; it was {budget}")

    def _form(self, name: str) -> str:
        form = self._session.form
        return form.shown if form is not None and form.name == name else "none"

    def _thinking(self, name: str) -> str:
        talk = self._session.conversation
        if name == settings.THINKING:
            return settings.thinking_text(talk.thinking)
        return settings.shown(talk.thinking_budget)

    def _show(self, name: str) -> None:
        session = self._session
        if name in (settings.THINKING, settings.THINKING_BUDGET):
            _tell_row(name, self._thinking(name))
            return
        if name in SWITCHES:
            _tell_row(name, switch(session.reply, name))
            return
        if name in FORMS:
            _tell_row(name, self._form(name))
            return
        facts = {
            "model": title_of(session.model),
            "file": str(session.model.path),
            "context": counted(session.model.context, "token"),
            "reads images": "yes" if session.model.reads_images else "no",
            "system message": shortened(session.conversation.system or "none"),
        }
        about = "system message" if name == "system" else name
        if name and about not in facts:
            field = settings.field_name(name, _NO_SAMPLING)
            _tell_row(field, settings.described(field, session.model, session.given))
            return
        for label, value in facts.items():
            if about in ("", label):
                _tell_row(label, value)
        if name:
            return
        for field in settings.names():
            _tell_row(field, settings.described(field, session.model, session.given))
        for name in (settings.THINKING, settings.THINKING_BUDGET):
            _tell_row(name, self._thinking(name))
        for name in FORMS:
            _tell_row(name, self._form(name))
        for name in SWITCHES:
            _tell_row(name, switch(session.reply, name))

    def _model(self, name: str) -> None:
        session = self._session
        if not name:
            _say(f"{title_of(session.model)}, {session.model.path}")
            return
        try:
            session.switch_model(name)
        except (AkunuError, OSError) as error:
            _say(f"{reason(error)}; {title_of(session.model)} stays")
            return
        _say(
            f"{title_of(session.model)}, context {session.model.context} tokens; "
            f"the conversation continues with {counted(len(session.conversation.turns), 'turn')}"
        )

    def _image(self, name: str) -> None:
        session = self._session
        if name == "-":
            session.images = []
        elif name and not session.model.reads_images:
            _say(f"{title_of(session.model)} does not read images")
            return
        elif name:
            session.images = [*session.images, read_image(_file(name))]
        n = len(session.images)
        _say(f"the next question has {counted(n, 'image') if n else 'no image'}")

    def _retry(self, _: str) -> None:
        session = self._session
        turn = session.conversation.undo()
        if turn is None:
            _say("there is no question to answer again")
            return
        sampling = session.sampling
        if sampling.temperature == 0:
            _say(
                "temperature 0 gives the same reply again; /set temperature 0.8 gives different "
                "ones"
            )
        elif sampling.seed is not None:
            _say(
                f"seed {sampling.seed} gives the same reply again; /set seed none gives "
                f"different ones"
            )
        if not session.ask(turn.question, turn.images):
            session.conversation.take_back(turn)
            _say("the old reply stays")

    def _edit(self, _: str) -> None:
        session = self._session
        turns = session.conversation.turns
        if not turns:
            _say("there is no question to edit")
            return
        question = session.editor.edit(turns[-1].question)
        if question is None or not question.strip():
            _say("the question is unchanged")
            return
        turn = session.conversation.undo()
        if turn is not None and not session.ask(question, turn.images):
            session.conversation.take_back(turn)
            _say("the old question and its reply stay")

    def _continue(self, _: str) -> None:
        session = self._session
        if not session.conversation.turns:
            _say("there is no reply to continue")
        elif not session.was_cut:
            _say("the last reply is complete: the model ended it")
        elif session.conversation.has_images:
            _say("a reply in a conversation with images cannot be continued; /retry answers again")
        elif session.form is not None:
            _say(
                f"a constrained reply ({session.form.name}) cannot be continued; /retry answers "
                f"again, /set {session.form.name} none removes the constraint"
            )
        else:
            question = session.conversation.reopen()
            if not session.ask(question):
                session.conversation.close_again()

    def _copy(self, _: str) -> None:
        turns = self._session.conversation.turns
        if not turns:
            _say("there is no reply to copy")
            return
        text = turns[-1].reply.strip()
        try:
            how = copy_text(text)
        except ClipboardError as error:
            _say(str(error))
            return
        _say(f"copied {counted(len(text), 'character')} {how}")

    def _undo(self, argument: str) -> None:
        session = self._session
        count = 1
        if argument:
            if not argument.isdecimal() or int(argument) < 1:
                raise ArgumentError(f"/undo N: N is {argument!r}; it must be a number from 1 up")
            count = int(argument)
        turns = session.conversation.turns
        if not turns:
            _say("there is nothing to remove")
            return
        if count > len(turns):
            _say(f"the conversation has only {counted(len(turns), 'turn')}; nothing was removed")
            return
        for _ in range(count):
            session.conversation.undo()
        session.is_saved = False
        session.was_cut = False
        session.keep()
        question = shortened(turns[-count].question)
        left = f"{counted(len(turns) - count, 'turn')} left"
        if count == 1:
            _say(f'removed "{question}" and its reply; {left}')
        else:
            _say(f'removed {count} turns, from "{question}" on; {left}')

    def _reset(self, _: str) -> None:
        self._session.conversation.reset()
        self._session.images = []
        self._session.is_saved = True
        self._session.keep()
        _say("a new conversation")

    def _save(self, name: str) -> None:
        session = self._session
        if not name:
            _say("/save FILE: the file name is missing")
            return
        path = _file(name)
        if path.is_dir():
            _say(f"{name} is a directory")
            return
        exists = f"akunu: {name} exists; replace it?"
        if path.exists() and session.editor.choose(exists, "yn") != "y":
            _say("nothing was saved")
            return
        save_conversation(path, session.conversation, title_of(session.model), session.model_name)
        session.is_saved = True
        without = " without its images" if session.conversation.has_images else ""
        _say(f"saved {counted(len(session.conversation.turns), 'turn')} to {name}{without}")

    def _load(self, name: str) -> None:
        session = self._session
        if not name:
            _say("/load FILE: the file name is missing")
            return
        saved = read_conversation(_file(name))
        unsaved = session.conversation.turns and not session.is_saved
        forget = "akunu: forget this conversation? It is not saved."
        if unsaved and session.editor.choose(forget, "yn") != "y":
            _say("nothing was loaded")
            return
        session.conversation.replace(saved.system, saved.turns)
        session.is_saved = True
        session.was_cut = True
        session.keep()
        said = "" if saved.system is None else " and its system message"
        _say(f"loaded {counted(len(saved.turns), 'turn')}{said} from {name}")

    def _stats(self, _: str) -> None:
        session = self._session
        for line in session.statistics.lines(len(session.conversation.turns)):
            console.tell(line)


def _names() -> list[str]:
    """Return all that /set and /show know."""
    thinking = (settings.THINKING, settings.THINKING_BUDGET)
    return [*settings.names(), *thinking, *FORMS, *SWITCHES]


def _say(text: str) -> None:
    console.say(f"akunu: {text}")


def _tell_row(name: str, value: str) -> None:
    """Show a name and its value, side by side where there is room."""
    row = f"{name:<{settings.WIDTH}}  {value}"
    columns = console.terminal_size(sys.stderr)[0]
    if len(row) > columns and columns < _NARROW:
        console.tell(name)
        console.tell(f"    {value}", indent=4)
    else:
        console.tell(row, indent=settings.WIDTH + 2)


def _suggestion(name: str) -> str:
    known = [each for command in COMMANDS for each in (command.name, *command.aliases)]
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _file(name: str) -> Path:
    """Return the file of a name; `~` is a person's folder, where there is such a person."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _paths(start: str, *, models: bool) -> list[str]:
    """Return files and folders whose path begins with `start`; `models`: only model files."""
    folder, slash, name = start.rpartition("/")
    try:
        entries = sorted(_file(folder + slash or ".").iterdir())
    except OSError:
        return []
    found = ["ember"] if models and "ember".startswith(start) else []
    for entry in entries:
        if not entry.name.startswith(name) or (entry.name.startswith(".") and not name):
            continue
        if entry.is_dir():
            found.append(f"{folder}{slash}{entry.name}/")
        elif not models or entry.suffix.lower() == ".gguf":
            found.append(f"{folder}{slash}{entry.name}")
    return found
