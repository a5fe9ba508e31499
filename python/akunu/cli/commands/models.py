"""`akunu list` and `akunu remove`: the models on this machine."""

from __future__ import annotations

import json
import sys
from typing import Any

from akunu.cli.terminal import console
from akunu.cli.terminal.console import UsageError
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import bytes_text, write_rows
from akunu.errors import ArgumentError
from akunu.hub import local_models
from akunu.hub.find import fetchable
from akunu.hub.local_models import LocalModel
from akunu.hub.packaged_models import PACKAGED_MODELS


def list_models(*, as_json: bool) -> int:
    """Write the models on this machine to stdout, whichever program put them there."""
    with Progress(lambda: "looking into the models here"):
        found = [(model, model.problem()) for model in local_models.models_here()]
    if as_json:
        json.dump(
            [_facts(model, problem) for model, problem in found],
            sys.stdout,
            ensure_ascii=False,
            indent=2,
        )
        print()
        return 0
    write_rows(
        "",
        ("name", "size", "from", "akunu loads it"),
        [
            (
                model.name,
                bytes_text(model.size()),
                model.source,
                f"no: {problem}" if problem else "yes",
            )
            for model, problem in found
        ],
    )
    return 0


def _facts(model: LocalModel, problem: str) -> dict[str, Any]:
    return {
        "name": model.name,
        "path": str(model.path),
        "bytes": model.size(),
        "from": model.source,
        "loadable": not problem,
        **({"problem": problem} if problem else {}),
    }


def remove_models(names: list[str], *, is_sure: bool) -> int:
    """Remove models from the caches of Hugging Face and akunu, after asking."""
    chosen: dict[LocalModel, None] = {}
    for name in names:
        chosen.update(dict.fromkeys(_removable(name)))
    models = list(chosen)
    if not is_sure and not console.is_terminal(sys.stdin):
        raise UsageError(
            "standard input is not a terminal, so remove cannot ask for confirmation: add --yes"
        )
    for model in models:
        state = "" if model.is_whole else ", unfinished"
        console.tell(f"{model.name} ({bytes_text(model.size())}{state}), {model.path}")
    if not is_sure and not _agrees(models):
        console.say("akunu: nothing was removed")
        return 1
    freed = sum(model.size() for model in models)
    local_models.remove(models)
    console.tell(f"removed, {bytes_text(freed)} are free again")
    return 0


def _removable(name: str) -> list[LocalModel]:
    if name in PACKAGED_MODELS:
        raise ArgumentError(f"{name} is part of the package; `pip uninstall akunu` removes both")
    owner = local_models.owner_of(name)
    try:
        return local_models.to_remove(fetchable(name))
    except ArgumentError:
        if owner == local_models.OLLAMA:
            tool = f"`ollama rm {name.removeprefix('ollama:')}` removes it"
        elif owner == local_models.LM_STUDIO:
            tool = "LM Studio removes it, under My Models"
        else:
            raise
        raise ArgumentError(
            f"{name} belongs to {owner}, so akunu does not remove it; {tool}"
        ) from None


def _agrees(models: list[LocalModel]) -> bool:
    what = "it" if len(models) == 1 else f"these {len(models)}"
    sys.stderr.write(f"remove {what}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
