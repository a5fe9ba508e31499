"""Tells a reply's thoughts, between `<think>` and `</think>`, from its answer, as it comes."""

from __future__ import annotations

OPEN = "<think>"
CLOSE = "</think>"


class ThinkingSplitter:
    """Splits pieces of a reply into thoughts and answer; tags belong to the thoughts.

    Only what a reply begins with is thought: a tag within the answer is text.

    >>> splitter = ThinkingSplitter()
    >>> splitter.push("<think>Hm.</th") + splitter.push("ink>Yes.") + splitter.finish()
    [('<think>Hm.', True), ('</think>', True), ('Yes.', False)]
    """

    def __init__(self, *, thinking: bool = False) -> None:
        """`thinking`: the prompt has opened the thoughts already."""
        self._state = "thinking" if thinking else "start"
        self._held = ""  # may be the beginning of a tag

    @property
    def is_thinking(self) -> bool:
        """Whether the thoughts have begun and not ended."""
        return self._state == "thinking"

    def push(self, piece: str) -> list[tuple[str, bool]]:
        """Return what is certain now: texts, each with whether it is thought."""
        text = self._held + piece
        self._held = ""
        parts: list[tuple[str, bool]] = []
        if self._state == "start":
            begun = text.lstrip()
            if begun.startswith(OPEN):
                self._state = "thinking"
            elif OPEN.startswith(begun):
                self._held = text
                return []
            else:
                self._state = "answer"
        if self._state == "thinking":
            thoughts, tag, rest = text.partition(CLOSE)
            if tag:
                self._state = "answer"
                parts.append((thoughts + tag, True))
                text = rest
            else:
                kept = _overlap(text, CLOSE)
                self._held = text[len(text) - kept :]
                parts.append((text[: len(text) - kept], True))
                text = ""
        parts.append((text, False))
        return [part for part in parts if part[0]]

    def finish(self) -> list[tuple[str, bool]]:
        """Return what was held back, now that nothing comes any more."""
        held, self._held = self._held, ""
        return [(held, self._state == "thinking")] if held else []


def answer_of(reply: str) -> str:
    """Return a reply without its thoughts.

    >>> answer_of("<think>Hm.</think>Yes."), answer_of("Hm.</think>Yes."), answer_of("Yes.")
    ('Yes.', 'Yes.', 'Yes.')
    """
    splitter = ThinkingSplitter(thinking=CLOSE in reply and OPEN not in reply)
    parts = splitter.push(reply) + splitter.finish()
    return "".join(text for text, is_thought in parts if not is_thought).strip()


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of `text` begin `tag`."""
    for count in range(min(len(text), len(tag) - 1), 0, -1):
        if tag.startswith(text[-count:]):
            return count
    return 0
