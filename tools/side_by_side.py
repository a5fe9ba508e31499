"""What texts side by side are worth, and what a long prompt costs a short one beside it.

    python -m tools.side_by_side MODEL.gguf ... [--rounds 7] [--long 4096] [-o results.json]

All widths run in turn, so many rounds, and medians are compared: tokens a second of 8, 16 and 32
texts in times of one; the share of a step that is outside of its commands, each timed alone (the
scheduler, and what joins the threads between commands); how long a short prompt waits for its first
token alone and beside a long one; and the longest gap between tokens of a text beside that long
prompt, which is the longest mixed step. rounds_in_time: the share of rounds in which the short one
waited no longer than alone and two such steps.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import akunu
from akunu import _core
from akunu.cli.commands.profile import profile_step
from akunu.cli.measuring.bench_plan import Test
from akunu.options.text_options import LoadOptions, SamplingOptions

WIDTHS = (1, 8, 16, 32)
TOKENS = 48  # of each text
SHORT = 20  # tokens of a short prompt
PAGE = 256


class Measuring:
    """A model with room for all of the texts, and requests of random tokens."""

    def __init__(self, path: Path, long: int) -> None:
        with akunu.load(path, context=1) as model:
            config = model.config
        per_position = 4 * config.n_layers * config.n_kv_heads * config.head_dim  # in f16
        positions = PAGE * (max(WIDTHS) + 3) + PAGE * (-(-long // PAGE) + 2)
        self.model = akunu.load(
            path,
            context=long + PAGE,
            kv_memory=per_position * positions,
            prefix_cache=False,
        )
        self._random = random.Random(1)

    def start(self, n_prompt: int, n_tokens: int) -> _core.Generation:
        """Have the engine begin a text of exactly so many tokens."""
        tokens = [self._random.randrange(256, 4096) for _ in range(n_prompt)]
        return self.model._open().start(
            np.array(tokens, dtype=np.uint32),
            max_tokens=n_tokens,
            stop_ids=[],
            sampling=SamplingOptions().packed(seed=0),
            logit_bias={},
        )

    def tokens_per_second(self, width: int) -> float:
        """Return the speed of all together, from when the last has its first token."""
        texts = [self.start(SHORT, TOKENS) for _ in range(width)]
        for text in texts:
            finish(text)
        begin = max(text.prompt_seconds for text in texts)
        end = max(text.prompt_seconds + text.completion_seconds(TOKENS) for text in texts)
        return width * (TOKENS - 1) / (end - begin)

    def short_alone(self) -> float:
        """Return the seconds to the first token of a short prompt."""
        return finish(self.start(SHORT, 1)).prompt_seconds

    def beside_long(self, long: int) -> tuple[float, float]:
        """Return these seconds beside a long prompt, and the longest mixed step."""
        text = self.start(SHORT, 10_000)
        text.next()
        before = text.completion_tokens
        prompt = self.start(long, 1)
        while prompt.prompt_tokens_done < long // 4:
            time.sleep(0.001)
        short = finish(self.start(SHORT, 1))
        finish(prompt)
        after = text.completion_tokens
        text.cancel()
        times = [text.completion_seconds(n) for n in range(before, after + 1)]
        return short.prompt_seconds, max(later - earlier for earlier, later in pairwise(times))


def finish(generation: _core.Generation) -> _core.Generation:
    """Take all of a text."""
    while generation.next() is not None:
        pass
    return generation


def measured(path: Path, rounds: int, long: int) -> dict[str, Any]:
    """Return the medians of a model."""
    measuring = Measuring(path, long)
    speeds: dict[int, list[float]] = {width: [] for width in WIDTHS}
    alone, beside, steps = [], [], []
    try:
        for _ in range(rounds + 1):  # the first one warms up
            for width, found in speeds.items():
                found.append(measuring.tokens_per_second(width))
            alone.append(measuring.short_alone())
            waited, longest = measuring.beside_long(long)
            beside.append(waited)
            steps.append(longest)
    finally:
        measuring.model.close()
    speed = {width: statistics.median(found[1:]) for width, found in speeds.items()}
    options = LoadOptions(context=PAGE)
    commands = profile_step(path, options, Test(0, 1, SHORT + TOKENS // 2), rounds)
    inside = sum(command["seconds"] for command in commands)
    return {
        "model": path.name,
        "tokens_per_second": speed,
        "times_one": {width: speed[width] / speed[1] for width in WIDTHS[1:]},
        "outside_of_commands": 1 - inside * speed[1],
        "short_alone_ms": 1e3 * statistics.median(alone[1:]),
        "short_beside_ms": 1e3 * statistics.median(beside[1:]),
        "longest_mixed_step_ms": 1e3 * statistics.median(steps[1:]),
        "rounds_in_time": sum(
            wait <= own + 2 * step
            for wait, own, step in zip(beside[1:], alone[1:], steps[1:], strict=True)
        )
        / rounds,
    }


def main() -> None:
    """Measure each model, and write what came out as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--long", type=int, default=4096, help="tokens of the long prompt")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    results = [measured(path, arguments.rounds, arguments.long) for path in arguments.models]
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.output is not None:
        arguments.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
