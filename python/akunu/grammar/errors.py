"""Errors about a grammar, and where in it they are."""

from __future__ import annotations

import re

from akunu.errors import ArgumentError


def lone_surrogate(text: str) -> str | None:
    r"""What to say of a text that is no Unicode, which no token has; None where it is.

    >>> lone_surrogate("a\ud800")
    'has a lone surrogate at character 1: not valid Unicode'
    """
    found = re.search("[\ud800-\udfff]", text)
    return found and f"has a lone surrogate at character {found.start()}: not valid Unicode"


class OverBudgetError(ArgumentError):
    """A grammar takes more time or memory to compile than it may have."""


class SchemaError(ArgumentError):
    """A JSON schema that no grammar can hold a text to; nothing was generated."""

    def __init__(self, pointer: str, reason: str) -> None:
        """Say where and why."""
        super().__init__(f"schema, {pointer or 'at its root'}: {reason}")
        self.pointer = pointer
        """Where, as a JSON pointer from the root; "" is the root itself."""
        self.reason = reason

    def __reduce__(self) -> tuple[type[SchemaError], tuple[str, str]]:
        """Go from one process to another."""
        return type(self), (self.pointer, self.reason)


class GrammarError(ArgumentError):
    """Rules or an expression that cannot be read; nothing was generated."""

    def __init__(self, kind: str, reason: str, line: int = 1, column: int = 1) -> None:
        """Say where and why; `kind` is what was passed."""
        super().__init__(f"{kind}, line {line}, column {column}: {reason}")
        self._kind = kind
        self.reason = reason
        self.line = line
        """Counted from 1."""
        self.column = column
        """Counted from 1, in characters."""

    def __reduce__(self) -> tuple[type[GrammarError], tuple[str, str, int, int]]:
        """Go from one process to another."""
        return type(self), (self._kind, self.reason, self.line, self.column)
