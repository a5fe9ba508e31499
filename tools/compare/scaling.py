"""Time an engine with 1, 2, 4, ... threads, others in turn with it: a table, and a plot."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from tools.compare.curves import Curve, plot
from tools.compare.engine_process import EngineProcess
from tools.compare.report import replace_between
from tools.compare.speed import Test, measure, parse_test, processor
from tools.results import load


def engines_of(arguments: argparse.Namespace) -> dict[str, tuple[str, str]]:
    """Interpreter and worker of each engine, by the name that tables give it."""
    engines = {"akunu": (sys.executable, "akunu_worker")}
    for text in arguments.beside or []:
        name, found, python = text.partition("=")
        if not found or not name or name in engines:
            raise ValueError(f"--beside takes NAME=PYTHON, each name once, got {text!r}")
        engines[name] = (python, "akunu_worker")
    if arguments.peer:
        engines["llama.cpp"] = (arguments.peer, "llama_cpp_worker")
    return engines


def parse_threads(text: str) -> list[int]:
    """`1,2,4`; ValueError where one is no count, or there twice."""
    if any(not part.isdecimal() or int(part) < 1 for part in text.split(",")):
        raise ValueError(f"--threads takes counts like 1,2,4, got {text!r}")
    threads = [int(part) for part in text.split(",")]
    if len(set(threads)) < len(threads):
        raise ValueError(f"--threads has a count twice: {text!r}")
    return threads


def command_seconds(python: str, model: Path, threads: int, n_prompt: int) -> dict[str, float]:
    """Seconds of each kind of command of a step, alone and of one layer (`akunu profile`)."""
    words = ["profile", model, "-p", n_prompt, "--threads", threads, "--json"]
    done = subprocess.run(
        [python, "-m", "akunu", *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"akunu profile: code {done.returncode}")
    kinds = json.loads(done.stdout)["kinds"]
    return {kind["name"]: kind["seconds"] / kind["count"] for kind in kinds}


@contextmanager
def busy_processors(count: int) -> Iterator[None]:
    """Keep the first `count` processors of this process busy: another program has half of each.

    A machine with cores of two speeds is about that, and one on which others work as well.
    """
    allowed = sorted(os.sched_getaffinity(0)) if count else []
    if count > len(allowed):
        raise ValueError(f"--busy is {count}; this process may use {len(allowed)} processors")
    code = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    spinners = [
        subprocess.Popen([sys.executable, "-c", code, str(processor)])
        for processor in allowed[:count]
    ]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def scale(
    model: Path,
    tests: list[Test],
    *,
    engines: dict[str, tuple[str, str]],
    threads: list[int],
    alternations: int,
    commands: list[int],
    busy: int = 0,
    save: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Run it; the result is what the JSON file holds, and is saved after each number of threads."""
    context = max(test.positions for test in tests)
    points: list[dict[str, Any]] = []
    kinds: list[dict[str, Any]] = []
    systems: dict[str, dict[str, str]] = {}
    result = {
        "model": model.name,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "busy": busy,
        "engines": systems,
        "points": points,
        "commands": kinds,
    }
    for count in threads:
        with ExitStack() as open_engines:
            open_engines.enter_context(busy_processors(busy))
            running = {
                name: open_engines.enter_context(
                    EngineProcess(python, worker, model, context=context, threads=count)
                )
                for name, (python, worker) in engines.items()
            }
            for name, engine in running.items():
                systems[name] = {key: engine.hello[key] for key in ("engine", "version", "system")}
            for test in tests:
                seconds: dict[str, list[float]] = {name: [] for name in running}
                for repetition in range(alternations + 1):  # the first one is for warming up
                    for name, engine in running.items():
                        draw = random.Random(f"{test.name} {repetition}")
                        took = measure(engine, test, draw)
                        if repetition > 0:
                            seconds[name].append(took["seconds"])
                points += [
                    {"engine": name, "threads": count, "test": test.name, "tokens": test.n}
                    | {"seconds": samples}
                    for name, samples in seconds.items()
                ]
        for n_prompt in commands:
            for name, (python, worker) in engines.items():
                if worker == "akunu_worker":
                    alone = command_seconds(python, model, count, n_prompt)
                    kinds.append({"engine": name, "threads": count, "rows": n_prompt or 1} | alone)
        save(result)
    return result


