"""Errors of several things in one call: which of them is meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from akunu.errors import AkunuError


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put a name in front of the message of an error of ours."""
    try:
        yield
    except AkunuError as error:
        raise type(error)(f"{name}: {error}") from None
