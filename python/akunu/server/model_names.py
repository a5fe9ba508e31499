"""What the models of a server are called, and which of a command's files belong to which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from akunu.errors import ArgumentError
from akunu.options.text_options import LoadOptions


def named_sources(given: Sequence[str]) -> dict[str, str]:
    """Return sources by the names that requests have: `name=source`, or what the source is called.

    >>> named_sources(["ember", "big=/models/qwen3-8b.gguf", "/models/small.gguf"])
    {'ember': 'ember', 'big': '/models/qwen3-8b.gguf', 'small': '/models/small.gguf'}
    """
    named: dict[str, str] = {}
    for each in given:
        alias, equals, source = each.partition("=")
        if not equals or alias.startswith("https://") or Path(each).exists():
            alias, source = _name_of(each), each
        if not alias or not source:
            raise ArgumentError(f"{each!r} is not a model: write MODEL, or NAME=MODEL")
        if alias in named:
            raise ArgumentError(
                f"two models are called {alias!r}: give one another name, NAME=MODEL"
            )
        named[alias] = source
    return named


def adapters_of(model: str, options: LoadOptions, keys: Sequence[str]) -> dict[str, Path]:
    """Return the adapters of a model, which are called NAME where it is alone, or MODEL:NAME."""
    models = [key.split(",")[0].strip() for key in keys]
    found = {}
    for name, path in dict(options.adapters or {}).items():
        base, colon, adapter = name.rpartition(":")
        if colon and base not in models:
            raise ArgumentError(f"adapter {name!r}: there is no model {base!r}")
        if not colon and len(models) > 1:
            raise ArgumentError(
                f"adapter {name!r}: there are several models; write MODEL:{name}, for example "
                f"{models[0]}:{name}"
            )
        if not colon or base == model:
            found[adapter] = Path(path)
    return found


def own_file_of(model: str, option: str, given: str, keys: Sequence[str]) -> str | None:
    """Return a model's own file of an option: what is passed where it is alone, or after its name.

    >>> own_file_of("big", "draft", "big=small.gguf,huge=big.gguf", ["big", "huge", "small"])
    'small.gguf'
    """
    if len(keys) == 1 and not given.startswith(f"{model}="):
        return given
    models = [key.split(",")[0].strip() for key in keys]
    found: dict[str, str] = {}
    for each in given.split(","):
        name, equals, file = (part.strip() for part in each.partition("="))
        if not equals or not file:
            raise ArgumentError(
                f"{option} {each!r}: there are several models; write NAME={each}, for example "
                f"{models[0]}={each}"
            )
        if name not in models:
            raise ArgumentError(f"{option} {each!r}: there is no model {name!r}")
        if name in found:
            raise ArgumentError(f"{option} is set twice for the model {name!r}")
        found[name] = file
    return found.get(model)


def _name_of(source: str) -> str:
    """Return what to call a model: a file or directory by its name, others as they are written.

    >>> _name_of("/models/small.gguf"), _name_of("small/Model"), _name_of("/usr/")
    ('small', 'small/Model', 'usr')
    >>> _name_of("models/ggml-tiny.en.bin")
    'ggml-tiny.en'
    """
    path = Path(source).expanduser()
    if path.is_dir():
        return path.resolve().name
    for ending in (".gguf", ".bin"):
        if source.lower().endswith(ending):
            return source.rpartition("/")[2][: -len(ending)]
    return source
