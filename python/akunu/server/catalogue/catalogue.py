"""Which models a server has, by the names that requests use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.options.text_options import LoadOptions
from akunu.server.catalogue.created import LATEST, CreatedModel, CreatedModels
from akunu.server.catalogue.presets import Preset
from akunu.server.http.errors import ApiError, invalid
from akunu.server.http.json_words import as_json
from akunu.server.model_names import adapters_of, own_file_of
from akunu.server.served_model import ServedModel

Discover = Callable[[], Mapping[str, str]]
"""Returns the models that are on this machine now: their sources by name."""

_OWN_FILES: Final = ("mmproj", "chat_template", "draft")
"""Options of loading that belong to one model: see `own_file_of`."""
_LOOK_AGAIN_SECONDS: Final = 1.0
"""A name that is unknown makes the server look for new models, at most this often."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look at this machine has found."""

    there: Mapping[str, str]
    """Sources of models in files, by name."""
    created: Mapping[str, CreatedModel]
    """Models that requests created, by name."""


class Catalogue:
    """The models of a server by name: those of its command line, and those that it discovers."""

    def __init__(
        self,
        sources: Mapping[str, str],
        options: LoadOptions,
        *,
        pinned: Sequence[str] = (),
        discover: Discover | None = None,
        presets: Mapping[str, Preset] | None = None,
        created: CreatedModels | None = None,
    ) -> None:
        """`sources`: what `akunu.load` takes, by name, or by several names with commas.

        `pinned`: names of models that stay loaded. `presets`: by name. `created`: where models that
        requests create are kept; None: this server has none. Raises ArgumentError for a
        name that is there twice, or pinned and not there.
        """
        self._options = options
        self._discover = discover
        self.created = created
        self.without_base: dict[str, CreatedModel] = {}
        """Created models whose base is not here, by name."""
        self._looked_at = -_LOOK_AGAIN_SECONDS
        self.models: dict[str, ServedModel] = {}  # those of the command line first, in their order
        self.by_name: dict[str, ServedModel] = {}  # by all their names
        for key, source in sources.items():
            name, *aliases = (each.strip() for each in key.split(","))
            served = ServedModel(name, source, _options_of(name, options, list(sources)))
            served.aliases = tuple(aliases)
            if presets and key in presets:
                served.preset = presets[key]
                served.options = replace(served.options, **dict(served.preset.loading))
                served.is_pinned = served.preset.is_pinned
            self.models[name] = served
            for each in (name, *aliases):
                if not each or each in self.by_name:
                    raise ArgumentError(
                        f"{key!r}: the name {each!r} is empty, or another model has it"
                    )
                self.by_name[each] = served
        self._refuse_names_twice()
        for name in pinned:
            self.of_setting("pinned", name).is_pinned = True

    def of_setting(self, setting: str, name: str) -> ServedModel:
        """Return the model that a setting of the server names; ArgumentError where there is none.

        Only the exact name counts.
        """
        if name not in self.by_name:
            self.update(self.discovered())
        if name not in self.by_name:
            raise ArgumentError(f"{setting} is {name!r}; the models are {', '.join(self.by_name)}")
        return self.by_name[name]

    def discovered(self) -> _Found:
        """Return what is on this machine now, for `update`; may be called in any thread."""
        return _Found(
            {} if self._discover is None else self._discover(),
            {} if self.created is None else self.created.read(),
        )

    def update(self, found: _Found) -> None:
        """Add models that came to this machine, and forget those that left it.

        A discovered or created model whose name the command line has is left out. A model that is
        loaded stays as it is until it is unloaded.
        """
        self._looked_at = time.monotonic()
        for name, served in list(self.models.items()):
            if served.is_discovered and name not in found.there and served.is_unused:
                del self.models[name], self.by_name[name]
        none: dict[str, Any] = dict.fromkeys(("adapters", *_OWN_FILES))
        own = replace(self._options, **none)
        for name, source in found.there.items():
            if name not in self.by_name:
                served = ServedModel(name, source, own, is_discovered=True)
                self.models[name] = self.by_name[name] = served
        self._update_created(found.created)

    def _update_created(self, created: Mapping[str, CreatedModel]) -> None:
        for name, served in list(self.models.items()):
            now = created.get(name)
            is_same = now == served.creation and now is not None and now.base in self.by_name
            if served.creation is not None and not is_same and served.is_unused:
                del self.models[name], self.by_name[name]
        self.without_base = {
            name: each for name, each in created.items() if each.base not in self.by_name
        }
        for name, each in created.items():
            if name not in self.by_name and name not in self.without_base:
                base = self.by_name[each.base]
                served = ServedModel(
                    name, base.source, replace(base.options, **dict(each.preset.loading))
                )
                served.preset = each.preset.over(base.preset)
                served.creation, served.created = each, each.created
                self.models[name] = self.by_name[name] = served

    def is_worth_a_look(self, name: str) -> bool:
        """Whether a name is unknown, and the last look for new models was a while ago."""
        since = time.monotonic() - self._looked_at
        return since >= _LOOK_AGAIN_SECONDS and self.known(name) is None

    def find(self, name: str) -> ServedModel:
        """Return the model of a name; ApiError where there is none.

        The exact name counts, then the same in other case, where that is only one. `:latest` after
        a name means nothing: Ollama's clients add it or leave it out.
        """
        found = self.known(name)
        if found is None and self.is_worth_a_look(name):
            self.update(self.discovered())
            found = self.known(name)
        if found is None:
            lost = self.without_base.get(name.removesuffix(LATEST))
            raise ApiError(
                404,
                f"the model {as_json(name)} is not served here; "
                + (f"its base {as_json(lost.base)} is missing; " if lost is not None else "")
                + f"there is {', '.join(self._all_names())}",
                param="model",
                code="model_not_found",
            )
        return found

    def known(self, name: str) -> ServedModel | None:
        """Return the model of a name, also in other case or with another `:latest`; None: none."""
        other = name.removesuffix(LATEST) if name.endswith(LATEST) else name + LATEST
        return self._known(name) or self._known(other)

    def _known(self, name: str) -> ServedModel | None:
        if name in self.by_name:
            return self.by_name[name]
        base, colon, adapter = name.rpartition(":")
        if colon and base in self.by_name and adapter in self.by_name[base].adapters:
            return self.by_name[base]
        alike = {
            known: served
            for known, served in self.by_name.items()
            if known.casefold() == name.casefold()
        }
        if len({id(served) for served in alike.values()}) == 1:
            return next(iter(alike.values()))
        if alike:
            raise invalid(
                "model", f"model {as_json(name)} matches {' or '.join(alike)}: write the full name"
            )
        return None

    def _all_names(self) -> list[str]:
        """Return all names that requests may have, those of adapters after their model's."""
        return [
            each
            for name, served in self.by_name.items()
            for each in (name, *(f"{name}:{adapter}" for adapter in served.adapters))
        ]

    def _refuse_names_twice(self) -> None:
        names = self._all_names()
        for name in names:
            if names.count(name) > 1:
                raise ArgumentError(
                    f"a model and an adapter of another model have the same name, {name!r}"
                )


def _options_of(name: str, options: LoadOptions, names: Sequence[str]) -> LoadOptions:
    """Return how a model is loaded, with the adapters and files that are its own."""
    if options.adapters:
        options = replace(options, adapters=adapters_of(name, options, names))
    own: dict[str, Any] = {}
    for option in _OWN_FILES:
        file = getattr(options, option)
        if file is not None:
            own[option] = own_file_of(name, option, os.fspath(file), names)
    return replace(options, **own)
