"""The files that sentence-transformers keeps beside a model: how it embeds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from akunu.errors import ModelFormatError

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
    """Read them; ModelFormatError where one cannot be read."""
    modules = _json(directory / "modules.json")
    if not isinstance(modules, list):
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
        elif kind not in ("Transformer", "Normalize"):
            unknown.append(kind or repr(module))
    config = _json(directory / "config_sentence_transformers.json")
    config = config if isinstance(config, dict) else {}
    length = _json(directory / "sentence_bert_config.json")
    most = length.get("max_seq_length") if isinstance(length, dict) else None
    prompts = config.get("prompts")
    return SentenceFiles(
        pooling=pooling,
        normalize="Normalize" in kinds,
        most_tokens=most if isinstance(most, int) and most > 0 else None,
        prompts={str(k): str(v) for k, v in prompts.items()} if isinstance(prompts, dict) else {},
        default_prompt=config.get("default_prompt_name"),
        unknown=tuple(unknown),
    )


def _pooling(path: Path) -> tuple[str | None, list[str]]:
    config = _json(path)
    if not isinstance(config, dict):
        raise ModelFormatError(f"{path} is missing; modules.json names it")
    if isinstance(mode := config.get("pooling_mode"), str):  # newer files
        mode = "last" if mode == "lasttoken" else mode
        return (mode, []) if mode in ("cls", "mean", "max", "last") else (None, [mode])
    wanted = [name for key, name in _POOLINGS.items() if config.get(key)]
    if len(wanted) == 1 and wanted[0] in ("cls", "mean", "max", "last"):
        return wanted[0], []
    return None, [f"Pooling ({', '.join(wanted) or 'none'})"]


def _json(path: Path) -> Any:
    """Return what a file says, None where there is none."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path} cannot be read as JSON: {error}") from None
