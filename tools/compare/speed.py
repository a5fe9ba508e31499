"""Time prompts and single tokens on both engines, one after the other, again and again."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tools.compare import report
from tools.compare.engine_process import EngineProcess

PAUSE_SECONDS = 0.2  # in which the threads of one engine fall asleep before the other's turn
PEERS = {"llama.cpp": "llama_cpp_worker", "openvino": "openvino_worker"}
ATTEMPTS = 5  # to find a text that the model does not end by itself


@dataclass(frozen=True, slots=True)
class Test:
    """`n` tokens of a prompt ("pp"), or one by one ("tg") behind `depth` tokens."""

    kind: str
    n: int
    depth: int = 0

    @property
    def name(self) -> str:
        """The name as llama-bench prints it."""
        return f"{self.kind}{self.n}" + (f" @ d{self.depth}" if self.depth else "")

    @property
    def tokens_before(self) -> int:
        """How many tokens a request hands over."""
        return self.n if self.kind == "pp" else max(self.depth, 1)

    @property
    def positions(self) -> int:
        return self.n + 1 if self.kind == "pp" else self.tokens_before + self.n + 1


def parse_test(text: str) -> Test:
    """`pp512`, `tg64`, or `tg64@2048` for 64 tokens behind 2048; else ValueError."""
    match = re.fullmatch(r"(pp|tg)([1-9]\d*)(?:@d?([1-9]\d*))?", text)
    if match is None or (match[1] == "pp" and match[3]):
        raise ValueError(f"expected tests like pp512, tg64 or tg64@2048, got {text!r}")
    return Test(match[1], int(match[2]), int(match[3] or 0))


def busy_seconds() -> float:
    """Processor time that all processes of the machine have used so far."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def processor() -> str:
    """The processor's name."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


# What llama.cpp must not have been built with beside a level that does without.
BEYOND_LEVEL = {
    "avx2": ("AVX512", "AVX_VNNI", "AMX_INT8"),
    "avxvnni": ("AVX512", "AMX_INT8"),
    "avx512": ("AMX_INT8",),
}


def check_instructions(akunu_system: str, peer_system: str) -> None:
    """ValueError where llama.cpp may use instructions that akunu's level does not have."""
    level = re.match(r"instruction set level (\w+)", akunu_system)
    beyond = BEYOND_LEVEL.get(level[1], ()) if level else ()
    found = [name for name in beyond if re.search(rf"\b{name} = 1\b", peer_system)]
    if level and found:
        raise ValueError(
            f"llama.cpp is built with {' and '.join(found)}, which akunu does without at level "
            f"{level[1]}: build it for that level (with --no-cache-dir, or pip may install the "
            "wheel of an earlier build)"
        )


def measure(engine: EngineProcess, test: Test, draw: random.Random) -> dict[str, float]:
    """One measurement: seconds, and how many processors others kept busy meanwhile."""
    vocab_size = engine.hello["vocab_size"]
    for _ in range(ATTEMPTS):
        tokens = [draw.randrange(vocab_size) for _ in range(test.tokens_before)]
        time.sleep(PAUSE_SECONDS)
        busy, wall = busy_seconds(), time.monotonic()
        answer = engine.ask({"kind": test.kind, "n": test.n, "tokens": tokens})
        if answer["complete"]:
            others = busy_seconds() - busy - answer["cpu_seconds"]
            elapsed = time.monotonic() - wall
            return {"seconds": answer["seconds"], "others": max(0.0, others / elapsed)}
    raise RuntimeError(
        f"{test.name}: the model ended its text in each of {ATTEMPTS} attempts; "
        "ask for fewer tokens or take another model"
    )


def compare(
    model: Path,
    tests: list[Test],
    *,
    peer: str,
    peer_worker: str = PEERS["llama.cpp"],
    threads: int,
    alternations: int,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Run it; the result is what the JSON file holds."""
    context = max(test.positions for test in tests)
    result: dict[str, Any] = {
        "model": model.name,
        "model_bytes": model.stat().st_size,
        "threads": threads,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "tests": [],
    }
    with ExitStack() as open_engines:
        engines = {}
        for side, python, worker in (
            ("akunu", sys.executable, "akunu_worker"),
            ("peer", peer, peer_worker),
        ):
            engine = EngineProcess(python, worker, model, context=context, threads=threads)
            engines[side] = open_engines.enter_context(engine)
            result[side] = {key: engine.hello[key] for key in ("engine", "version", "system")}
            progress(
                f"{result[side]['engine']} {result[side]['version']}: {result[side]['system']}"
            )
        check_instructions(result["akunu"]["system"], result["peer"]["system"])
        measured: dict[str, dict[str, list[dict[str, float]]]] = {
            test.name: {"akunu": [], "peer": []} for test in tests
        }
        for repetition in range(alternations + 1):  # the first one is for warming up
            for test in tests:
                for side, engine in engines.items():
                    # New tokens each time, so that nothing is found in a cache of prefixes; the
                    # same for both engines.
                    draw = random.Random(f"{test.name} {repetition}")
                    took = measure(engine, test, draw)
                    if repetition > 0:
                        measured[test.name][side].append(took)
            progress(f"{repetition} of {alternations} alternations")
    for test in tests:
        result["tests"].append(
            {
                "name": test.name,
                "tokens": test.n,
                **{
                    f"{side}_{key}": [each[key] for each in samples]
                    for side, samples in measured[test.name].items()
                    for key in ("seconds", "others")
                },
            }
        )
    return result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a GGUF file")
    parser.add_argument(
        "--peer", required=True, metavar="PYTHON", help="an interpreter with llama-cpp-python"
    )
    parser.add_argument(
        "--peer-engine",
        choices=PEERS,
        default="llama.cpp",
        help="which engine it has; openvino: OpenVINO GenAI (%(default)s)",
    )
    parser.add_argument(
        "--tests", default="pp512,tg64", help="e.g. pp512,tg64,tg64@2048 (%(default)s)"
    )
    parser.add_argument(
        "-t", "--threads", type=int, default=len(os.sched_getaffinity(0)), help="(%(default)s)"
    )
    parser.add_argument(
        "-r", "--alternations", type=int, default=7, help="pairs of measurements (%(default)s)"
    )
    parser.add_argument("-o", "--output", type=Path, help="JSON file (compare-MODEL.json, here)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.alternations < 2:
        raise ValueError(f"quartiles need 2 alternations or more, got {arguments.alternations}")
    if arguments.threads < 1:
        raise ValueError(f"threads must be 1 or more, got {arguments.threads}")
    result = compare(
        arguments.model,
        [parse_test(text) for text in arguments.tests.split(",")],
        peer=arguments.peer,
        peer_worker=PEERS[arguments.peer_engine],
        threads=arguments.threads,
        alternations=arguments.alternations,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    output = arguments.output or Path(f"compare-{arguments.model.stem}.json")
    output.write_text(json.dumps(result, indent=1) + "\n")
    print(report.markdown([result]))
    return 0
