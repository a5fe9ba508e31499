"""A chat template that the caller chose in place of the model's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from akunu.common.files import read_text
from akunu.errors import ArgumentError, ModelFormatError
from akunu.templates.chat_template import ChatTemplate

MOST_BYTES: Final = 1 << 20


def template_text(chosen: str | os.PathLike[str] | None) -> str | None:
    """Return a template's text: a str with `{{` or `{%` is that text, anything else a path.

    None: none was chosen.

    Raises ArgumentError where the file cannot be read, is empty or larger than `MOST_BYTES`, or
    where the text is not valid Jinja.

    >>> template_text("{{ messages[0].content }}")
    '{{ messages[0].content }}'
    """
    if chosen is None:
        return None
    if isinstance(chosen, str) and ("{{" in chosen or "{%" in chosen):
        text, where = chosen, "chat_template"
    else:
        path = Path(chosen).expanduser()
        where = f"chat_template {path}"
        try:
            if path.stat().st_size > MOST_BYTES:
                raise ArgumentError(f"{where} has more than {MOST_BYTES} bytes")
            text = read_text(path)
        except OSError as error:
            raise ArgumentError(f"{where}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ArgumentError(f"{where} is not text in UTF-8") from None
    if not text.strip():
        raise ArgumentError(f"{where} is empty")
    try:
        ChatTemplate(text)
    except ModelFormatError as error:
        raise ArgumentError(f"{where}: {error}") from None
    return text
