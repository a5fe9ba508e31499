"""Serve one file with akunu and with llama.cpp's server: requests a second, how long clients wait.

Both are loaded, and have their turn again and again; beside them, the engines alone do the same
work. Where there are more than two processors, the last one is left to the clients.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from tools.compare.engine_process import EngineProcess
from tools.compare.pairs import ratios, spread
from tools.compare.server_client import Address, Answer, ask, parse_address
from tools.compare.speed import PAUSE_SECONDS, busy_seconds, measure, parse_test, processor

_WORKERS = Path(__file__).parent / "workers"
_PAGE = 256  # positions
_ADDRESS = re.compile(r"(?:serving|listening).*http://([\w.]+:\d+)")
START_SECONDS = 300
SIDES = ("akunu", "peer")


@dataclass(frozen=True, slots=True)
class Work:
    """What each request asks for."""

    n_words: int
    n_tokens: int

    def body(self, draw: random.Random) -> bytes:
        """A request for a chat, whose words are new, so that no cache has its prompt."""
        words = " ".join(draw.choice(WORDS) for _ in range(self.n_words))
        asked = {
            "messages": [{"role": "user", "content": words}],
            "max_tokens": self.n_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return json.dumps(asked).encode()


# Common ones, which are a token each in most vocabularies.
WORDS = (
    "water house people small great place world hand high year light country story example life "
    "paper group music river book car feet body dog family door product black short class wind "
    "question fish area horse problem complete room order fire south piece whole king space hour"
).split()


class ServerProcess:
    """A server of a model, in a process of its own; RuntimeError where it does not begin."""

    def __init__(self, command: Sequence[str], cpus: set[int]) -> None:
        self._log = tempfile.NamedTemporaryFile()  # noqa: SIM115, `close` does
        self._process = subprocess.Popen(
            command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        ends = time.monotonic() + START_SECONDS
        while not (found := _ADDRESS.search(log := Path(self._log.name).read_text())):
            if self._process.poll() is not None or time.monotonic() > ends:
                self.close()
                raise RuntimeError("\n".join(log.strip().splitlines()[-3:]) or f"{command} ended")
            time.sleep(0.05)
        self.address = parse_address(found[1])

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Processor time of the server so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def clients(
    address: Address, bodies: Sequence[bytes], n_clients: int
) -> tuple[float, list[Answer]]:
    """Seconds that all requests took together, and each answer; so many are asked at a time."""
    left = iter(bodies)
    answers: list[Answer] = []

    async def client() -> None:
        for body in left:
            answers.append(await ask(address, body))

    began = time.monotonic()
    await asyncio.gather(*(client() for _ in range(n_clients)))
    return time.monotonic() - began, answers


def check(answers: Sequence[Answer], work: Work) -> int:
    """Tokens of all prompts; ValueError where an answer has not what was asked for."""
    for each in answers:
        if each.completion_tokens != work.n_tokens:
            raise ValueError(f"an answer has {each.completion_tokens} tokens, not {work.n_tokens}")
    return sum(each.prompt_tokens for each in answers)


def akunu_command(model: Path, threads: int, positions: int) -> list[str]:
    """akunu's server, with a cache for so many positions."""
    import akunu

    with akunu.load(model, context=1) as loaded:
        config = loaded.config
    per_position = 4 * config.n_layers * config.n_kv_heads * config.head_dim  # in f16
    options = {"port": 0, "threads": threads, "access-log": "none"}
    options["kv-memory"] = per_position * positions
    return [
        *(sys.executable, "-m", "akunu", "serve", str(model)),
        *(f"--{name}={value}" for name, value in options.items()),
    ]


def peer_command(
    peer: str, binary: str | None, model: Path, threads: int, context: int, slots: int
) -> list[str]:
    """llama.cpp's server with so many slots: the program, or xllamacpp, which has it built in."""
    if binary is None:
        worker = str(_WORKERS / "llama_cpp_server.py")
        return [peer, worker, str(model), str(context), str(threads), str(slots)]
    numbers = {"-c": context, "-np": slots, "-t": threads, "-tb": threads, "--port": 18_080}
    options = [str(each) for pair in numbers.items() for each in pair]
    return [binary, "-m", str(model), *options]


