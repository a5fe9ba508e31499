"""`akunu profile`: where the time of a step goes, kernel by kernel."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass
from typing import Any

from akunu import _core
from akunu.cli.console import UsageError
from akunu.cli.loading import model_path
from akunu.cli.progress import Progress
from akunu.cli.tables import write_rows
from akunu.options import LoadOptions


@dataclass(frozen=True, slots=True)
class Kind:
    """Commands that do the same in every layer."""

    name: str
    count: int
    seconds: float
    """Of all of them together."""


def show_profile(
    name: str,
    options: LoadOptions,
    *,
    n_prompt: int,
    depth: int,
    repetitions: int,
    as_json: bool,
) -> int:
    """Write how long each kind of command of one step takes, the longest first."""
    for option, value, least in (("-p", n_prompt, 0), ("-d", depth, 0), ("-r", repetitions, 1)):
        if value < least:
            raise UsageError(f"{option} must be {least} or more, got {value}")
    path = model_path(name)
    with Progress(lambda: f"profiling {path.name}"):
        commands = _core.profile(
            path,
            device=options.device,
            threads=options.threads or 0,
            kv_type=options.kv_type,
            n_prompt=n_prompt,
            depth=depth,
            repetitions=repetitions,
        )
    kinds = by_kind(commands)
    if as_json:
        facts = {"commands": commands, "kinds": [asdict(kind) for kind in kinds]}
        json.dump(facts, sys.stdout, indent=2)
        print()
        return 0
    total = sum(kind.seconds for kind in kinds)
    rows = [
        [
            kind.name,
            str(kind.count),
            f"{kind.seconds / kind.count * 1e6:.1f}",
            f"{kind.seconds * 1e3:.3f}",
            f"{kind.seconds / total:.1%}",
        ]
        for kind in kinds
    ]
    rows.append(["all", str(len(commands)), "", f"{total * 1e3:.3f}", "100.0%"])
    write_rows("", ["command", "count", "µs each", "ms", "share"], rows)
    return 0


def by_kind(commands: list[dict[str, Any]]) -> list[Kind]:
    """Return the commands, those that differ in their layer only taken together.

    >>> by_kind([{"label": f"layer {i} down", "seconds": 0.5} for i in range(2)])
    [Kind(name='down', count=2, seconds=1.0)]
    """
    seconds: dict[str, list[float]] = {}
    for command in commands:
        name = re.sub(r"^layer \d+ ", "", command["label"])
        seconds.setdefault(name, []).append(command["seconds"])
    kinds = [Kind(name, len(times), sum(times)) for name, times in seconds.items()]
    return sorted(kinds, key=lambda kind: -kind.seconds)
