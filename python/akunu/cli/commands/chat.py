"""`akunu chat`: one answer, or a conversation."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from akunu.cli.conversation.chat_commands import ChatCommands, complete
from akunu.cli.conversation.chat_session import ChatSession, going_on_after, moved_to, say
from akunu.cli.conversation.kept_conversation import KeptConversation
from akunu.cli.conversation.saved_conversation import (
    SavedConversation,
    last_conversation_path,
    read_conversation,
)
from akunu.cli.conversation.settings import thinking_refused
from akunu.cli.file_sampling import chat_sampling, taken_from_file
from akunu.cli.loading import load_model, title_of
from akunu.cli.output_constraint import OutputConstraint, say_mistakes, say_weakened
from akunu.cli.reply.output import ReplyOptions
from akunu.cli.reply.write import Interrupted, why_cut, write_reply
from akunu.cli.terminal import console
from akunu.cli.terminal.editors import has_screen
from akunu.cli.terminal.quiet_terminal import QuietTerminal
from akunu.cli.text_input import as_unicode, has_unread_input, standard_input, with_standard_input
from akunu.cli.wording import shortened
from akunu.errors import ArgumentError
from akunu.grammar.structure import Structure
from akunu.hub.names import UnknownNameError
from akunu.images.reader import read_image
from akunu.model import Model
from akunu.model_facts import no_chat
from akunu.options.text_options import LoadOptions
from akunu.text.conversation import Conversation

_DEFAULT_MODEL: Final = "ember"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """What the command line asked for."""

    arguments: Sequence[str]
    """A model and the words of a question; the words alone where `model` names the model."""
    model: str | None
    prompt: str | None
    images: Sequence[Path]
    """Files that the question is about."""
    system: str | None
    thinking: bool | str | None
    """Whether, or how much, the model thinks; None: as its template has it."""
    thinking_budget: int | None
    continues: bool
    """Go on with the last conversation."""
    conversation: Path | None
    """The file of a conversation to continue with."""
    keeps: bool
    """Keep what is typed and answered, for the next chat."""
    load: LoadOptions
    given: Mapping[str, Any]
    """Sampling options that the command line gave; the rest may come from the model's file."""
    form: OutputConstraint | None
    """What replies may be."""
    reply: ReplyOptions

    def run(self) -> int:
        """Answer once or hold a conversation; return the exit code."""
        structure = None if self.form is None else self.form.structure  # or an error, before more
        say_weakened(structure)
        system = None if self.system is None else as_unicode(self.system, "--system")
        name, question = self._model_and_question()
        talks = question is None and console.is_terminal(sys.stdin)
        self._check_images()
        path = last_conversation_path() if self.keeps else None
        # Made before the file is read, so that it notices every later change of it.
        kept = None if path is None else KeptConversation(path, is_continued=self.continues)
        saved = self._saved()
        if name is None:
            name = (saved and saved.model_name) or _DEFAULT_MODEL
        with ExitStack() as stack:
            typed: Callable[[], bytes] = bytes
            if talks and has_screen():
                quiet = QuietTerminal()
                stack.callback(quiet.end)  # first, so that no Ctrl-C comes between
                quiet.begin()
                typed = quiet.typed
            model = self._loaded(name)
            stack.callback(model.close)
            # A model that cannot chat, or takes no system message, says so before you type.
            conversation = self._conversation(model, system, saved)
            said = taken_from_file(model, self.given)
            if said:
                console.say(f"akunu: {said}")
            if talks:
                session = ChatSession(
                    model,
                    conversation,
                    model_name=name,
                    load=self.load,
                    given=self.given,
                    keeps=self.keeps,
                    kept=kept,
                    complete=complete,
                    typed=typed,
                    reply=self.reply,
                    form=self.form,
                    images=self._images(model),
                )
                stack.callback(session.close)
                return session.hold(ChatCommands(session).run)
            whole = _whole_question(question)
            if conversation.turns:
                say(going_on_after(conversation.turns))
            self._answer_once(model, conversation, whole, structure)
            if (
                self.continues
                and kept is not None
                and kept.keep(conversation, title_of(model), name)
            ):
                say(moved_to(kept.path))
            return 0

    def _model_and_question(self) -> tuple[str | None, str | None]:
        """Return what the arguments name; None for what they do not."""
        name, words = self.model, list(self.arguments)
        if name is None and words:
            name = words.pop(0)
            if not name.strip():
                raise console.UsageError(
                    "the model's name is empty; akunu chat ember QUESTION asks Ember"
                )
            alone = not words and self.prompt is None
            if alone and " " in name.strip() and not Path(name).exists():
                raise console.UsageError(
                    f'there is no model "{shortened(name)}"; a question comes after the model, '
                    "as in: akunu chat ember QUESTION, or after -p"
                )
        if words and self.prompt is not None:
            raise console.UsageError(
                f'the question is set twice: "{shortened(" ".join(words))}", and with --prompt'
            )
        if words:
            return name, as_unicode(" ".join(words), "the question")
        return name, None if self.prompt is None else as_unicode(self.prompt, "--prompt")

    def _loaded(self, name: str) -> Model:
        try:
            return load_model(name, self.load)
        except UnknownNameError as error:
            if self.model is not None or not name.isalpha() or name != self.arguments[0]:
                raise
            words = shlex.quote(shortened(" ".join(self.arguments)))
            raise UnknownNameError(
                f"{error}; the model comes first: if this is the question, akunu chat ember {words}"
            ) from None

    def _saved(self) -> SavedConversation | None:
        if self.conversation is not None:
            if self.continues:
                raise console.UsageError(
                    "--continue and --load both choose a conversation: use one of them"
                )
            return read_conversation(self.conversation.expanduser())
        if not self.continues:
            return None
        path = last_conversation_path()
        if path is None or not path.exists():
            raise console.UsageError(
                "--continue: there is no last conversation. A chat at a terminal keeps one"
            )
        return read_conversation(path)

    def _conversation(
        self, model: Model, system: str | None, saved: SavedConversation | None
    ) -> Conversation:
        if model.embedding is not None:
            raise no_chat(model.config.architecture)
        conversation = Conversation(model.tokenizer, system=system)
        try:
            conversation.thinking = self.thinking
        except ArgumentError as error:
            if self.thinking is not False:
                raise console.UsageError(thinking_refused(error, "--")) from None
            console.say("akunu: --no-think: this model's chat template has no such switch")
        try:
            conversation.thinking_budget = self.thinking_budget
        except ArgumentError as error:
            raise console.UsageError(thinking_refused(error, "--")) from None
        if saved is not None:
            conversation.replace(saved.system if system is None else system, saved.turns)
        return conversation

    def _check_images(self) -> None:
        if self.images and self.continues:
            raise console.UsageError("--image and --continue: a kept conversation has no images")

    def _images(self, model: Model) -> list[bytes]:
        if not self.images:
            return []
        if not model.reads_images:
            raise ArgumentError(
                f"--image: {title_of(model)} does not read images; "
                "docs/embeddings-speech-images.md lists models that do"
            )
        return [read_image(path) for path in self.images]

    def _answer_once(
        self,
        model: Model,
        conversation: Conversation,
        question: str,
        structure: Structure | None,
    ) -> None:
        sampling = chat_sampling(model, self.given)
        options = replace(self.reply, stops_loops=True)
        try:
            completion = write_reply(
                model,
                conversation,
                question,
                sampling,
                options,
                structure=structure,
                images=self._images(model),
            )
        except Interrupted:
            if console.is_terminal(sys.stdout):
                console.write("\n")
            raise KeyboardInterrupt from None
        say_mistakes(completion)
        cut = why_cut(completion, model, sampling)
        if cut:
            console.say(f"akunu: {cut}")


def _whole_question(question: str | None) -> str:
    """Return the question with what standard input has of it; all of it where there is none."""
    if question is not None:
        filled = with_standard_input(question)
        if filled is not None and not filled.strip():
            raise console.UsageError("standard input is empty: there is no question")
        if filled is None and has_unread_input():
            console.say(
                "akunu: a question is set, so standard input is not read. Put {stdin} in the "
                "question to read it, or add </dev/null"
            )
        return question if filled is None else filled
    piped = standard_input().rstrip("\r\n")
    if not piped.strip():
        raise console.UsageError(
            "standard input is empty and not a terminal: set a question with --prompt"
        )
    return piped
