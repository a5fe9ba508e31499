"""`akunu profile`: where the time of one step goes, kernel by kernel."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from akunu import _core
from akunu.cli.loading import load_model, measured_threads, model_path, refuse_encoder
from akunu.cli.measuring.bench_plan import Test, check_positions
from akunu.cli.measuring.operation_counts import OperationCounts, OperationModel
from akunu.cli.measuring.roofline import (
    SHARE_HEADER,
    Limits,
    Share,
    limits_facts,
    limits_line,
    measure_limits,
    share_of,
)
from akunu.cli.terminal.console import UsageError
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import write_rows
from akunu.options.text_options import LoadOptions
from akunu.storage.model_files import open_model_files


@dataclass(frozen=True, slots=True)
class Kind:
    """Commands that do the same in every layer."""

    name: str
    count: int
    seconds: float
    """Time of all of them together."""
    share: Share | None = None
    """The share of the machine's limits that they reach; None if it was not measured, or if they
    have too little work."""

    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        facts = asdict(self)
        return facts | (facts.pop("share") or {})

    def share_cells(self) -> list[str]:
        """Return the cells under `SHARE_HEADER`."""
        return self.share.cells() if self.share else [""] * len(SHARE_HEADER)


def show_profile(
    name: str,
    options: LoadOptions,
    *,
    n_prompt: int,
    depth: int,
    repetitions: int,
    roofline: bool,
    as_json: bool,
) -> int:
    """Write how long each kind of command of one step takes, the longest first."""
    for option, value, least in (("-p", n_prompt, 0), ("-d", depth, 0), ("-r", repetitions, 1)):
        if value < least:
            raise UsageError(f"{option} is {value}; it must be {least} or more")
    path = model_path(name)
    refuse_encoder(path, options, "profile")
    options = measured_threads(path, options)
    step = Test(n_prompt, 0 if n_prompt else 1, depth)
    check_positions(open_model_files(path), [step])
    limits: Limits | None = None
    work: OperationModel | None = None
    if roofline:
        work = _work_model(name, options, step)
        with Progress(lambda: "measuring bandwidth and peak"):
            limits = measure_limits(options)
    with Progress(lambda: f"profiling {path.name}"):
        commands = profile_step(path, options, step, repetitions)
    kinds = by_kind(commands, step, work, limits)
    if as_json:
        facts: dict[str, Any] = {"commands": commands, "kinds": [kind.facts() for kind in kinds]}
        if limits is not None:
            facts["limits"] = limits_facts(limits)
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
            *(kind.share_cells() if roofline else ()),
        ]
        for kind in kinds
    ]
    header = ["command", "count", "µs each", "ms", "share", *(SHARE_HEADER if roofline else ())]
    all_of_them = ["all", str(len(commands)), "", f"{total * 1e3:.3f}", "100.0%"]
    rows.append(all_of_them + [""] * (len(header) - len(all_of_them)))
    write_rows("", header, rows)
    if limits is not None:
        print()
        print(limits_line(limits))
    return 0


def profile_step(
    path: Path, options: LoadOptions, step: Test, repetitions: int
) -> list[dict[str, Any]]:
    """Return the label and the seconds of each command of a step: prompt rows, or one generated."""
    return _core.profile(
        path,
        device=options.device,
        threads=int(options.threads or 0),
        gpus=options.gpus,
        kv_type=options.kv_type,
        n_prompt=step.n_prompt,
        depth=step.n_depth,
        repetitions=repetitions,
    )


def by_kind(
    commands: list[dict[str, Any]],
    step: Test,
    work: OperationModel | None = None,
    limits: Limits | None = None,
) -> list[Kind]:
    """Return the commands, those that differ in their layer only taken together.

    >>> by_kind([{"label": f"layer {i} down", "seconds": 0.5} for i in range(2)], Test(0, 1, 0))
    [Kind(name='down', count=2, seconds=1.0, share=None)]
    """
    times: dict[str, list[float]] = {}
    for command in commands:
        name = re.sub(r"^layer \d+ ", "", command["label"])
        times.setdefault(name, []).append(command["seconds"])
    kinds = []
    for name, seconds in times.items():
        share = None
        if work is not None and limits is not None:
            todo = work.command_work(name, step)
            if todo != OperationCounts():
                share = share_of(todo, limits, sum(seconds))
        kinds.append(Kind(name, len(seconds), sum(seconds), share))
    return sorted(kinds, key=lambda kind: -kind.seconds)


def _work_model(name: str, options: LoadOptions, step: Test) -> OperationModel:
    tensors = open_model_files(model_path(name)).tensors
    with load_model(name, replace(options, context=16)) as model:  # for its shape only
        return OperationModel.of(tensors, model.config, options.kv_type, max(1, step.n_prompt))
