"""A conversation that is rendered and tokenised anew each turn, and yet keeps its prefix.

The engine keeps the longest prefix that a prompt has in common with what it computed before. Text
that a model generated is seldom tokenised the way the model spelled it, so rendering a reply and
tokenising it would lose that prefix: where the template puts a reply into the prompt unchanged, the
ids that the model generated are used instead. A template that changes replies (many take the
thinking out of earlier ones) has them tokenised.

>>> import akunu
>>> from akunu.conversation import Conversation
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
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from akunu.chat import ChatTemplate, chat_pieces, with_bos
from akunu.errors import ArgumentError
from akunu.tokenizer import Tokenizer

THINKING_SWITCH: Final = "enable_thinking"

_PRIVATE_PLANES: Final = (0xF0000, 0x10FFFD)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its reply."""

    question: str
    reply: str
    token_ids: tuple[int, ...] = ()
    """The ids that the model generated for `reply`; empty where they are not known."""


class Conversation:
    """Turns so far, and the prompt of the next one. Not for several threads at once."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        system: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        """Start without turns; `variables` go to the template, for example `enable_thinking`.

        Raises UnsupportedModelError for a model without a chat template, and ArgumentError for a
        system message that the template refuses or leaves out.
        """
        self._tokenizer = tokenizer
        self._template = ChatTemplate.of(tokenizer)
        if variables is not None and not isinstance(variables, Mapping):
            raise ArgumentError(f"variables must be a dict, got {type(variables).__name__}")
        self._variables = dict(variables or {})
        self._begun: Turn | None = None  # whose reply goes on
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
                raise ArgumentError(f"this model takes no system message: {error}") from None
            if text.strip() and text.strip() not in "".join(p for p in shown if isinstance(p, str)):
                raise ArgumentError(
                    "this model takes no system message: its chat template leaves it out"
                )
        self._system = text

    @property
    def variables(self) -> Mapping[str, Any]:
        """What the template gets beside the messages."""
        return MappingProxyType(self._variables)

    @property
    def has_thinking_switch(self) -> bool:
        """Whether the template asks for `enable_thinking`."""
        return re.search(rf"\b{THINKING_SWITCH}\b", self._template.source) is not None

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation as `Model.chat` takes it, oldest first."""
        messages = [] if self._system is None else [{"role": "system", "content": self._system}]
        for turn in self._turns:
            messages.append({"role": "user", "content": turn.question})
            messages.append({"role": "assistant", "content": turn.reply})
        return messages

    def prompt(self, question: str) -> list[int]:
        """Return the ids of the conversation with `question` at its end, ready for a reply.

        After `reopen` the beginning of that reply is their end. Raises ArgumentError where the
        template refuses the messages.
        """
        _check_text("question", question)
        messages = [*self.messages, {"role": "user", "content": question}]
        plain = self._render(messages)
        for kept in self._candidates():
            ids = self._spliced(messages, plain, kept)
            if ids is not None:
                break
        else:
            ids = self._tokenizer.encode_pieces(plain)
        return with_bos(self._tokenizer, ids + self._begun_ids(plain))

    def prompt_without_turns(self, question: str) -> list[int]:
        """Return what `prompt` would if all turns were dropped; the turns stay."""
        turns, self._turns = self._turns, []
        try:
            return self.prompt(question)
        finally:
            self._turns = turns

    def opens_thinking(self, prompt: Sequence[int]) -> bool:
        """Whether a prompt ends within `<think>`, so that the reply begins with thoughts."""
        if self._begun is not None:
            reply = self._begun.reply
            # Without an opening tag of its own, the prompt before it may have had one.
            before = self._tokenizer.decode(prompt).removesuffix(reply).rstrip()
            is_open = reply.lstrip().startswith("<think>") or before.endswith("<think>")
            return is_open and "</think>" not in reply
        tail = self._tokenizer.decode(prompt[-16:])
        return tail.rstrip().endswith("<think>")

    def add(self, question: str, reply: str, token_ids: Iterable[int] = ()) -> None:
        """Append a turn; `token_ids`: what the model generated for `reply`, if that is known.

        After `reopen`, `reply` is the rest of the reply that was begun. Ids that do not spell the
        reply (one that was cut at a stop string) are not kept.
        """
        _check_text("question", question)
        _check_text("reply", reply)
        ids = tuple(token_ids)
        if ids and ids[-1] in self._tokenizer.stop_ids:
            ids = ids[:-1]
        begun, self._begun = self._begun, None
        if begun is not None and begun.question == question:
            reply = begun.reply + reply
            ids = begun.token_ids + ids if begun.token_ids else ()
        self._turns.append(Turn(question, reply, ids if self._spells(ids, reply) else ()))

    def undo(self) -> Turn | None:
        """Take the last turn away and return it; None where there is none."""
        return self._turns.pop() if self._turns else None

    def reopen(self) -> str:
        """Let the last reply go on; return its question, which the next `prompt` and `add` take.

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
        """Become another conversation, one that was saved. Raises ArgumentError as `system`."""
        turns = list(turns)
        self.system = system
        self._turns = turns
        self._begun = None

    def _begun_ids(self, plain: Sequence[str | int]) -> list[int]:
        """Return the ids of the reply that goes on behind a prompt rendered like this."""
        if self._begun is None:
            return []
        after_text = bool(plain) and isinstance(plain[-1], str)
        return list(self._begun.token_ids) or self._encode(self._begun.reply, after_text)

    def _render(
        self, messages: Sequence[Mapping[str, str]], extra: Mapping[str, Any] | None = None
    ) -> list[str | int]:
        return _merged(
            chat_pieces(
                self._tokenizer,
                self._template,
                messages,
                variables={**self._variables, **(extra or {})},
                now=self._now,
            )
        )

    def _spells(self, ids: tuple[int, ...], text: str) -> bool:
        """Whether these ids are that text and nothing beside it."""
        tokenizer = self._tokenizer
        if any(not 0 <= i < tokenizer.vocab_size or i in tokenizer.control_ids for i in ids):
            return False
        # With and without the space that some vocabularies put in front of a text.
        spelled = b"".join([tokenizer.token_bytes(i) for i in ids]).decode(errors="replace")
        return text in (tokenizer.decode(ids), spelled)

    def _candidates(self) -> list[list[int]]:
        """Return sets of turns whose replies the template may show unchanged, the largest first."""
        known = [index for index, turn in enumerate(self._turns) if turn.token_ids]
        unthinking = [i for i in known if "</think>" not in self._turns[i].reply]
        trimmed = [i for i in unthinking if self._turns[i].reply == self._turns[i].reply.strip()]
        sets: list[list[int]] = []
        for candidate in (known, unthinking, trimmed):
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
        """Return the text of ids that stand behind the ids `before`."""
        stream = self._tokenizer.stream(prompt=before)
        return "".join([stream.push(token) for token in ids]) + stream.finish()

    def _encode(self, text: str, after_text: bool) -> list[int]:
        """Return the ids of a part of the prompt that has no control tokens."""
        if not text or not after_text:
            return self._tokenizer.encode_pieces([text])
        # Text that opens a prompt may get a space in front, text that goes on does not.
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
    used = {character for message in messages for character in message["content"]}
    found: list[str] = []
    code = highest
    # The lower half is for the marks that stand for control tokens meanwhile.
    while len(found) < count and code > (lowest + highest) // 2:
        if chr(code) not in used:
            found.append(chr(code))
        code -= 1
    return found if len(found) == count else None
