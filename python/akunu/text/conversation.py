"""A conversation that is rendered and tokenised anew each turn, and yet keeps its prefix.

The engine keeps the longest prefix that a prompt has in common with what it computed before. Text
that a model generated is seldom tokenised the way the model spelled it, so rendering a reply and
tokenising it would lose that prefix: where the template puts a reply into the prompt unchanged, the
ids that the model generated are used instead. A template that changes replies (many take the
thinking out of earlier ones) has them tokenised, as have replies with thoughts.

>>> import akunu
>>> from akunu.text.conversation import Conversation
>>> with akunu.load() as model:
...     talk = Conversation(model.tokenizer, system="You are brief.")
...     prompt = talk.prompt("Hello!")
...     reply = model.generate(prompt, max_tokens=8)
...     talk.add("Hello!", reply)
...     len(talk.prompt("And now?")) > len(prompt)
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from akunu.common.checks import integer
from akunu.errors import ArgumentError
from akunu.grammar import FreeText
from akunu.templates.chat_template import ChatTemplate, chat_pieces, template_ids, with_bos
from akunu.text.context_overflow import without_oldest
from akunu.text.deltas import ReasoningDelta, TextDelta
from akunu.text.render import check_budget, thoughts
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import markers_of
from akunu.thinking.switch import Setting, with_system
from akunu.tokenizers.token_matcher import TokenMatcher
from akunu.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from akunu.text.context_overflow import Shorten

_PRIVATE_PLANES: Final = (0xF0000, 0x10FFFD)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its reply."""

    question: str
    reply: str
    token_ids: tuple[int, ...] = ()
    """The ids that the model generated, thoughts and all; empty where they are not known."""
    reasoning: str = ""
    """What the model thought before it replied."""
    images: tuple[bytes, ...] = ()
    """The files of what the question is about, in front of it."""


