"""The range and the default of an option in words, as its declaration has them.

>>> from akunu.options.sampling_options import declared_options
>>> described(declared_options()["top_p"], 1.0)
'Range: above 0, up to 1. Default: 1.'
"""

from __future__ import annotations

from typing import Any, Final

from akunu.options.declarations import Declared

_SIZES: Final = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def described(declared: Declared, default: Any, *, is_models: bool = False) -> str:
    """Return the range and the default of an option; nothing for a switch that is off.

    `is_models`: whether a setting of the model's authors comes before the default.
    """
    given = default_in_words(declared, default)
    if is_models and given:
        given = f"the model's setting, or {given}"
    parts = (range_of(declared), f"Default: {given}." if given else "")
    return " ".join(part for part in parts if part)


def range_of(declared: Declared) -> str:
    """Return the values that an option may have, as a sentence; nothing where any will do."""
    words: str = declared.range_is or getattr(declared.check, "range", "")
    if declared.minus_one_is:
        words += f"; -1: {declared.minus_one_is}"
    return f"Range: {words}." if words else ""


def default_in_words(declared: Declared, default: Any) -> str:
    """Return the default of an option; nothing where it is not there, or a switch that is off.

    >>> from akunu.options.load_options import LoadOptions
    >>> from akunu.options.declarations import declared_of
    >>> default_in_words(declared_of(LoadOptions)["cache_size"], 8 << 30)
    '8 GiB'
    """
    if declared.default_is:
        return declared.default_is
    if isinstance(default, bool):
        return "on" if default else ""
    if default is None or default == ():
        return ""
    if declared.metavar == "BYTES":
        for unit, size in _SIZES:
            if default % size == 0:
                return f"{default // size} {unit}"
    if isinstance(default, float):
        return f"{default:g}"
    return ", ".join(default) if isinstance(default, tuple) else str(default)
