"""What a line of Markdown is: a heading, an item of a list, a quote, code or plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from akunu.cli.terminal.rows import Span, cell_count

_FAINT = "2"
_HEADING_STYLES = {1: "1;4", 2: "1", 3: "1;3"}

_QUOTE = re.compile(r" {0,3}>(?: {0,3}>)* ?")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_ITEM = re.compile(r"[ \t]*([-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_INDENT = re.compile(r"[ \t]*")

_FENCE = re.compile(
    r"(?P<lead>\s*(?:>\s?)*)(?P<item>\s*(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<indent>[ \t]*)"
    r"(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)"
)
_FENCE_BEGUN = re.compile(
    r"\s*(?:>\s?)*(?:\s*(?:[-*+]|\d{1,9}[.)])[ \t]+)?[ \t]*(?:`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}.*)"
)


@dataclass(frozen=True, slots=True)
class Symbols:
    """Characters that stand for Markdown's."""

    bullet: str = "•"
    quote: str = "│ "
    rule: str = "─"
    columns: str = " │ "


ASCII = Symbols(bullet="-", quote="| ", rule="-", columns=" | ")


@dataclass(frozen=True, slots=True)
class Line:
    """How a line is shown: the spans before its text, and where its text begins and ends."""

    first: tuple[Span, ...] = ()
    rest: tuple[Span, ...] = ()
    style: str = ""
    start: int = 0
    end: int = 0
    is_rule: bool = False
    is_item: bool = False
    is_verbatim: bool = False


@dataclass(slots=True)
class Fence:
    """The block of code that is open."""

    mark: str
    info: str
    indent: int
    depth: int  # of quotes around it
    item: str  # the mark of a list item before it in its line: "1. "

    def closes(self, line: str) -> bool:
        """Whether this line ends the block."""
        bare = re.sub(r"^\s*(?:>\s?)*", "", line).strip()
        return len(bare) >= len(self.mark) and set(bare) == set(self.mark)

    def may_close(self, line: str) -> bool:
        """Whether this may be the beginning of a line that ends the block."""
        return set(re.sub(r"^\s*(?:>\s?)*", "", line).strip()) <= set(self.mark)

    def is_left_by(self, line: str) -> bool:
        """Whether the quote around the block has ended before this line."""
        return self.depth > 0 and not line.lstrip().startswith(">")

    def code_of(self, line: str) -> str:
        """Return a line of the block without what is there for the block's place only."""
        if self.depth:
            line = re.sub(rf"^\s*(?:>\s?){{1,{self.depth}}}", "", line)
        blank = len(line) - len(line.lstrip(" "))
        return line[min(blank, self.indent) :]


def opened_fence(line: str) -> Fence | None:
    """Return the block of code that this whole line opens, None where it opens none."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return None
    before = (found["item"] or "") + found["indent"]
    lead = (
        found["lead"].rpartition(">")[2].removeprefix(" ")
        if ">" in found["lead"]
        else found["lead"]
    )
    return Fence(
        mark=found["mark"],
        info=found["info"].strip(),
        indent=len(lead + before),
        depth=found["lead"].count(">"),
        item=line[: found.start("mark")] if found["item"] else "",
    )


def may_open_fence(line: str) -> bool:
    """Whether this may be the beginning of a line that opens a block of code."""
    return _FENCE_BEGUN.fullmatch(line) is not None


def read_line(text: str, symbols: Symbols, *, may_be_code: bool) -> Line:
    """Say what a line of text is; `may_be_code`: whether four spaces make code of it."""
    first: tuple[Span, ...] = ()
    start = 0
    quote = _QUOTE.match(text)
    if quote:
        start = quote.end()
        first = (Span(symbols.quote * quote[0].count(">"), _FAINT),)
    end = len(text.rstrip())
    if _RULE.fullmatch(text, start):
        return Line(first, first, _FAINT, start, end, is_rule=True)
    heading = _HEADING.match(text, start)
    if heading:
        closing = re.compile(r"(?:^|[ \t]+)#+$").search(text, heading.end(), end)
        end = max(heading.end(), closing.start() if closing else end)
        style = _HEADING_STYLES[min(3, len(heading[1]))]
        return Line(first, first, style, heading.end(), end)
    item = _ITEM.match(text, start)
    if item:
        indent = _spaces(text[start : item.start(1)])
        bullet = item[1] if item[1][0].isdigit() else symbols.bullet
        hanging = indent + " " * (cell_count(bullet) + 1)
        return Line(
            (*first, Span(f"{indent}{bullet} ")),
            (*first, Span(hanging)),
            "",
            item.end(),
            end,
            is_item=True,
        )
    blank = _INDENT.match(text, start)
    assert blank is not None
    indent = _spaces(blank[0])
    if may_be_code and len(indent) >= 4 and not quote:
        return Line(start=0, end=len(text), is_verbatim=True)
    prefix = (*first, Span(indent)) if indent else first
    return Line(prefix, prefix, "", blank.end(), max(end, blank.end()))


def _spaces(blank: str) -> str:
    return blank.replace("\t", " " * 4)