class Conversation:
    """Turns so far, and the prompt of the next one. Not for several threads at once."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        system: str | None = None,
        thinking: bool | str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        """Start without turns; `thinking` is as for `Model.chat`, `variables` go to the template.

        Raises UnsupportedModelError for a model without a chat template, and ArgumentError for a
        system message that the template refuses or leaves out, and for thinking that it does not
        know.
        """
        self._tokenizer = tokenizer
        self._template = ChatTemplate.of(tokenizer)
        if variables is not None and not isinstance(variables, Mapping):
            raise ArgumentError(f"variables must be a dict, got {type(variables).__name__}")
        self._variables = dict(variables or {})
        self._markers = markers_of(self._template.source)
        self._setting = Setting()
        self._thinking_budget: int | None = None
        self.thinking = thinking
        self._begun: Turn | None = None  # whose reply continues
        # A prompt that tells the time would have no prefix in common with the one before.
        self._now = datetime.now()
        self._turns: list[Turn] = []
        self._system: str | None = None
        self.system = system

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far, oldest first."""
        return tuple(self._turns)

    @property
    def system(self) -> str | None:
        """The system message; it may be set at any time, None takes it away.

        Setting it raises ArgumentError where the template refuses it or leaves it out.
        """
        return self._system

    @system.setter
    def system(self, text: str | None) -> None:
        if text is not None:
            _check_text("system", text)
            messages = [{"role": "system", "content": text}, {"role": "user", "content": "-"}]
            try:
                shown = self._render(messages)
            except ArgumentError as error:
                raise ArgumentError(f"this model accepts no system message: {error}") from None
            if text.strip() and text.strip() not in "".join(p for p in shown if isinstance(p, str)):
                raise ArgumentError(
                    "this model accepts no system message: its chat template does not write it"
                )
        self._system = text

    @property
    def variables(self) -> Mapping[str, Any]:
        """What the template gets next to the messages."""
        return MappingProxyType(self._variables)

    @property
    def thinking(self) -> bool | str | None:
        """Whether, or how much, the model thinks; None: as its template has it.

        Setting it raises ArgumentError for what the template does not know; False takes the budget
        away.
        """
        return self._thinking

    @thinking.setter
    def thinking(self, thinking: bool | str | None) -> None:
        switch = self._template.thinking_switch
        self._setting = Setting() if thinking is None else switch.setting(thinking)
        self._thinking = thinking
        if thinking is False:
            self._thinking_budget = None

    @property
    def thinking_budget(self) -> int | None:
        """How many tokens of thoughts a reply may have, as for `Model.chat`; None: any number.

        Setting it raises ArgumentError where the template knows no thoughts, or they are off.
        """
        return self._thinking_budget

    @thinking_budget.setter
    def thinking_budget(self, budget: int | None) -> None:
        if budget is not None:
            budget = integer("thinking_budget", budget, 0, 2**31 - 1, "or None")
            check_budget(self._template)
            if self._thinking is False:
                raise ArgumentError("thinking_budget is set, but thinking is False")
            if self._thinking is None:
                self.thinking = True
        self._thinking_budget = budget

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation as `Model.chat` takes it, oldest first, without its images."""
        messages = [] if self._system is None else [{"role": "system", "content": self._system}]
        for turn in self._turns:
            messages.append({"role": "user", "content": turn.question})
            reply = {"role": "assistant", "content": turn.reply}
            if turn.reasoning:
                reply["reasoning_content"] = turn.reasoning
            messages.append(reply)
        return messages

    @property
    def has_images(self) -> bool:
        """Whether a question has images: its prompt is `Model.chat`'s then, not `prompt`."""
        return any(turn.images for turn in self._turns)

    def messages_with(self, question: str, images: Sequence[bytes]) -> list[dict[str, Any]]:
        """Return all messages as `Model.chat` takes them, a question with its images the last."""
        messages: list[dict[str, Any]] = [*self.messages, {"role": "user", "content": question}]
        asked = [message for message in messages if message["role"] == "user"]
        for message, shown in zip(asked, [*(t.images for t in self._turns), images], strict=True):
            if shown:
                parts = [{"type": "image", "image": image} for image in shown]
                message["content"] = [*parts, {"type": "text", "text": message["content"]}]
        return messages

    def prompt(self, question: str) -> list[int]:
        """Return the ids of the conversation with `question` at its end, ready for a reply.

        After `reopen` the beginning of that reply is their end. Raises ArgumentError where the
        template refuses the messages, and for a conversation with images.
        """
        _check_text("question", question)
        if self.has_images:
            raise ArgumentError("this conversation has images: use Model.chat")
        messages = [*self.messages, {"role": "user", "content": question}]
        plain = self._render(messages)
        for kept in self._candidates():
            ids = self._spliced(messages, plain, kept)
            if ids is not None:
                break
        else:
            ids = self._tokenizer.encode_pieces(plain)
        if self._opens_thoughts and not self._is_open(ids):
            ids += template_ids(self._tokenizer, self._template.thinking_ends[0])
        return with_bos(self._tokenizer, ids + self._begun_ids(plain))

    def free(self, splitter: ReplySplitter) -> FreeText | None:
        """Return the thoughts that a reply begins with, None where it begins with the answer."""
        if not splitter.in_reasoning:
            return None
        if self._thinking_budget is None:
            return FreeText(until=(self._markers.closing,))
        return thoughts(self._tokenizer, self._template, self._thinking_budget)

    @property
    def _opens_thoughts(self) -> bool:
        """Whether the prompt opens thoughts where its template leaves that to the model."""
        begun = self._begun
        if begun is None:
            return self._thinking_budget is not None
        text = self._tokenizer.decode(begun.token_ids) or self._spelled(begun)
        return bool(begun.reasoning) and not text.lstrip().startswith(self._markers.opening.strip())

    def _is_open(self, ids: Sequence[int]) -> bool:
        return self._markers.is_open(self._tokenizer.decode(ids[-64:]))

    def shorten(self, question: str) -> Shorten:
        """Return what shortens `prompt(question)` where the context is full: the oldest turns go.

        The system message and the question stay; no turn is taken from the conversation.
        """
        return without_oldest(len(self._turns), partial(self.prompt_without_oldest, question))

    def prompt_without_oldest(self, question: str, n_turns: int) -> list[int]:
        """Return what `prompt` would if the oldest `n_turns` were dropped; the turns stay."""
        turns, self._turns = self._turns, self._turns[n_turns:]
        try:
            return self.prompt(question)
        finally:
            self._turns = turns

    def splitter(self, prompt: Sequence[int]) -> ReplySplitter:
        """Return what tells thoughts and answer apart in the reply to a prompt of `prompt`."""
        if self._begun is None:
            return ReplySplitter(self._markers, in_reasoning=self._is_open(prompt))
        # The begun reply ends the prompt, and the prompt before it may have opened the thinking.
        begun = self._tokenizer.decode(self._begun.token_ids) or self._spelled(self._begun)
        before = self._tokenizer.decode(prompt).removesuffix(begun)
        splitter = ReplySplitter(self._markers, in_reasoning=self._markers.is_open(before))
        splitter.push(begun)
        return ReplySplitter(self._markers, in_reasoning=splitter.in_reasoning)

    def add(
        self,
        question: str,
        reply: str,
        token_ids: Iterable[int] = (),
        reasoning: str = "",
        images: Sequence[bytes] = (),
    ) -> None:
        """Append a turn; `token_ids`: what the model generated, if that is known.

        After `reopen`, `reply` is the rest of the reply that was begun, and `reasoning` likewise.
        Ids that do not spell both (of a reply that was cut at a stop string) are not kept.
        """
        _check_text("question", question)
        _check_text("reply", reply)
        _check_text("reasoning", reasoning)
        ids = tuple(token_ids)
        if ids and ids[-1] in self._tokenizer.stop_ids:
            ids = ids[:-1]
        begun, self._begun = self._begun, None
        if begun is not None and begun.question == question:
            reply = begun.reply + reply
            reasoning = begun.reasoning + reasoning
            ids = begun.token_ids + ids if begun.token_ids else ()
        kept = ids if self._spells(ids, reply, reasoning) else ()
        self._turns.append(Turn(question, reply, kept, reasoning, tuple(images)))

    def undo(self) -> Turn | None:
        """Take the last turn away and return it; None where there is none."""
        return self._turns.pop() if self._turns else None

    def take_back(self, turn: Turn) -> None:
        """Append a turn that `undo` returned."""
        self._turns.append(turn)

    def reopen(self) -> str:
        """Let the last reply continue; return its question, which the next `prompt` and `add` take.

        There must be a turn. `close_again` takes it back.
        """
        self._begun = self._turns.pop()
        return self._begun.question

    def close_again(self) -> None:
        """Have the reply that `reopen` began as it was; without one, nothing happens."""
        begun, self._begun = self._begun, None
        if begun is not None:
            self._turns.append(begun)

    def drop_oldest(self) -> Turn | None:
        """Take the oldest turn away and return it; None where there is none."""
        return self._turns.pop(0) if self._turns else None

    def reset(self) -> None:
        """Forget all turns; the system message stays."""
        self._turns.clear()
        self._begun = None

    def replace(self, system: str | None, turns: Iterable[Turn]) -> None:
        """Become another conversation, one that was saved. Raises ArgumentError as `system`.

        Thoughts that are in a reply, as older versions of akunu saved them, are taken out of it.
        """
        turns = [self._without_thoughts(turn) for turn in turns]
        self.system = system
        self._turns = turns
        self._begun = None

    def _begun_ids(self, plain: Sequence[str | int]) -> list[int]:
        """Return the ids of the reply that continues after a prompt rendered like this."""
        if self._begun is None:
            return []
        if self._begun.token_ids:
            return list(self._begun.token_ids)
        ids: list[int] = []
        after_text = bool(plain) and isinstance(plain[-1], str)
        tokens = self._tokenizer.control_tokens()
        spelled = self._spelled(self._begun)
        opening = self._markers.opening
        if self._begun.reasoning and self._markers.is_open("".join(map(self._text_of, plain))):
            spelled = spelled.removeprefix(opening).lstrip()
        has_markers = self._begun.reasoning and tokens
        pieces = TokenMatcher(tokens).split(spelled) if has_markers else [spelled]
        for piece in pieces:
            ids += [piece] if isinstance(piece, int) else self._encode(piece, after_text)
            after_text = isinstance(piece, str)
        return ids

    def _text_of(self, piece: str | int) -> str:
        return piece if isinstance(piece, str) else self._tokenizer.token_text(piece)

    def _spelled(self, turn: Turn) -> str:
        """Return a reply with its thoughts in front, as most models write them."""
        if not turn.reasoning:
            return turn.reply
        thoughts = f"{self._markers.opening.rstrip()}\n{turn.reasoning}"
        return f"{thoughts}\n{self._markers.closing}\n\n{turn.reply}" if turn.reply else thoughts

    def _without_thoughts(self, turn: Turn) -> Turn:
        if turn.reasoning or self._markers.closing not in turn.reply:
            return turn
        reasoning, reply = self._parts(turn.reply)
        return replace(turn, reply=reply, reasoning=reasoning)

    def _parts(self, text: str) -> tuple[str, str]:
        """Return the thoughts and the answer of a text."""
        opens, closes = (text.find(m) for m in (self._markers.opening, self._markers.closing))
        splitter = ReplySplitter(self._markers, in_reasoning=closes >= 0 > opens)
        deltas = [*splitter.push(text), *splitter.finish()]
        reasoning = "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))
        return reasoning, "".join(d.text for d in deltas if isinstance(d, TextDelta))

    def _render(self, messages: list[dict[str, str]]) -> list[str | int]:
        given = with_system(messages, self._setting.system) if self._setting.system else messages
        variables = {**self._variables, **self._setting.variables}
        pieces = chat_pieces(
            self._tokenizer, self._template, given, variables=variables, now=self._now
        )
        return self._tokenizer.without_taken_spaces(_merged(pieces))

    def _spells(self, ids: tuple[int, ...], text: str, reasoning: str) -> bool:
        """Whether these ids are that text, those thoughts, and nothing next to them."""
        tokenizer = self._tokenizer
        if reasoning and all(0 <= i < tokenizer.vocab_size for i in ids):
            spelled = tokenizer.decode(ids)
            return (reasoning, text) in (self._parts(spelled), (spelled.strip(), ""))
        if any(not 0 <= i < tokenizer.vocab_size or i in tokenizer.control_ids for i in ids):
            return False
        # With and without the space that some vocabularies put in front of a text.
        spelled = b"".join([tokenizer.token_bytes(i) for i in ids]).decode(errors="replace")
        return text in (tokenizer.decode(ids), spelled)

    def _candidates(self) -> list[list[int]]:
        """Return sets of turns whose replies the template may show unchanged, the largest first."""
        known = [i for i, turn in enumerate(self._turns) if turn.token_ids and not turn.reasoning]
        trimmed = [i for i in known if self._turns[i].reply == self._turns[i].reply.strip()]
        sets: list[list[int]] = []
        for candidate in (known, trimmed):
            if candidate and candidate not in sets:
                sets.append(candidate)
        return sets

    def _spliced(
        self, messages: list[dict[str, str]], plain: list[str | int], kept: list[int]
    ) -> list[int] | None:
        """Return the prompt's ids with the generated ones of these turns in place.

        Each of those replies is rendered between two of a character that occurs nowhere else. If
        the rendering is the same but for these, the template neither changed nor looked into the
        replies, and the characters say where they are. None where that is not so.
        """
        marks = _unused_characters(messages, len(kept))
        if marks is None:
            return None
        first = 0 if self._system is None else 1
        marked = list(messages)
        turn_of = dict(zip(marks, kept, strict=True))
        for mark, index in turn_of.items():
            place = first + 2 * index + 1
            content = f"{mark}{self._turns[index].reply}{mark}"
            marked[place] = {**messages[place], "content": content}
        try:
            rendered = self._render(marked)
        except ArgumentError:
            return None
        erase = str.maketrans(dict.fromkeys(marks, ""))
        if _merged(p.translate(erase) if isinstance(p, str) else p for p in rendered) != plain:
            return None
        splitter = re.compile(f"([{''.join(marks)}])(.*?)\\1", re.DOTALL)
        ids: list[int] = []
        after_text = False  # whether text goes on that has begun before
        for piece in rendered:
            if isinstance(piece, int):
                ids.append(piece)
                after_text = False
                continue
            done = 0
            for match in splitter.finditer(piece):
                turn = self._turns[turn_of[match[1]]]
                if match[2] != turn.reply:
                    return None  # one reply in another's place
                before = piece[done : match.start()]
                ids += self._encode(before, after_text)
                # The same ids may have a space in front in one place and none in another.
                if self._decode(turn.token_ids, ids[-1:]) == turn.reply:
                    ids += turn.token_ids
                else:
                    ids += self._encode(turn.reply, after_text or bool(before))
                after_text = True
                done = match.end()
            rest = piece[done:].translate(erase)
            ids += self._encode(rest, after_text)
            after_text = after_text or bool(rest)
        return ids

    def _decode(self, ids: Sequence[int], before: Sequence[int]) -> str:
        """Return the text of ids that stand after the ids `before`."""
        stream = self._tokenizer.stream(prompt=before)
        return "".join([stream.push(token) for token in ids]) + stream.finish()

    def _encode(self, text: str, after_text: bool) -> list[int]:
        """Return the ids of a part of the prompt that has no control tokens."""
        if not text or not after_text:
            return self._tokenizer.encode_pieces([text])
        # Text that opens a prompt may get a space in front, text that continues does not.
        opening = self._tokenizer.encode_pieces(["a"])
        return self._tokenizer.encode_pieces(["a", text])[len(opening) :]


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise ArgumentError(f"{name} must be a str, got {type(text).__name__}")


def _merged(pieces: Iterable[str | int]) -> list[str | int]:
    """Return pieces without empty texts, neighbouring texts joined."""
    merged: list[str | int] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece != "":
            merged.append(piece)
    return merged


def _unused_characters(messages: Sequence[Mapping[str, str]], count: int) -> list[str] | None:
    """Return private characters that no message has, from the top; None: too few are left."""
    lowest, highest = _PRIVATE_PLANES
    used = {character for message in messages for text in message.values() for character in text}
    found: list[str] = []
    code = highest
    # The lower half is for the marks that stand for control tokens meanwhile.
    while len(found) < count and code > (lowest + highest) // 2:
        if chr(code) not in used:
            found.append(chr(code))
        code -= 1
    return found if len(found) == count else None
