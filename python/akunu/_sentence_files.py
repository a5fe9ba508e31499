"""The files that sentence-transformers keeps beside a model: how it embeds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from akunu.errors import ModelFormatError

Json = TypeVar("Json", dict[str, Any], list[Any])

_POOLINGS: Final[Mapping[str, str]] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    """What they say; None and {} where they say nothing."""

    pooling: str | None = None
    normalize: bool | None = None
    most_tokens: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    unknown: tuple[str, ...] = ()
    """Modules that are not done here, a name each."""


def read_sentence_files(directory: Path) -> SentenceFiles:
    """Read them; ModelFormatError where one cannot be read or contradicts itself."""
    modules = _json(directory / "modules.json", list)
    if modules is None:
        return SentenceFiles()
    pooling: str | None = None
    kinds = []
    unknown = []
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2] if isinstance(module, dict) else ""
        kinds.append(kind)
        if kind == "Pooling":
            pooling, others = _pooling(directory / str(module.get("path", "")) / "config.json")
            unknown += others
        elif kind not in ("Transformer", "Normalize", "Dense"):
            unknown.append(kind or repr(module))
    prompts, default = _prompts(directory / "config_sentence_transformers.json")
    return SentenceFiles(
        pooling=pooling,
        normalize="Normalize" in kinds,
        most_tokens=_most_tokens(directory / "sentence_bert_config.json"),
        prompts=prompts,
        default_prompt=default,
        unknown=tuple(unknown),
    )


def _prompts(path: Path) -> tuple[dict[str, str], str | None]:
    """Return the prompts by name, and the name of the one that texts get."""
    config = _json(path, dict) or {}
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(v, str) for v in prompts.values()):
        raise ModelFormatError(f"{path}: prompts must be texts by their names")
    default = config.get("default_prompt_name")
    if default in ("query", "document") and default not in prompts:
        return prompts, None  # sentence-transformers has these two as "" where a file has none
    if default is not None and default not in list(prompts):
        raise ModelFormatError(
            f"{path}: default_prompt_name is {default!r}, which is none of its prompts"
        )
    return prompts, default


def _most_tokens(path: Path) -> int | None:
    """Return how many tokens a text may have; None where the file does not say."""
    most = (_json(path, dict) or {}).get("max_seq_length")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise ModelFormatError(f"{path}: max_seq_length is {most!r}; it must be 1 or more")
    return most


def _pooling(path: Path) -> tuple[str | None, list[str]]:
    config = _json(path, dict)
    if config is None:
        raise ModelFormatError(f"{path} is missing; modules.json names it")
    if isinstance(mode := config.get("pooling_mode"), str):  # newer files
        mode = "last" if mode == "lasttoken" else mode
        return (mode, []) if mode in ("cls", "mean", "max", "last") else (None, [mode])
    wanted = [name for key, name in _POOLINGS.items() if config.get(key)]
    if len(wanted) == 1 and wanted[0] in ("cls", "mean", "max", "last"):
        return wanted[0], []
    return None, [f"Pooling ({', '.join(wanted) or 'none'})"]


def _json(path: Path, kind: type[Json]) -> Json | None:
    """Return the object or list in a file, None where there is no such file."""
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(found, kind):
        raise ModelFormatError(f"{path} is no JSON {'list' if kind is list else 'object'}")
    return found