def compare(arguments: argparse.Namespace, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run it; the result is what the JSON file holds."""
    cpus = sorted(os.sched_getaffinity(0))
    for_servers = set(cpus[:-1] if len(cpus) > 2 else cpus)
    widths = [int(each) for each in arguments.clients.split(",")]
    threads = arguments.threads or len(for_servers)
    work = Work(arguments.words, arguments.tokens)
    # With room for the template and for words that are two tokens.
    pages = -(-(2 * work.n_words + 64 + work.n_tokens) // _PAGE)
    most = max(widths)
    result: dict[str, Any] = {
        "model": arguments.model.name,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processor": processor(),
        "processors": len(cpus),
        "threads": threads,
        "work": asdict(work),
        "widths": {width: {side: [] for side in SIDES} for width in widths},
        "engines": {side: [] for side in SIDES},
    }
    commands = {
        "akunu": akunu_command(arguments.model, threads, _PAGE * pages * (most + 1)),
        "peer": peer_command(
            arguments.peer,
            arguments.llama_server,
            arguments.model,
            threads,
            _PAGE * pages * most,
            most,
        ),
    }
    with ExitStack() as stack:
        servers = {
            side: stack.enter_context(ServerProcess(command, for_servers))
            for side, command in commands.items()
        }
        if len(cpus) > 2:
            os.sched_setaffinity(0, {cpus[-1]})
        n_prompt = _warm_up(servers, work)
        result["prompt_tokens"] = n_prompt
        progress(f"{n_prompt} tokens of a prompt, {work.n_tokens} of a reply")
        os.sched_setaffinity(0, cpus)
        engines = {
            side: stack.enter_context(
                EngineProcess(python, worker, arguments.model, context=1024, threads=threads)
            )
            for side, python, worker in (
                ("akunu", sys.executable, "akunu_worker"),
                ("peer", arguments.peer, "llama_cpp_worker"),
            )
        }
        for side, engine in engines.items():
            result[side] = {key: engine.hello[key] for key in ("engine", "version", "system")}
        if len(cpus) > 2:
            os.sched_setaffinity(0, {cpus[-1]})
        for round in range(arguments.rounds):
            _measure_engines(engines, result, n_prompt, round)
            for width in widths:
                for side in SIDES if round % 2 == 0 else SIDES[::-1]:
                    n_requests = max(arguments.requests, width)
                    result["widths"][width][side].append(
                        _measure_server(servers[side], work, width, n_requests, round)
                    )
            result["load"] = os.getloadavg()[1]
            progress(f"{round + 1} of {arguments.rounds} rounds; load {os.getloadavg()[0]:.1f}")
    return result


def _warm_up(servers: dict[str, ServerProcess], work: Work) -> int:
    """Tokens of a prompt; ValueError where the two count differently."""
    body = work.body(random.Random(0))
    counts = {}
    for side, server in servers.items():
        _, answers = asyncio.run(clients(server.address, [body], 1))
        counts[side] = check(answers, work)
    if len(set(counts.values())) > 1:
        raise ValueError(f"the prompts differ: {counts} tokens")
    return counts["akunu"]


def _measure_server(
    server: ServerProcess, work: Work, width: int, n_requests: int, round: int
) -> dict[str, Any]:
    draw = random.Random(f"{width} {round}")  # the same words for both
    bodies = [work.body(draw) for _ in range(n_requests)]
    time.sleep(PAUSE_SECONDS)
    busy, own = busy_seconds(), time.process_time() + server.cpu_seconds()
    seconds, answers = asyncio.run(clients(server.address, bodies, width))
    used = time.process_time() + server.cpu_seconds() - own
    check(answers, work)
    return {
        "per_second": n_requests / seconds,
        "first": [each.first for each in answers],
        "whole": [each.whole for each in answers],
        "others": max(0.0, (busy_seconds() - busy - used) / seconds),
    }


def _measure_engines(
    engines: dict[str, EngineProcess], result: dict[str, Any], n_prompt: int, round: int
) -> None:
    """The seconds of a request without a server: its prompt, and its tokens one by one."""
    tests = [parse_test(f"pp{n_prompt}")]
    if (n_tokens := result["work"]["n_tokens"]) > 1:
        tests.append(parse_test(f"tg{n_tokens - 1}@{n_prompt}"))
    for side in SIDES if round % 2 == 0 else SIDES[::-1]:
        seconds = [
            measure(engines[side], test, random.Random(f"{test.name} {round}"))["seconds"]
            for test in tests
        ]
        result["engines"][side].append(sum(seconds))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so many of all do not exceed.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 0.99)
    (2.0, 4.0)
    """
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def markdown(result: dict[str, Any]) -> str:
    """A table, and what it was measured on."""
    lines = [
        "| clients | akunu, requests/s | llama.cpp, requests/s | ratio | quartiles "
        "| first token p50 / p99, ms | llama.cpp | whole p50 / p99, ms | llama.cpp |",
        "|---:|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    for width, sides in result["widths"].items():
        speeds = {side: [each["per_second"] for each in sides[side]] for side in SIDES}
        found = spread(ratios(speeds["peer"], speeds["akunu"]))
        cells = [str(width), *(f"{median(speeds[side]):.2f}" for side in SIDES)]
        cells += [
            f"{found.median:.3f}",
            f"{found.lower_quartile:.3f} to {found.upper_quartile:.3f}",
        ]
        for key in ("first", "whole"):
            for side in SIDES:
                values = [1000 * value for each in sides[side] for value in each[key]]
                cells.append(f"{percentile(values, 0.5):.0f} / {percentile(values, 0.99):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    engines = spread(ratios(result["engines"]["akunu"], result["engines"]["peer"]))
    others = median(
        each["others"]
        for sides in result["widths"].values()
        for side in SIDES
        for each in sides[side]
    )
    lines += [
        "",
        f"The engines alone, the same prompts and tokens: ratio {engines.median:.3f} "
        f"({engines.lower_quartile:.3f} to {engines.upper_quartile:.3f}).",
        f"{result['model']}, prompts of {result['prompt_tokens']} tokens and replies of "
        f"{result['work']['n_tokens']}; {result['processor']}, {result['processors']} processors, "
        f"{result['threads']} threads, {len(result['engines']['akunu'])} rounds, "
        f"{result['date'][:10]}; akunu {result['akunu']['version']}, {result['peer']['version']}.",
        f"Other processes used {others:.2f} processors; the load was {result['load']:.1f}.",
    ]
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a GGUF file of a chat model")
    parser.add_argument(
        "--peer",
        required=True,
        metavar="PYTHON",
        help="an interpreter with xllamacpp, or with llama-cpp-python beside --llama-server",
    )
    parser.add_argument("--llama-server", metavar="PROGRAM", help="a llama-server of your own")
    parser.add_argument("--clients", default="1,4,16", help="(%(default)s)")
    parser.add_argument(
        "-t",
        "--threads",
        type=int,
        help="of a server (one per processor, less one for the clients where there are more than "
        "two); 1 where others use the machine, too: threads that wait for each other suffer most",
    )
    parser.add_argument("--words", type=int, default=100, help="of a prompt (%(default)s)")
    parser.add_argument("--tokens", type=int, default=48, help="of a reply (%(default)s)")
    parser.add_argument(
        "--requests", type=int, default=8, help="of a measurement, at least (%(default)s)"
    )
    parser.add_argument("-r", "--rounds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="JSON file (servers-MODEL.json, here)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.rounds < 2:
        raise ValueError(f"quartiles need 2 rounds or more, got {arguments.rounds}")
    result = compare(arguments, lambda line: print(line, file=sys.stderr, flush=True))
    output = arguments.output or Path(f"servers-{arguments.model.stem}.json")
    output.write_text(json.dumps(result, indent=1) + "\n")
    print(markdown(result))
    return 0
