"""A conversation at a terminal: entries in, replies and commands out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import akunu
from akunu.cli.conversation.history import History, history_path
from akunu.cli.conversation.kept_conversation import KeptConversation
from akunu.cli.conversation.settings import thinking_refused
from akunu.cli.conversation.statistics import Statistics
from akunu.cli.file_sampling import chat_sampling
from akunu.cli.loading import load_model, title_of
from akunu.cli.output_constraint import OutputConstraint, say_mistakes
from akunu.cli.reply.output import ReplyOptions
from akunu.cli.reply.write import Interrupted, why_cut, write_reply
from akunu.cli.terminal import console
from akunu.cli.terminal.editors import open_editor
from akunu.cli.terminal.interrupts import EXIT_INTERRUPTED
from akunu.cli.terminal.line_editor import Complete
from akunu.cli.wording import counted, reason, shortened
from akunu.errors import AkunuError, ArgumentError, ContextOverflowError
from akunu.model import Model
from akunu.model_facts import no_chat
from akunu.options.text_options import LoadOptions, SamplingOptions
from akunu.text.conversation import Conversation, Turn


class ChatSession:
    """What a person at a terminal talks to. It owns its model: `close` closes that."""

    def __init__(
        self,
        model: Model,
        conversation: Conversation,
        *,
        model_name: str,
        load: LoadOptions,
        given: Mapping[str, Any],
        keeps: bool,
        kept: KeptConversation | None,
        complete: Complete,
        typed: Callable[[], bytes] = bytes,
        reply: ReplyOptions = ReplyOptions(),  # noqa: B008 - it is frozen
        form: OutputConstraint | None = None,
        images: Sequence[bytes] = (),
    ) -> None:
        """Use `hold`.

        `model_name` is what the person calls the model, `load` how others are loaded; `given` are
        the sampling options that were passed. `keeps`: whether entries are kept for the next chat;
        `kept`: where the conversation is, None for nowhere. `complete`, `typed`: see PromptEditor.
        `reply` says how replies are shown, `form` what they may be. `images`: what the first
        question is about.
        """
        self.model = model
        self.model_name = model_name
        self.conversation = conversation
        self.given = dict(given)
        self.statistics = Statistics(model.context)
        self.is_saved = True
        self.was_cut = bool(conversation.turns)
        """Whether the last reply may continue; of one from a file no one knows."""
        self._load = load
        self.reply = reply
        """How replies are shown."""
        self.form = form
        """What replies may be; None: any text."""
        self.images: list[bytes] = list(images)
        """What the next question is about, until one is answered."""
        self._kept = kept
        self._history = History(history_path(), is_kept=keeps)
        self.editor = open_editor(self._history, complete, typed)

    def close(self) -> None:
        """Close the model."""
        self.model.close()

    @property
    def sampling(self) -> SamplingOptions:
        """How tokens are chosen now."""
        return chat_sampling(self.model, self.given)

    def hold(self, run: Callable[[str, str], bool]) -> int:
        """Read questions and answer them until the person leaves; return the exit code.

        `run` carries out a command, by name and argument, and returns whether the person leaves.
        """
        name = f"{title_of(self.model)}, context {self.model.context} tokens"
        console.say(f"akunu {akunu.__version__}: {name}; /help lists commands, /exit leaves")
        turns = self.conversation.turns
        if turns:
            say(going_on_after(turns))
        told = ""
        while True:
            if self._history.problem != told:
                told = self._history.problem
                say(f"your input is not kept for the next chat: {told}")
            try:
                entry = self.editor.read()
            except KeyboardInterrupt:
                return self._leave_by_interrupt()
            if entry is None:
                print(file=sys.stderr)
                return 0
            try:
                if entry.command:
                    if run(entry.command, entry.argument):
                        return 0
                elif entry.text.strip() and self.ask(entry.text, self.images):
                    self.images = []
            except KeyboardInterrupt:
                say("stopped")

    def ask(self, question: str, images: Sequence[bytes] = ()) -> bool:
        """Answer a question; return whether there is a reply, be it an interrupted one."""
        while True:
            try:
                completion = write_reply(
                    self.model,
                    self.conversation,
                    question,
                    self.sampling,
                    self.reply,
                    structure=None if self.form is None else self.form.structure,
                    images=images,
                )
            except Interrupted as interrupted:
                console.write("\n")
                if interrupted.completion is None:
                    say("stopped; the question is dropped")
                    return False
                self._took(interrupted.completion)
                say("stopped")
                return True
            except KeyboardInterrupt:  # before anything was computed
                say("stopped; the question is dropped")
                return False
            except ContextOverflowError as error:
                if images or self.conversation.has_images:
                    say(f"{error}; /undo removes a turn, /reset clears the conversation")
                    return False
                if not self._make_room(question):
                    return False
            except AkunuError as error:
                say(str(error))
                return False
            else:
                self._took(completion)
                say_mistakes(completion)
                cut = why_cut(completion, self.model, self.sampling)
                if cut:
                    goes_on = self.form is None and not self.conversation.has_images
                    say(f"{cut}; /continue writes the rest" if goes_on else cut)
                return True

    def switch_model(self, name: str) -> None:
        """Go on with another model; raises AkunuError or OSError, and then keeps this one."""
        model = load_model(name, self._load)
        try:
            old = self.conversation
            if model.embedding is not None:
                raise no_chat(model.config.architecture)
            conversation = Conversation(model.tokenizer, variables=old.variables)
            # The ids of replies are those of the old model's vocabulary.
            turns = [replace(turn, token_ids=()) for turn in old.turns]
            if (old.has_images or self.images) and not model.reads_images:
                which = "this conversation" if old.has_images else "the next question"
                clears = "/reset clears the conversation"
                way = clears if old.has_images else "/image - removes them"
                raise ArgumentError(
                    f"{title_of(model)} does not read images, and {which} has some; {way}"
                )
            conversation.replace(old.system, turns)
            _keep_thinking(old, conversation)
            chat_sampling(model, self.given)
        except BaseException:
            model.close()
            raise
        self.model.close()
        self.model, self.model_name, self.conversation = model, name, conversation
        self.statistics = Statistics(model.context)

    def keep(self) -> None:
        """Keep the conversation for `akunu chat --continue`; one without turns is kept no more."""
        if self._kept is None:
            return
        try:
            if self._kept.keep(self.conversation, title_of(self.model), self.model_name):
                say(moved_to(self._kept.path))
        except OSError as error:
            say(f"this conversation is not kept for --continue: {reason(error)}")
            self._kept = None

    def _leave_by_interrupt(self) -> int:
        """Say how the conversation continues, as Ctrl-C may have been meant for a reply."""
        print(file=sys.stderr)
        if self._kept is not None and self._kept.has_conversation:
            option = f"--load {self._kept.path}" if self._kept.has_moved else "-c"
            say(f"akunu chat {option} continues this conversation")
        return EXIT_INTERRUPTED

    def _took(self, completion: akunu.Completion) -> None:
        self.statistics.add(completion)
        self.was_cut = completion.finish_reason != "stop"
        self.is_saved = False
        self.keep()

    def _make_room(self, question: str) -> bool:
        """Say that the context is full, and do what the person chooses; False: give up."""
        talk, context = self.conversation, self.model.context
        needed = len(talk.prompt(question))
        turns = len(talk.turns)
        least = len(talk.prompt_without_oldest(question, turns))
        if least > context:
            stays = "; the conversation stays as it is" if turns else ""
            trained = self.model.config.context_length
            more = "; set a larger --context" if context < trained else ""
            say(
                f"this question takes {least} tokens, the context has {context}: it is "
                f"dropped{stays}{more}"
            )
            return False
        say(
            f"the context is full: {counted(turns, 'turn')} and this question take {needed} "
            f"tokens, of {context}"
        )
        choice = self.editor.choose(
            "akunu: drop the oldest turns (d), start again with this question (n), or stop (s)?",
            "dns",
        )
        if choice == "d":
            room = context // 4  # for the reply, and for some turns until the next time
            dropped = 0
            while talk.turns and len(talk.prompt(question)) > context - room:
                talk.drop_oldest()
                dropped += 1
            say(f"dropped the oldest {dropped} of {counted(turns, 'turn')}")
            return True
        if choice == "n":
            talk.reset()
            say("a new conversation")
            return True
        say(
            "the question is dropped; /reset clears the conversation, /undo removes a turn, "
            "or set a larger --context"
        )
        return False


def _keep_thinking(old: Conversation, new: Conversation) -> None:
    """Have a conversation with another model think as it did before, where that can be."""
    try:
        new.thinking = old.thinking
        new.thinking_budget = old.thinking_budget
    except ArgumentError as error:
        say(f"{thinking_refused(error)}: the template's default is used now")


def going_on_after(turns: Sequence[Turn]) -> str:
    """Return which conversation continues."""
    last = shortened(turns[-1].question)
    return f'continuing after {counted(len(turns), "turn")}, the last: "{last}"'


def moved_to(path: Path) -> str:
    """Return what to say when the conversation is kept elsewhere from now on."""
    return (
        "another akunu kept its conversation in the meantime. This one is kept in {path}; "
        "continue it with akunu chat --load"
    )


def say(text: str) -> None:
    """Write a line about the progress."""
    console.say(f"akunu: {text}")
