"""`akunu chat`: one answer, or a conversation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from akunu.cli import console
from akunu.cli.chat_session import ChatSession
from akunu.cli.file_sampling import chat_sampling, taken_from_file
from akunu.cli.line_editor import has_screen
from akunu.cli.loading import load_model
from akunu.cli.reply import Interrupted, why_cut, write_reply
from akunu.cli.reply_output import ReplyOptions
from akunu.cli.text_input import as_unicode, standard_input
from akunu.conversation import THINKING_SWITCH, Conversation
from akunu.model import Model
from akunu.options import LoadOptions, SamplingOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """What the command line asked for."""

    model: str
    prompt: str | None
    system: str | None
    thinks: bool
    load: LoadOptions
    given: Mapping[str, Any]
    """Sampling options that the command line gave; the rest may come from the model's file."""
    reply: ReplyOptions

    def run(self) -> int:
        """Answer once or hold a conversation; return the exit code."""
        system = None if self.system is None else as_unicode(self.system, "--system")
        question = _question(self.prompt)
        with ExitStack() as stack:
            typed_before = b""
            if question is None and has_screen():
                from akunu.cli.quiet_terminal import QuietTerminal

                typed_before = stack.enter_context(QuietTerminal()).typed_before
            model = stack.enter_context(load_model(self.model, self.load))
            # A model that cannot chat, or takes no system message, says so before you type.
            conversation = self._conversation(model, system)
            sampling = chat_sampling(model, self.given)
            said = taken_from_file(model, self.given)
            if said:
                console.say(f"akunu: {said}")
            if question is None:
                return ChatSession(model, conversation, sampling, typed_before, self.reply).hold()
            return self._answer_once(model, conversation, question, sampling)

    def _conversation(self, model: Model, system: str | None) -> Conversation:
        variables = {} if self.thinks else {THINKING_SWITCH: False}
        conversation = Conversation(model.tokenizer, system=system, variables=variables)
        if not self.thinks and not conversation.has_thinking_switch:
            console.say("akunu: --no-think: this model's chat template has no such switch")
        return conversation

    def _answer_once(
        self, model: Model, conversation: Conversation, question: str, sampling: SamplingOptions
    ) -> int:
        options = replace(self.reply, stops_loops=True)
        try:
            completion = write_reply(model, conversation, question, sampling, options)
        except Interrupted:
            if console.is_terminal(sys.stdout):
                console.write("\n")
            raise KeyboardInterrupt from None
        cut = why_cut(completion, model, sampling)
        if cut:
            console.say(f"akunu: {cut}")
        return 0


def _question(prompt: str | None) -> str | None:
    """Return what to answer once, from --prompt and standard input; None: talk."""
    piped = None if console.is_terminal(sys.stdin) else standard_input().rstrip("\r\n")
    if prompt is None:
        if piped is not None and not piped.strip():
            raise console.UsageError(
                "standard input is empty and no terminal: give a question with --prompt"
            )
        return piped
    prompt = as_unicode(prompt, "--prompt")
    return f"{prompt}\n\n{piped}" if piped else prompt
