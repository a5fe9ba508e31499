"""What Python costs while texts are streamed: its share of a step of the engine.

    python -m tools.serving_cost MODEL.gguf [--streams 16] [--tokens 200] [--rounds 3]

`akunu serve` in a process of its own, so many streams at once, and processor time by thread: the
event loop's is Python's (uvicorn, FastAPI, JSON, text of tokens), the others' the engine's. A step
takes as long as each of the engine's threads is busy in it. What other processes do meanwhile
changes this little: it is no wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
from pathlib import Path
from statistics import median

from tools.compare.servers import ServerProcess, Work, akunu_command, clients


def thread_seconds(process: int) -> tuple[float, float]:
    """Processor time so far: of the main thread, and of all others together."""
    main = others = 0.0
    for task in Path(f"/proc/{process}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if int(task.name) == process:
            main = seconds
        else:
            others += seconds
    return main, others


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.serving_cost")
    parser.add_argument("model", type=Path)
    parser.add_argument("--streams", type=int, default=16, help="(%(default)s)")
    parser.add_argument("--tokens", type=int, default=200, help="of each text (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    arguments = parser.parse_args()
    cpus = os.sched_getaffinity(0)
    work = Work(n_words=10, n_tokens=arguments.tokens)
    command = akunu_command(arguments.model, len(cpus), (arguments.streams + 1) * 512)
    shares, costs = [], []
    with ServerProcess(command, cpus) as server:
        draw = random.Random(1)
        asyncio.run(clients(server.address, [work.body(draw)], 1))
        for _ in range(arguments.rounds):
            bodies = [work.body(draw) for _ in range(arguments.streams)]
            before = thread_seconds(server.process_id)
            asyncio.run(clients(server.address, bodies, arguments.streams))
            after = thread_seconds(server.process_id)
            python, engine = (now - then for now, then in zip(after, before, strict=True))
            shares.append(python / (engine / len(cpus)))
            costs.append(1e6 * python / arguments.tokens)
    result = {
        "streams": arguments.streams,
        "microseconds_per_step": round(median(costs)),
        "microseconds_per_token": round(median(costs) / arguments.streams, 1),
        "share_of_step": round(median(shares), 4),
        "shares": [round(share, 4) for share in shares],
        "load": os.getloadavg()[0],
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
