"""Time whole transcriptions beside faster-whisper, one window at a time and batched.

Both hear the same file, each in a process of its own, in turns: what else the machine does meets
them alike. At temperature 0 alone, so that no text is drawn again and chance has no part. Batched,
both leave out timestamps, as faster-whisper does when nothing else is said.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tools.compare.engine_process import EngineProcess
from tools.compare.pairs import ratios
from tools.compare.speed import PAUSE_SECONDS, processor

TITLES = {
    "greedy": "one window at a time, greedy",
    "beams": "one window at a time, five beams",
    "batched": "batched, five beams, no timestamps",
}


@dataclass(slots=True)
class Measured:
    """Of one engine and one mode: seconds, and seconds of processors, of each turn."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    n_words: int = 0


Found = dict[str, dict[str, Measured]]
"""What was measured, by mode and engine; akunu is the first one."""


def compare(
    engines: dict[str, EngineProcess],
    audio: Path,
    modes: list[str],
    *,
    turns: int,
    progress: Callable[[str], None],
) -> Found:
    """Have every engine hear the file in every mode, in turns."""
    found: Found = {mode: {name: Measured() for name in engines} for mode in modes}
    for turn in range(turns):
        for mode in modes:
            for name, engine in engines.items():
                time.sleep(PAUSE_SECONDS)
                answer = engine.ask({"mode": mode, "path": str(audio)})
                each = found[mode][name]
                each.wall.append(answer["seconds"])
                each.cpu.append(answer["cpu_seconds"])
                each.n_words = len(answer["text"].split())
        progress(f"{turn + 1} of {turns} turns")
    return found


def markdown(found: Found) -> str:
    """A table; the last columns say how many times as long an engine took as the first one."""
    lines = ["| mode | engine | words | s | processor s | times | processor times |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    for mode, by_engine in found.items():
        ours = next(iter(by_engine.values()))
        for name, each in by_engine.items():
            wall, cpu = median(each.wall), median(each.cpu)
            longer = median(ratios(ours.wall, each.wall))
            busier = median(ratios(ours.cpu, each.cpu))
            lines.append(
                f"| {TITLES[mode]} | {name} | {each.n_words} | {wall:.2f} | {cpu:.2f} "
                f"| {longer:.2f} | {busier:.2f} |"
            )
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a Whisper model that akunu reads")
    parser.add_argument("audio", type=Path, help="a WAV of English speech at 16 kHz")
    parser.add_argument("--peer-model", type=Path, required=True, help="the same for CTranslate2")
    parser.add_argument(
        "--peer",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter with faster-whisper",
    )
    parser.add_argument("--modes", default=",".join(TITLES), help="which (%(default)s)")
    parser.add_argument("--batch", type=int, default=6, help="windows at a time (%(default)s)")
    parser.add_argument("-t", "--threads", type=int, default=2, help="(%(default)s)")
    parser.add_argument("-r", "--turns", type=int, default=5, help="(%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    modes = [each for each in arguments.modes.split(",") if each]
    if unknown := sorted(set(modes) - set(TITLES)):
        raise ValueError(f"--modes are of {', '.join(TITLES)}, got {', '.join(unknown)}")
    for name in ("turns", "threads", "batch"):
        if (value := getattr(arguments, name)) < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
    wanted = {
        "akunu": (sys.executable, "speech_akunu", arguments.model),
        "faster-whisper": (arguments.peer, "speech_faster_whisper", arguments.peer_model),
    }
    with ExitStack() as opened:
        engines = {}
        for name, (python, worker, model) in wanted.items():
            process = EngineProcess(
                python, worker, model, context=arguments.batch, threads=arguments.threads
            )
            engines[name] = opened.enter_context(process)
        found = compare(
            engines,
            arguments.audio,
            modes,
            turns=arguments.turns,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
        versions = [each.hello["version"] for each in engines.values()]
    print(f"{processor()}, {arguments.threads} threads, medians of {arguments.turns} turns.\n")
    for version in versions:
        print(f"- {version}")
    print(f"\n{markdown(found)}")
    return 0
