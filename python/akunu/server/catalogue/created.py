"""Models that requests created: presets of served models, each in its own file.

A file has the model's name, the name of its base and a preset's table, as JSON. It appears whole or
not at all, and a process that writes the folder holds a lock on it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from akunu.common.atomic_file import atomic_write
from akunu.common.files import open_regular
from akunu.common.json_files import json_object
from akunu.common.state_folder import state_path
from akunu.errors import AkunuError, ArgumentError
from akunu.server.catalogue.presets import Preset, read_preset
from akunu.server.http.errors import ApiError, invalid
from akunu.server.http.json_words import as_json

LATEST: Final = ":latest"
"""A tag that means nothing: Ollama's clients add it or leave it out."""
_LOG: Final = logging.getLogger("akunu.server")
_NAME: Final = re.compile(r"\w[\w.-]*(/\w[\w.-]*){0,2}(:\w[\w.-]*)?", re.ASCII)
_MOST_CHARACTERS: Final = 128
_MOST_BYTES: Final = 1 << 20
_MOST_MODELS: Final = 1000


@dataclass(frozen=True, slots=True)
class CreatedModel:
    """A model that a request created."""

    name: str
    base: str
    """The name of a model in files."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """A preset, as `akunu.toml` has it."""
    license: tuple[str, ...] = ()
    created: int = field(default_factory=lambda: int(time.time()))
    preset: Preset = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ArgumentError for a table that makes no sense."""
        object.__setattr__(self, "preset", read_preset(self.name, self.table)[1])

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> CreatedModel:
        """Return the model of a file; ArgumentError where the file makes no sense."""
        table, texts = facts.get("preset"), facts.get("license", [])
        if not isinstance(table, dict) or not isinstance(texts, list):
            raise ArgumentError("it has no preset")
        return cls(facts["name"], facts["base"], table, tuple(texts), facts["created"])

    @property
    def facts(self) -> dict[str, Any]:
        """What its file has."""
        return {
            "name": self.name,
            "base": self.base,
            "created": self.created,
            "license": list(self.license),
            "preset": dict(self.table),
        }


def new_name(field: str, name: str) -> str:
    """Return the name of a new model, without `:latest`; ApiError for one that cannot be.

    >>> new_name("model", "me/Poet:latest")
    'me/Poet'
    """
    short = name.removesuffix(LATEST)
    if len(short) > _MOST_CHARACTERS or not _NAME.fullmatch(short):
        raise invalid(
            field,
            f"{field} is {as_json(name)}; a name has letters, digits, '.', '_' and '-', at most "
            f"two '/', a tag after ':', and at most {_MOST_CHARACTERS} characters",
        )
    return short


class CreatedModels:
    """The folder of the files; used from any thread."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: None where the user has no home, so that nothing can be kept."""
        self._folder = folder
        self._reported: set[tuple[str, int]] = set()

    @classmethod
    def of_user(cls) -> CreatedModels:
        """Return those of this user."""
        return cls(state_path("created_models"))

    def read(self) -> dict[str, CreatedModel]:
        """Return all models, by name; the log names files that make no sense."""
        found = {}
        for path in sorted(self._folder.glob("*.json")) if self._folder is not None else ():
            changed = 0
            try:
                with open_regular(path) as file:
                    changed = os.fstat(file.fileno()).st_mtime_ns
                    each = CreatedModel.of(json_object(file.read(_MOST_BYTES + 1), path))
                found[each.name] = each
            except FileNotFoundError:
                continue  # another process has deleted it
            except (AkunuError, OSError, KeyError, TypeError) as error:
                if (path.name, changed) not in self._reported:
                    self._reported.add((path.name, changed))
                    _LOG.warning("%s is not a created model: %s", path, error)
        return found

    def put(self, model: CreatedModel) -> None:
        """Keep a model in place of one of this name; ApiError where that cannot be."""
        content = json.dumps(model.facts, ensure_ascii=False, indent=1).encode()
        if len(content) > _MOST_BYTES:
            raise invalid("model", f"a created model has at most {_MOST_BYTES} bytes")
        with self._locked() as folder:
            path = folder / _file_name(model.name)
            if not path.exists() and len(list(folder.glob("*.json"))) >= _MOST_MODELS:
                raise invalid("model", f"there are {_MOST_MODELS} created models: delete some")
            with atomic_write(path, force=True) as file:
                file.write(content)

    def remove(self, name: str) -> None:
        """Delete a model; it is fine if another process did."""
        with self._locked() as folder:
            (folder / _file_name(name)).unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        if self._folder is None:
            raise ApiError(500, "created models cannot be kept: there is no home folder")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield self._folder
            finally:
                os.close(lock)
        except ApiError:
            raise
        except (AkunuError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ApiError(
                500,
                f"created models cannot be kept: {reason or error}",
                code="model_not_kept",
                headers={"x-should-retry": "false"},
                logged=str(self._folder),
            ) from None


def _file_name(name: str) -> str:
    """Return the name of a model's file; names that differ in case alone are the same."""
    return f"{quote(name.casefold(), safe='')}.json"
