"""`akunu bench --texts`: how a model serves texts of real words, alone and side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import akunu
from akunu.cli.commands.devices import device_of
from akunu.cli.loading import load_model, measured_threads, model_path
from akunu.cli.measuring import bench_plan
from akunu.cli.measuring.text_run import LENGTHS, Case, TextBench
from akunu.cli.options import load_options
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import write_rows
from akunu.common.checks import in_words
from akunu.errors import ArgumentError
from akunu.model_facts import ModelConfig
from akunu.options.load_options import kv_bytes
from akunu.options.text_options import LoadOptions

_PAGE = 256  # positions of a page of the KV cache
_SPEEDS = ("prompt_tokens_per_second", "reply_tokens_per_second", "all_tokens_per_second")
_HEADER = ("prompts", "first token, ms", "", "", "between, ms", "", "", "prompt", "reply", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTextsCommand:
    """What the command line asked for; lists as they were typed."""

    model: str
    prompts: str | None
    side_by_side: Sequence[str] | None
    reply_tokens: int
    rounds: int
    threads: int | Literal["auto"] | None
    device: str
    kv_type: str
    json: bool
    compare: Path | None

    def run(self) -> int:
        """Measure every case, and write the table or the JSON."""
        for option, value, least in (("-n", self.reply_tokens, 2), ("-r", self.rounds, 1)):
            if value < least:
                raise console.UsageError(f"{option} is {value}; it must be {least} or more")
        baseline = _read(self.compare) if self.compare else None
        path = model_path(self.model)
        asked = load_options(device=self.device, threads=self.threads, kv_type=self.kv_type)
        threads = measured_threads(path, asked).threads
        config = _config(path, replace(asked, threads=threads))
        cases = self._cases(config.context_length)
        longest = max(case.prompt_tokens for case in cases) + self.reply_tokens
        widest = max(case.side_by_side for case in cases)
        options = load_options(
            device=self.device, context=longest, threads=threads, kv_type=self.kv_type
        )
        # Room for all of them; and no prompt is to find another one in the cache.
        options = replace(
            options,
            kv_memory=_cache_bytes(config, self.kv_type, longest) * widest,
            prefix_cache=False,
        )
        found: list[dict[str, Any]] = []
        state = ""
        with load_model(self.model, options) as model, Progress(lambda: state):
            bench = TextBench(model, self.reply_tokens)
            for case in cases:
                state = case.name
                found.append(bench.measure(case, self.rounds))
        device = device_of(self.device)
        facts = {
            "akunu": akunu.__version__,
            "model": path.name,
            "device": str(device["name"]),
            "level": str(device["level"]),
            "threads": threads or int(str(device["workers"])),
            "kv_type": self.kv_type,
            "cases": found,
        }
        if self.json:
            console.write(json.dumps(facts, indent=2))
        else:
            write_rows("", _HEADER, [_row(each) for each in found])
        if baseline is not None:
            _write_comparison(facts, baseline)
        return 0

    def _cases(self, positions: int) -> list[Case]:
        names = list(LENGTHS)
        if self.prompts is not None:
            names = [name.strip() for name in self.prompts.split(",")]
        kept = []
        for name in names:
            if name not in LENGTHS:
                raise console.UsageError(
                    f"--prompts has {name!r}; it may have {in_words(tuple(LENGTHS), 'and')}"
                )
            needed = LENGTHS[name] + self.reply_tokens
            if needed <= positions:
                kept.append(name)
                continue
            why = f"a prompt and its reply take {needed} positions; the model has "
            if self.prompts is not None or name == names[0]:
                raise console.UsageError(f"{name} prompts: {why}{positions}")
            console.say(f"akunu: {name} prompts are left out: {why}{positions}")
        widths = [1, 4, 16]
        if self.side_by_side is not None:
            widths = bench_plan.numbers(
                "--side-by-side", self.side_by_side, 1, lowest=1, highest=64
            )
        return [Case(name, LENGTHS[name], width) for name in kept for width in widths]


def _config(path: Path, options: LoadOptions) -> ModelConfig:
    with akunu.load(path, device=options.device, context=1, threads=options.threads) as model:
        return model.config


def _cache_bytes(config: ModelConfig, kv_type: str, positions: int) -> int:
    """Return the bytes of the cache that a text of this many positions takes, in whole pages."""
    pages = -(-(positions + 1) // _PAGE)
    return pages * _PAGE * config.n_layers * kv_bytes(kv_type, config.cache_dim)


def _row(case: dict[str, Any]) -> tuple[str, ...]:
    first, between = case["first_token_ms"], case["between_tokens_ms"]
    milliseconds = [f"{values[name]:.1f}" for values in (first, between) for name in values]
    return (case["case"], *milliseconds, *(f"{case[name]:.1f}" for name in _SPEEDS))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        {case["case"] for case in found["cases"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(
            f"--compare {path}: this is not JSON from `akunu bench --texts -o json` ({error})"
        ) from None
    return dict(found)


def _write_comparison(facts: dict[str, Any], baseline: dict[str, Any]) -> None:
    """Say how fast it is in times of the baseline, and what is not alike."""
    unlike = [
        name
        for name in ("model", "device", "level", "threads")
        if facts[name] != baseline.get(name)
    ]
    for name in unlike:
        console.say(f"akunu: {name} was {baseline.get(name)!r}, and is {facts[name]!r}")
    before = {case["case"]: case for case in baseline["cases"]}
    rows = []
    for case in facts["cases"]:
        old = before.get(case["case"])
        if old is None:
            console.say(f"akunu: {case['case']} is not in the baseline")
            continue
        first = old["first_token_ms"]["p50"] / case["first_token_ms"]["p50"]
        rows.append((case["case"], f"{first:.3f}", *(f"{case[n] / old[n]:.3f}" for n in _SPEEDS)))
    text = ["", "times as fast as the baseline: first token (p50), prompt, reply, all"]
    console.say("\n".join([*text, *("  ".join(row) for row in rows)]))
