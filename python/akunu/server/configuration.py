"""Settings from a file and the environment, by the names that they have everywhere.

`akunu.toml` has a table `[serve]`; the environment has AKUNU_SERVE_PORT and so on. (`akunu ray` has
a table and variables besides.) What the command
line says counts before the environment, and that before the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from akunu.common.files import read_text
from akunu.errors import ArgumentError
from akunu.options.declarations import Declared
from akunu.server.catalogue.presets import Preset, read_preset
from akunu.server.settings import ServerSettings, declared_settings

TABLES: Final = ("serve", "ray")
FILE_NAME: Final = "akunu.toml"
_TRUE: Final = {"1": True, "true": True, "yes": True, "on": True}
_FALSE: Final = {"0": False, "false": False, "no": False, "off": False}


def from_environment(
    environment: Mapping[str, str] | None = None,
    table: str = "serve",
    kind: type = ServerSettings,
) -> dict[str, Any]:
    """Return the settings that the environment has; ArgumentError for one that does not exist.

    `table`: what the names of variables have after AKUNU_; `kind`: the class of settings.

    >>> from_environment({"AKUNU_SERVE_PORT": "80", "AKUNU_SERVE_API_KEYS": "a,b"})
    {'port': 80, 'api_keys': ['a', 'b']}
    """
    found: dict[str, Any] = {}
    prefix = f"AKUNU_{table.upper()}_"
    for variable, text in (os.environ if environment is None else environment).items():
        if not variable.startswith(prefix) or not text:
            continue
        name = variable[len(prefix) :].lower()
        declared = declared_settings(kind).get(name)
        if declared is None:
            raise ArgumentError(f"{variable} is set, and there is no setting {name!r}")
        found[name] = value_of_text(declared, text)
    return found


@dataclass(frozen=True, slots=True)
class Configured:
    """What a configuration file says."""

    settings: dict[str, Any] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    presets: dict[str, Preset] = field(default_factory=dict)
    """By the names of models."""

    def chosen(self, named: Sequence[str]) -> list[str]:
        """Return the models that a command line names; one of the file as the file has it.

        >>> Configured(models=["small,tiny=ember", "big=big.gguf"]).chosen(["tiny", "other"])
        ['small,tiny=ember', 'other']
        """
        of_file = {}
        for each in self.models:
            names = each.partition("=")[0]
            for name in (names, *names.split(",")):
                of_file[name.strip()] = each
        return [of_file.get(each, each) for each in named] or self.models


def from_file(path: Path | None, name: str = "serve", kind: type = ServerSettings) -> Configured:
    """Return the settings and the models of a configuration file.

    `path`: None is `akunu.toml` in the current folder, if it exists. `name`: the name of the table,
    whose settings are those of `kind`. Raises ArgumentError for a file that cannot be read, and for
    a setting that does not exist.
    """
    if path is None:
        path = Path(FILE_NAME)
        if not path.is_file():
            return Configured()
    table = _table(path, name)
    models = table.pop("models", [])
    presets = {}
    if isinstance(models, dict):
        for key, value in models.items():
            if "=" in key:
                raise ArgumentError(f"{path}: the name {key!r} of a model has a '='")
            if isinstance(value, dict):
                models[key], presets[key] = read_preset(key, value)
            elif not isinstance(value, str):
                raise ArgumentError(f"{path}: models.{key} is {value!r}; it must be a text")
        models = [f"{key}={source}" for key, source in models.items()]
    if not isinstance(models, list) or not all(isinstance(each, str) for each in models):
        raise ArgumentError(f"{path}: models must be a list of texts, or a table of them")
    found = {}
    for key, value in table.items():
        setting = key.replace("-", "_")
        if setting not in declared_settings(kind):
            raise ArgumentError(f"{path}: there is no setting {key!r}")
        found[setting] = value
    return Configured(found, models, presets)


def _table(path: Path, name: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        read = tomllib.loads(read_text(path))
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # of TOML and of UTF-8
        raise ArgumentError(f"{path}: {error}") from None
    others = [
        each for each, table in read.items() if each not in TABLES or not isinstance(table, dict)
    ]
    if others:
        raise ArgumentError(f"{path} has {others}; settings belong in a table [serve]")
    table = read.get(name, {})
    return dict(table)


def value_of_text(declared: Declared, text: str) -> Any:
    """Return the value of a text; the settings themselves check it."""
    if declared.is_list:
        return [each.strip() for each in text.split(",") if each.strip()]
    if not declared.metavar:
        return {**_TRUE, **_FALSE}.get(text.lower(), text)
    if declared.metavar.partition("|")[0] in ("INTEGER", "BYTES", "SECONDS"):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text
