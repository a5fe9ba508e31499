"""`akunu plan`: what a model takes to run here, before it is downloaded or loaded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from akunu.cli.commands.devices import device_of
from akunu.cli.loading import measured_threads
from akunu.cli.measuring.bench_plan import Test
from akunu.cli.measuring.operation_counts import OperationModel
from akunu.cli.measuring.roofline import measure_limits
from akunu.cli.model_file import format_totals, parameter_count, short_count
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import bytes_text, write_facts
from akunu.cli.wording import counted
from akunu.errors import AkunuError, ArgumentError
from akunu.hub import address as addresses
from akunu.hub import find, repository
from akunu.hub.load_check import headers_only, named
from akunu.hub.names import Address, RepoName
from akunu.loading import find_model, load_either
from akunu.model import Model
from akunu.options.option_checks import AUTO
from akunu.options.text_options import LoadOptions
from akunu.speech.model import SpeechModel
from akunu.storage.disk_cache import bytes_per_token, kept_of, tokens_in
from akunu.storage.model_files import ModelFiles, open_model_files


@dataclass(frozen=True, slots=True)
class Target:
    """A file to plan with: a model that is here, or the outline of one that is not."""

    path: Path
    shown: str
    facts: dict[str, Any]
    """Where it is and what was chosen, for JSON."""


def show_plan(name: str, options: LoadOptions, *, with_speed: bool, as_json: bool) -> int:
    """Write what a model would take to stdout; return 1 where it would not load, else 0."""
    with _target(name) as target:
        facts = _facts(target, options, with_speed)
    if as_json:
        json.dump(facts, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
        print()
    else:
        _write(facts)
    if "error" in facts:
        if not as_json:
            console.complain(facts["error"])
        return console.EXIT_ERROR
    return 0


@contextmanager
def _target(name: str) -> Iterator[Target]:
    """Yield the file of a model if it is here, else an outline from what its header says."""
    with ExitStack() as stack:
        try:
            path = find_model(name, local_only=True)
            target = Target(path, name, {"name": name, "path": str(path), "download_bytes": 0})
        except ArgumentError:
            meant = find.meaning(name)
            if not isinstance(meant, (RepoName, Address)):
                raise
            target = stack.enter_context(_remote_target(name, meant))
        yield target


@contextmanager
def _remote_target(name: str, meant: RepoName | Address) -> Iterator[Target]:
    with ExitStack() as stack:
        with Progress(lambda: f"asking for the header of {name}"):
            if isinstance(meant, Address):
                parts = addresses.look_up(meant)
                shown = parts[0].path.name
                facts = {"name": name, "download_bytes": sum(part.size for part in parts)}
                readers = addresses.readers(parts)
            else:
                remote = repository.look_up(meant)
                model = remote.choice.candidate
                if model.is_whisper_cpp and not remote.is_here():
                    raise ArgumentError(
                        f"{remote.shown} is not on this machine, and files of whisper.cpp have no "
                        f"table of tensors to plan with: `akunu pull {name}` downloads it"
                    )
                shown = remote.shown
                facts = {
                    "name": shown,
                    "file": model.name,
                    "chosen": remote.choice.reason,
                    "commit": remote.commit,
                    "download_bytes": remote.missing_bytes(),
                }
                readers = remote.parts()
            path = stack.enter_context(headers_only(readers, shown))
        yield Target(path, shown, facts)


def _facts(target: Target, options: LoadOptions, with_speed: bool) -> dict[str, Any]:
    facts = dict(target.facts)
    facts["available_bytes"] = device_of(options.device)["available_bytes"]

    def run() -> None:
        file = open_model_files(target.path)
        facts["file_bytes"] = sum(Path(part).stat().st_size for part in file.parts)
        facts["parts"] = len(file.parts)
        facts["parameters"] = parameter_count(file.tensors)
        facts["formats"] = format_totals(file.tensors)
        # Memory hardly depends on the threads, and a measurement reads all weights.
        chosen = replace(options, threads=None) if options.threads == AUTO else options
        with load_either(target.path, replace(chosen, cache_dir=None)) as model:
            facts.update(_load_facts(model))
            if isinstance(model, Model):
                facts["disk_cache"] = _disk_facts(model, options, is_here="path" in facts)
            if with_speed and isinstance(model, Model):  # of speech, no token reads all weights
                facts["speed"] = _speed(file, model, measured_threads(target.path, options))

    with Progress(lambda: f"planning {target.shown}"):
        try:
            named(run, target.path, target.shown)
        except AkunuError as error:
            facts["error"] = str(error)
    return facts


def _load_facts(model: Model | SpeechModel) -> dict[str, Any]:
    native = model._open()
    return {
        "architecture": native.config["architecture"],
        "trained_context": native.config["context_length"],
        "context": native.context,
        "memory_bytes": dict(model.memory),
        "notes": list(model.notes),
    }


def _disk_facts(model: Model, options: LoadOptions, *, is_here: bool) -> dict[str, Any] | None:
    """Return what prefixes on the disk take; None for a model that keeps none there."""
    native = model._open()
    token_bytes = bytes_per_token(native)
    if token_bytes is None or options.prediction_head:
        return None
    facts: dict[str, Any] = {
        "bytes_per_token": token_bytes,
        "most_bytes": options.cache_size,
        "most_tokens": tokens_in(options.cache_size, token_bytes, native.state_bytes),
    }
    if native.state_bytes:
        facts["bytes_of_states"] = native.state_bytes
    if options.cache_dir is not None:
        folder = Path(options.cache_dir).expanduser().absolute()
        facts["folder"] = str(folder)
        if is_here:  # an outline has no bytes to know the model by
            kept = kept_of(model, folder)
            facts |= {"files": kept.files, "bytes": kept.bytes}
    return facts


def _speed(file: ModelFiles, model: Model, options: LoadOptions) -> dict[str, float]:
    """Return how fast text can come at most: each token reads all weights once."""
    rows = device_of(options.device)["max_prompt_rows"]
    work = OperationModel.of(file.tensors, model.config, options.kv_type, rows)
    limits = measure_limits(options)

    def most(depth: int) -> float:
        return 1 / max(limits.seconds(work.work(Test(0, 1, depth))))

    return {
        "read_gb_per_s": limits.read_bytes_per_second / 1e9,
        "tokens_per_second_at_most": most(0),
        "tokens_per_second_at_most_when_full": most(model.context - 1),
    }


def _write(facts: dict[str, Any]) -> None:
    write_facts("model", list(_model_lines(facts)))
    if "memory_bytes" not in facts:
        return
    memory = [(label, bytes_text(size)) for label, size in facts["memory_bytes"].items()]
    available = facts["available_bytes"]  # None where the system does not tell
    memory.append(("available here", "unknown" if available is None else bytes_text(available)))
    notes = [("note", note) for note in facts["notes"]]
    write_facts(f"memory at a context of {facts['context']} tokens", memory + notes)
    if facts.get("disk_cache"):
        write_facts(
            "prefixes on the disk, with --cache-dir", list(_disk_lines(facts["disk_cache"]))
        )
    if "speed" in facts:
        speed = facts["speed"]
        write_facts(
            "speed, at most",
            [
                ("memory reads", f"{speed['read_gb_per_s']:.1f} GB/s, measured"),
                ("tokens per second", _rate(speed["tokens_per_second_at_most"])),
                (
                    "with a full context",
                    _rate(speed["tokens_per_second_at_most_when_full"]),
                ),
            ],
        )


def _model_lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    def line(label: str, key: str, show: Callable[[Any], str] = str) -> Iterator[tuple[str, str]]:
        if key in facts:
            yield label, show(facts[key])

    yield from line("name", "name")
    yield from line("file", "path")
    yield from line("file", "file")
    yield from line("chosen", "chosen")
    yield from line("size", "file_bytes", bytes_text)
    to_come = facts["download_bytes"]
    yield "to download", bytes_text(to_come) if to_come else "nothing: it is here"
    yield from line("architecture", "architecture")
    yield from line("parameters", "parameters", short_count)
    if "formats" in facts:
        yield "formats", ", ".join(each["format"] for each in facts["formats"])
    yield from line("trained context", "trained_context")


def _disk_lines(disk: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "folder" in disk:
        yield "folder", disk["folder"]
    if "files" in disk:
        yield "there now", f"{bytes_text(disk['bytes'])} in {counted(disk['files'], 'file')}"
    yield "a token", bytes_text(disk["bytes_per_token"])
    if "bytes_of_states" in disk:
        yield "states", f"{bytes_text(disk['bytes_of_states'])} of each state to resume from"
    held = f"{disk['most_tokens']:,} tokens" if disk["most_tokens"] else "too little for a piece"
    yield "at most", f"{bytes_text(disk['most_bytes'])}: {held}"


def _rate(tokens_per_second: float) -> str:
    digits = 1 if tokens_per_second < 20 else 0
    return f"{tokens_per_second:.{digits}f}"
