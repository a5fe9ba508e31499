"""Writes src/text/unicode_tables.inc: what the C++ tokenizers know of Unicode's characters.

    python -m tools.make_unicode_tables src/text/unicode_tables.inc

Needs `regex`, and `unicodedata2` 16.0: the expressions of the `tokenizers` library are of Unicode
16, and equal tokens need equal classes. What BERT takes for punctuation, control characters and
accents comes from the library itself, and so does which characters its normal forms know: its
tables for that are years older, and models were trained with them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import regex
import unicodedata2
from tokenizers import normalizers, pre_tokenizers

CATEGORIES = (
    "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co"
).split()
CODE_POINTS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def runs(values: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Return (first code point, value) of each run of equal values."""
    last = None
    for code, value in values:
        if value != last:
            yield code, value
        last = value


def ranges(codes: Iterable[int]) -> list[tuple[int, int]]:
    """Return (first, last) of each run of neighbours."""
    found: list[tuple[int, int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found


def table(name: str, kind: str, rows: Iterable[tuple[int, ...]], comment: str) -> str:
    """Return one array of C++."""
    entries = ["{" + ", ".join(f"0x{value:x}" for value in row) + "}" for row in rows]
    lines, line = [], ""
    for entry in entries:
        if len(line) + len(entry) > 96:
            lines.append(line.rstrip())
            line = ""
        line += entry + ", "
    lines.append(line.rstrip())
    body = "\n    ".join(lines)
    return f"// {comment}\ninline constexpr {kind} {name}[] = {{\n    {body}\n}};\n"


def library_codes(holds: Callable[[str], bool]) -> list[int]:
    """Return the code points of which the library says so."""
    return [code for code in CODE_POINTS if holds(chr(code))]


def combining_class(code: int) -> int:
    """Return the canonical combining class, 0 of a mark that the library leaves where it is."""
    order = unicodedata2.combining(chr(code))
    decompose = normalizers.NFD().normalize_str
    if order == 0 or decompose(chr(code)) != chr(code):
        return order
    # Of two marks, the one of the lower class comes first.
    lower, higher = (chr(code), "\u0300") if order == 1 else ("\u0334", chr(code))
    return order if decompose("a" + higher + lower) == "a" + lower + higher else 0


def decompositions() -> list[tuple[int, int, int]]:
    """Return (character, first part, second part or 0), one step of canonical decomposition."""
    rows = []
    decompose = normalizers.NFD().normalize_str
    for code in CODE_POINTS:
        if decompose(chr(code)) == chr(code):
            continue
        spelled = unicodedata2.decomposition(chr(code))
        if spelled and not spelled.startswith("<"):
            parts = [int(part, 16) for part in spelled.split()]
            rows.append((code, parts[0], parts[1] if len(parts) > 1 else 0))
    return rows


def is_composed(row: tuple[int, int, int]) -> bool:
    """Whether the two parts of a decomposition are put together again."""
    code, first, second = row
    return second != 0 and unicodedata2.normalize("NFC", chr(first) + chr(second)) == chr(code)


def lowered() -> list[tuple[int, int, int]]:
    """Return (character, its lower case, a second character or 0)."""
    lower = normalizers.Lowercase()
    rows = []
    for code in CODE_POINTS:
        text = lower.normalize_str(chr(code))
        if text != chr(code):
            parts = [*map(ord, text), 0]
            rows.append((code, parts[0], parts[1]))
    return rows


# The properties by which text is cut into what a reader takes for one character, in the order of
# GraphemeBreak in text/graphemes.cpp. The others (of Korean, of flags) make no cluster as short as
# those that are looked for there.
BREAKS = (
    "GCB=Control", "GCB=CR", "GCB=LF", "GCB=Extend", "GCB=ZWJ", "GCB=SpacingMark", "GCB=Prepend",
    "Extended_Pictographic",
)  # fmt: skip


def breaks() -> Iterator[tuple[int, int]]:
    """Return (code point, its place in BREAKS, from 1 on, or 0)."""
    known = [regex.compile(rf"\p{{{name}}}") for name in BREAKS]
    for code in range(0x110000):
        is_surrogate = 0xD800 <= code < 0xE000
        found = [] if is_surrogate else [i for i, each in enumerate(known) if each.match(chr(code))]
        # `regex` may be of a later Unicode, which has given places to characters.
        is_later = unicodedata2.category(chr(code)) == "Cn" and found != [0]
        yield code, found[0] + 1 if found and not is_later else 0


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    if unicodedata2.unidata_version != "16.0.0":
        parser.error(f"unicodedata2 is of Unicode {unicodedata2.unidata_version}, not 16.0.0")

    cleans = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    )
    strips = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
    )
    cuts = pre_tokenizers.BertPreTokenizer()
    number = {name: index for index, name in enumerate(CATEGORIES)}
    pairs = decompositions()
    parts = [
        "// Written by tools/make_unicode_tables.py from Unicode 16.0; do not edit.\n",
        table(
            "kCategories",
            "CategoryRun",
            runs((code, number[unicodedata2.category(chr(code))]) for code in range(0x110000)),
            "The first character of each run of one general category.",
        ),
        table(
            "kCombiningClasses",
            "ClassRun",
            runs((code, combining_class(code)) for code in CODE_POINTS),
            "The first character of each run of one canonical combining class.",
        ),
        table(
            "kGraphemeBreaks",
            "BreakRun",
            runs(breaks()),
            "The first character of each run of one GraphemeBreak.",
        ),
        table("kDecompositions", "Mapping", pairs, "Canonical decomposition, one step."),
        table(
            "kCompositions",
            "Mapping",
            sorted((first, second, code) for code, first, second in filter(is_composed, pairs)),
            "Two characters and what they are together.",
        ),
        table("kLowered", "Mapping", lowered(), "Lower case; 0: no second character."),
        table(
            "kBertRemoved",
            "Range",
            ranges(library_codes(lambda c: cleans.normalize_str(f"a{c}b") == "ab")),
            "What BERT's cleaning leaves out.",
        ),
        table(
            "kBertPunctuation",
            "Range",
            ranges(library_codes(lambda c: len(cuts.pre_tokenize_str(f"a{c}b")) == 3)),
            "What BERT cuts off as a word of its own.",
        ),
        table(
            "kBertAccents",
            "Range",
            ranges(library_codes(lambda c: strips.normalize_str(f"a{c}") == "a")),
            "What BERT's stripping of accents leaves out, once decomposed.",
        ),
    ]
    path.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
