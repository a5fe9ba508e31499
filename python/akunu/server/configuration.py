"""Settings from a file and the environment, by the names that they have everywhere.

`akunu.toml` has a table `[serve]`; the environment has AKUNU_SERVE_PORT and so on. What the command
line says counts before the environment, and that before the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.server.settings import Declared, declared_settings

PREFIX: Final = "AKUNU_SERVE_"
FILE_NAME: Final = "akunu.toml"
_TRUE: Final = {"1": True, "true": True, "yes": True, "on": True}
_FALSE: Final = {"0": False, "false": False, "no": False, "off": False}


def from_environment(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the settings that the environment has; ArgumentError for one that does not exist.

    >>> from_environment({"AKUNU_SERVE_PORT": "80", "AKUNU_SERVE_API_KEYS": "a,b"})
    {'port': 80, 'api_keys': ['a', 'b']}
    """
    found: dict[str, Any] = {}
    for variable, text in (os.environ if environment is None else environment).items():
        if not variable.startswith(PREFIX) or not text:
            continue
        name = variable[len(PREFIX) :].lower()
        declared = declared_settings().get(name)
        if declared is None:
            raise ArgumentError(f"{variable} is set, and there is no setting {name!r}")
        found[name] = _value(declared, text)
    return found


def from_file(path: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return the settings and the models of a configuration file.

    `path`: None is `akunu.toml` in the current folder, where there is one. Raises ArgumentError for
    what cannot be read, and for a name that does not exist.
    """
    if path is None:
        path = Path(FILE_NAME)
        if not path.is_file():
            return {}, []
    table = _table(path)
    models = table.pop("models", [])
    if isinstance(models, dict):
        models = [f"{name}={source}" for name, source in models.items()]
    if not isinstance(models, list) or not all(isinstance(each, str) for each in models):
        raise ArgumentError(f"{path}: models must be a list of texts, or a table of them")
    found = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in declared_settings():
            raise ArgumentError(f"{path}: there is no setting {key!r}")
        found[name] = value
    return found, models


def _table(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # of TOML and of UTF-8
        raise ArgumentError(f"{path}: {error}") from None
    table = read.get("serve", {})
    others = [name for name in read if name != "serve"]
    if others or not isinstance(table, dict):
        raise ArgumentError(f"{path} has {others or 'serve'}; settings stand in a table [serve]")
    return dict(table)


def _value(declared: Declared, text: str) -> Any:
    """Return what a text says; the settings themselves refuse what makes no sense."""
    if declared.is_list:
        return [each.strip() for each in text.split(",") if each.strip()]
    if not declared.metavar:
        return {**_TRUE, **_FALSE}.get(text.lower(), text)
    if declared.metavar in ("INTEGER", "BYTES", "SECONDS"):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text
