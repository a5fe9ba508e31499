"""Forms with a file in them (multipart/form-data), as OpenAI's clients upload audio."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from akunu.server.http.errors import invalid

_MOST_FIELDS: Final = 200
_INNER: Final = re.compile(r"([^\[\]]+)\[([^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a form has."""

    file: BinaryIO
    """In memory, or on the disk where it is large; it is gone when the request is over."""
    name: str
    """What the client calls it."""


@asynccontextmanager
async def form_of(request: Request, lists: Collection[str]) -> AsyncIterator[dict[str, Any]]:
    """Read a form; yields its fields by their names: texts, `Upload`s, lists and objects.

    `lists`: names of fields that may come several times, written `name[]` or `name`; they are
    called `name[]` here. Fields `name[key]` are an object. A field that is empty is not given.
    Raises ApiError for a body that is no such form, and for another field that comes twice.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise invalid(
            None,
            f"the body must be a form with a file, multipart/form-data, not {kind or 'nothing'}",
            "invalid_form",
        )
    form = await _read(request)
    try:
        found: dict[str, Any] = {}
        for name, value in form.multi_items():
            _add(found, name, _value_of(value), lists)
        yield found
    finally:
        await form.close()


class _Parser(MultiPartParser):
    """Starlette's, which takes a form that is cut off for one with fewer fields."""

    is_whole = False

    def on_end(self) -> None:
        self.is_whole = True

    def close_files(self) -> None:
        """Close those that belong to no form: Starlette does for its own errors alone."""
        for each in self._files_to_close_on_error:
            each.close()


async def _read(request: Request) -> FormData:
    parser = _Parser(request.headers, request.stream(), max_files=1, max_fields=_MOST_FIELDS)
    try:
        form = await parser.parse()
        if not parser.is_whole:
            raise MultiPartException("it is cut off, its last boundary is missing")
    except MultiPartException as error:
        parser.close_files()
        raise invalid(None, f"the form cannot be read: {error.message}", "invalid_form") from None
    except BaseException:  # the body is too large or too slow, or the client went away
        parser.close_files()
        raise
    return form


def _value_of(value: UploadFile | str) -> Upload | str:
    if isinstance(value, UploadFile):
        return Upload(value.file, value.filename or "")
    return value


def _add(found: dict[str, Any], name: str, value: Upload | str, lists: Collection[str]) -> None:
    """Add one field to those that are known."""
    if value == "":
        return
    base = name.removesuffix("[]")
    if base in lists:
        found.setdefault(f"{base}[]", []).append(value)
        return
    if inner := _INNER.fullmatch(name):
        held = found.setdefault(inner[1], {})
        if isinstance(held, dict) and inner[2] not in held:
            held[inner[2]] = value
            return
    if name in found:
        raise invalid(name, f"{name} is sent twice")
    found[name] = value
