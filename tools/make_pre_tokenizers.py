"""Writes src/text/pre_tokenizers.inc: the families of akunu/tokenizers/pretokenizers.py for C++.

    python -m tools.make_pre_tokenizers src/text/pre_tokenizers.inc

tests/unit/test_text_tables.py holds the file to the families.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from akunu.tokenizers.pretokenizers import FAMILIES, PreTokenizer

_PLAIN = {ord(c) for c in map(chr, range(0x20, 0x7F)) if c not in '"\\?'}


def literal(text: str) -> str:
    """Return a C++ string literal; octal escapes end by themselves."""
    return '"' + "".join(
        chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text.encode()
    ) + '"'  # fmt: skip


def row(family: PreTokenizer) -> str:
    """Return the braces of one family."""
    names = ", ".join(map(literal, family.names))
    splits = ",\n      ".join(map(literal, family.splits))
    flags = ", ".join(
        str(flag).lower() for flag in (family.ignore_merges, family.add_bos, family.add_sep)
    )
    return f"    {{{{{names}}},\n     {{{splits}}},\n     {flags}}},\n"


def families() -> str:
    """Return the whole file."""
    return (
        "// Written by tools/make_pre_tokenizers.py from akunu/tokenizers/pretokenizers.py; "
        "do not edit.\n"
        "// clang-format off\n" + "".join(map(row, FAMILIES)) + "// clang-format on\n"
    )


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.parse_args().path.write_text(families())


if __name__ == "__main__":
    main()
