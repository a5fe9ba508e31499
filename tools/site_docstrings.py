"""An extension of griffe, which reads docstrings for the site: examples are blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n[ ]*\n|\Z)", re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    """Fences what begins with `>>>`, which Markdown takes for a quotation."""

    def on_object(self, *, obj: griffe.Object, **arguments: Any) -> None:
        """Change an object's docstring."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fenced, obj.docstring.value)


def fenced(example: re.Match[str]) -> str:
    text = re.sub(r" *# doctest: \+.*", "", example.group())
    return f"```pycon\n{text}\n```"
