"""Markdown within a line: bold, italic, code, links. The rules of emphasis are CommonMark's.

>>> from akunu.cli.terminal.rows import spans_of
>>> spans_of(inline_chars("a **b**", whole=True))
(Span(text='a ', style=''), Span(text='b', style='1'))
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from akunu.cli.terminal.rows import Char, chars_of

_BOLD, _ITALIC, _STRUCK, _CODE, _FAINT, _LINK = "1", "3", "9", "36", "2", "4"

# What a backslash takes the meaning from. Not brackets and not itself: \( and \[ open formulas.
_ESCAPABLE = frozenset("*_`#~|>+-.!<")
_LINK_PATTERN = re.compile(
    r"!?\[(?P<text>(?:[^\[\]\\]|\\.)*)\]\((?P<target>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*"
    r"(?:[ \t]+\"[^\"]*\")?)\)"
)
_ADDRESS_PATTERN = re.compile(r"<(?P<target>[A-Za-z][A-Za-z0-9+.-]*:[^<>\s]*)>")
_MARKUP = re.compile(r"[\\`*_~\[<]")
_RUN_PATTERN = re.compile(r"\*+|_+|~~(?!~)")


@dataclass(slots=True)
class _Item:
    """A character of the source, or what stands for it; hidden where it is markup."""

    text: str
    source: int
    styles: set[str] = field(default_factory=set)
    is_shown: bool = True


@dataclass(slots=True)
class _Run:
    """Neighbouring delimiters of which not all are matched yet."""

    character: str
    items: list[_Item]  # those not matched yet
    first: int  # index of the first of them in the list of all items
    opens: bool
    closes: bool
    length: int  # as written

    @property
    def last(self) -> int:
        return self.first + len(self.items)

    def starts_before(self, source: int) -> bool:
        return bool(self.items) and self.items[0].source < source


@dataclass(frozen=True, slots=True)
class Inline:
    """The characters of a line as they are shown, and where markup is open."""

    chars: list[Char]
    pairs: list[tuple[int, int, str]]  # where each markup begins and ends in the source

    def open_at(self, index: int) -> str:
        """Return the delimiters that are open at this place of the source."""
        return "".join(mark for start, end, mark in sorted(self.pairs) if start < index <= end)


def inline_chars(text: str, *, whole: bool, style: str = "") -> list[Char]:
    """Return the characters to show for a line, with their styles; `style` is that of all."""
    return parse_inline(text, whole=whole, style=style).chars


def parse_inline(text: str, *, whole: bool, style: str = "", opened: int = 0) -> Inline:
    """Find the markup of a line. Where it is not `whole` yet, what is open will be closed.

    So will be what the first `opened` characters open, anyway: they stand for markup that opened
    before, in a part that was shown already.
    """
    if not _MARKUP.search(text):
        return Inline(chars_of(text, style), [])
    items: list[_Item] = []
    runs: list[_Run] = []
    pairs: list[tuple[int, int, str]] = []
    _scan(text, 0, items, runs, pairs, opened if whole else len(text))
    _match(runs, items, pairs)
    open_ones = runs if not whole else [run for run in runs if run.starts_before(opened)]
    _close_open_ones(open_ones, items, pairs, len(text))
    chars = [
        Char(item.text, _joined(style, item.styles), item.source) for item in items if item.is_shown
    ]
    return Inline(chars, pairs)


def _joined(style: str, styles: set[str]) -> str:
    return ";".join(filter(None, (style, *sorted(styles))))


def _scan(
    text: str,
    offset: int,
    items: list[_Item],
    runs: list[_Run],
    pairs: list[tuple[int, int, str]],
    opened: int,
) -> None:
    """Append the items of a text and the runs of delimiters in it.

    Code that opens within the first `opened` characters needs no end.
    """

    def add(piece: str, at: int, *styles: str) -> None:
        items.extend(
            _Item(character, offset + at + index, set(styles))
            for index, character in enumerate(piece)
        )

    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\" and at + 1 < len(text):
            if text[at + 1] in _ESCAPABLE:
                items.append(_Item(text[at + 1], offset + at + 1))
            else:
                add(text[at : at + 2], at)
            at += 2
        elif character == "`":
            at = _scan_code(text, at, offset, items, pairs, at < opened)
        elif character in "[!" and (link := _LINK_PATTERN.match(text, at)):
            before = len(items)
            start = link.start("text")
            inner: list[_Run] = []
            _scan(link["text"], offset + start, items, inner, pairs, 0)
            _match(inner, items, pairs)
            target = link["target"]
            is_same = link["text"] == target
            for item in items[before:]:
                item.styles.add(_LINK)
            if target and not is_same:
                end = link.start("target")
                add(" (", end - 1, _FAINT)
                add(target, end, _FAINT)
                add(")", link.end() - 1, _FAINT)
            at = link.end()
        elif character == "<" and (address := _ADDRESS_PATTERN.match(text, at)):
            add(address["target"], address.start("target"), _LINK)
            at = address.end()
        elif found := _RUN_PATTERN.match(text, at):
            run = found[0]
            opens, closes = _flanks(text, found.start(), found.end())
            first = len(items)
            add(run, at)
            runs.append(_Run(character, items[first:], first, opens, closes, len(run)))
            at = found.end()
        else:
            add(character, at)
            at += 1


def _scan_code(
    text: str,
    at: int,
    offset: int,
    items: list[_Item],
    pairs: list[tuple[int, int, str]],
    may_be_open: bool,
) -> int:
    """Append a code span, or backticks that open none; return where it ends."""
    ticks = re.compile("`+").match(text, at)
    assert ticks is not None
    mark = ticks[0]
    closing = re.compile(f"(?<!`){mark}(?!`)").search(text, ticks.end())
    if closing is None and not may_be_open:
        items.extend(_Item(tick, offset + at + index) for index, tick in enumerate(mark))
        return ticks.end()
    end = closing.start() if closing else len(text)
    code = text[ticks.end() : end]
    start = ticks.end()
    if closing and code.strip() and code[0] == code[-1] == " ":  # `` ` `` is a backtick
        code, start = code[1:-1], start + 1
    items.extend(_Item(char, offset + start + i, {_CODE}) for i, char in enumerate(code))
    pairs.append((offset + at, offset + end, mark))
    return closing.end() if closing else len(text)


def _flanks(text: str, start: int, end: int) -> tuple[bool, bool]:
    """Return whether a run of delimiters may open and may close emphasis."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if text[start:end] == "*" and _is_plain(before) and _is_plain(after):
        return False, False  # a product: 2*3*4; CommonMark would make the 3 italic
    opens = not after.isspace() and (
        not _is_punctuation(after) or before.isspace() or _is_punctuation(before)
    )
    closes = not before.isspace() and (
        not _is_punctuation(before) or after.isspace() or _is_punctuation(after)
    )
    if text[start] == "_":
        return (
            opens and (not closes or _is_punctuation(before)),
            closes and (not opens or _is_punctuation(after)),
        )
    return opens, closes


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _match(runs: list[_Run], items: list[_Item], pairs: list[tuple[int, int, str]]) -> None:
    """Match closing runs with the nearest opening ones, as CommonMark does."""
    index = 0
    while index < len(runs):
        closer = runs[index]
        opener_index = _opener(runs, index) if closer.closes and closer.items else None
        if opener_index is None:
            index += 1
            continue
        opener = runs[opener_index]
        count = 2 if len(opener.items) >= 2 and len(closer.items) >= 2 else 1
        left, right = opener.items[-count:], closer.items[:count]
        _style(items[opener.last : closer.first], closer.character, count)
        for item in (*left, *right):
            item.is_shown = False
        pairs.append((left[0].source, right[0].source, closer.character * count))
        del opener.items[-count:]
        del closer.items[:count]
        closer.first += count
        del runs[opener_index + 1 : index]  # what is between them cannot match beyond
        index = opener_index + 1


def _opener(runs: list[_Run], closer_index: int) -> int | None:
    closer = runs[closer_index]
    for index in range(closer_index - 1, -1, -1):
        run = runs[index]
        if run.character != closer.character or not run.opens or not run.items:
            continue
        if run.character == "~":
            return index
        either_both = run.closes or closer.opens
        if (
            either_both
            and (run.length + closer.length) % 3 == 0
            and not (run.length % 3 == 0 and closer.length % 3 == 0)
        ):
            continue
        return index
    return None


def _close_open_ones(
    runs: list[_Run], items: list[_Item], pairs: list[tuple[int, int, str]], end: int
) -> None:
    for run in runs:
        if not run.opens or not run.items or len(run.items) > 3:
            continue
        for count in {1: (1,), 2: (2,), 3: (2, 1)}[len(run.items)]:
            _style(items[run.last :], run.character, count)
            pairs.append((run.items[0].source, end, run.character * count))
        for item in run.items:
            item.is_shown = False


def _style(items: list[_Item], character: str, count: int) -> None:
    style = _STRUCK if character == "~" else _BOLD if count == 2 else _ITALIC
    for item in items:
        item.styles.add(style)