def curves(result: dict[str, Any]) -> list[Curve]:
    """Medians, in tokens a second, by engine and test."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for point in result["points"]:
        rate = point["tokens"] / median(point["seconds"])
        found.setdefault((point["engine"], point["test"]), {})[point["threads"]] = rate
    return [Curve(engine, test, rates) for (engine, test), rates in found.items()]


def markdown(result: dict[str, Any], *, commands: bool = True) -> str:
    """Tables of all tests, and of single commands, with the facts about the machine below them."""
    drawn = curves(result)
    threads = list(dict.fromkeys(point["threads"] for point in result["points"]))
    first = threads[0]
    lines = [
        "| test | engine | " + " | ".join(f"{count} threads" for count in threads) + " |",
        "|---|---|" + "---:|" * len(threads),
    ]
    for curve in sorted(drawn, key=lambda curve: curve.test):
        cells = [
            f"{curve.rates[count]:.4g} ({curve.rates[count] / curve.rates[first]:.2f})"
            for count in threads
        ]
        lines.append(f"| {curve.test} | {curve.engine} | " + " | ".join(cells) + " |")
    lines += ["", f"Tokens a second (in times of {first} threads). {_facts(result)}"]
    if commands and result.get("commands"):
        lines += ["", *_commands(result["commands"], threads)]
    return "\n".join(lines)


def _commands(kinds: list[dict[str, Any]], threads: list[int]) -> list[str]:
    lines = [
        "| rows | command, µs | engine | " + " | ".join(map(str, threads)) + " |",
        "|---|---|---|" + "---:|" * len(threads),
    ]
    cells: dict[tuple[int, str, str], list[str]] = {}
    for kind in kinds:
        for name, seconds in kind.items():
            if name not in ("engine", "threads", "rows"):
                row = cells.setdefault((kind["rows"], name, kind["engine"]), [])
                row.append(f"{seconds * 1e6:.0f}")
    for (rows, name, engine), row in cells.items():
        lines.append(f"| {rows} | {name} | {engine} | " + " | ".join(row) + " |")
    return lines


def _facts(result: dict[str, Any]) -> str:
    systems = "; ".join(
        f"{name} {engine['version']}: `{engine['system']}`"
        for name, engine in result["engines"].items()
    )
    busy = f", {result['busy']} of them kept busy by others" if result.get("busy") else ""
    return (
        f"{result['model']}, {result['processor']}, {result['processors']} processors{busy}, "
        f"{result['date'][:10]}; {systems}."
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a GGUF file, or results that are there already")
    parser.add_argument("--names", default="*/*", help="of results in a CSV: one of them")
    parser.add_argument("--threads", default="1,2,4,8,16", help="(%(default)s)")
    parser.add_argument("--tests", default="pp512,tg32", help="(%(default)s)")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with llama-cpp-python")
    parser.add_argument(
        "--beside", action="append", metavar="NAME=PYTHON", help="another akunu; may be repeated"
    )
    parser.add_argument(
        "--commands", action="store_true", help="single commands of 512 rows and of one as well"
    )
    parser.add_argument(
        "--busy", type=int, default=0, help="processors on which a program spins meanwhile"
    )
    parser.add_argument("-r", "--alternations", type=int, default=5, help="(%(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="JSON file (scaling-MODEL.json, here)")
    parser.add_argument("--plot", type=Path, help="SVG file")
    parser.add_argument("--write", type=Path, help="put the tables into this document")
    parser.add_argument("--table", default="scaling", help="between these marks (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.model.suffix in (".json", ".csv"):
        (result,) = load(arguments.model, arguments.names)
    else:
        if arguments.alternations < 1:
            raise ValueError(f"alternations must be 1 or more, got {arguments.alternations}")
        output = arguments.output or Path(f"scaling-{arguments.model.stem}.json")

        def save(result: dict[str, Any]) -> None:
            output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            count = result["points"][-1]["threads"]
            print(f"{count} threads", file=sys.stderr, flush=True)

        result = scale(
            arguments.model,
            [parse_test(text) for text in arguments.tests.split(",")],
            engines=engines_of(arguments),
            threads=parse_threads(arguments.threads),
            alternations=arguments.alternations,
            commands=[512, 0] if arguments.commands else [],
            busy=arguments.busy,
            save=save,
        )
    if arguments.plot:
        arguments.plot.write_text(plot(curves(result)), encoding="utf-8")
    if arguments.write is None:
        print(markdown(result, commands=arguments.commands))
        return 0
    begin, end = (f"<!-- {arguments.table}: {word} -->" for word in ("begin", "end"))
    page = arguments.write.read_text(encoding="utf-8")
    table = markdown(result, commands=arguments.commands)
    text = replace_between(page, table, begin=begin, end=end)
    arguments.write.write_text(text, encoding="utf-8")
    return 0
