"""Measuring texts side by side: how long until the first token, and how fast the others come."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from akunu import _core
from akunu.cli.measuring.bench_run import begin_text
from akunu.model import Model
from akunu.text.batches import generate_all
from akunu.text.encode import Prompt
from akunu.text.reply_decoder import ReplyDecoder

# Tokens of a prompt: a question, a page, a chapter.
LENGTHS = {"short": 32, "medium": 256, "long": 2048}


@dataclass(frozen=True, slots=True)
class Case:
    """This many prompts of one length at a time."""

    length: str
    prompt_tokens: int
    side_by_side: int

    @property
    def name(self) -> str:
        """What tables call it.

        >>> Case("long", 2048, 4).name
        'long x 4'
        """
        return f"{self.length} x {self.side_by_side}"


def percentiles(values: list[float]) -> dict[str, float]:
    """Return the 50th, 90th and 99th percentile.

    >>> percentiles([1.0, 2.0, 3.0])["p50"]
    2.0
    """
    found = np.percentile(np.array(values), (50, 90, 99))
    return {name: float(value) for name, value in zip(("p50", "p90", "p99"), found, strict=True)}


class TextBench:
    """Runs cases on a model; every prompt is another part of the package's own source text."""

    def __init__(self, model: Model, reply_tokens: int) -> None:
        """Each text gets as many tokens, whether or not the model would end it."""
        self._model = model
        self._native = model._open()
        self._reply_tokens = reply_tokens
        folder = files("akunu")
        names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".py"))
        texts = [(folder / name).read_text(encoding="utf-8") for name in names]
        self._tokens = model.tokenizer.encode("\n".join(texts), add_special=False)
        self._n_prompts = 0

    def measure(self, case: Case, rounds: int) -> dict[str, Any]:
        """Return what `rounds` rounds took, after one of a single token for warming up."""
        self._round(case, 1)
        first: list[float] = []
        gaps: list[float] = []
        prompt_speeds, reply_speeds, all_speeds = [], [], []
        for _ in range(rounds):
            began = time.perf_counter()
            generations = self._round(case, self._reply_tokens)
            seconds = time.perf_counter() - began
            waited = [each.prompt_seconds for each in generations]
            first += waited
            for each in generations:
                times = [each.completion_seconds(n + 1) for n in range(self._reply_tokens)]
                gaps += [later - earlier for earlier, later in pairwise(times)]
            n_texts = case.side_by_side
            prompt_speeds.append(n_texts * case.prompt_tokens / max(waited))
            reply = [each.completion_seconds(self._reply_tokens) for each in generations]
            reply_speeds += [(self._reply_tokens - 1) / each for each in reply if each > 0]
            all_speeds.append(n_texts * self._reply_tokens / seconds)
        return {
            "case": case.name,
            "prompt_tokens": case.prompt_tokens,
            "reply_tokens": self._reply_tokens,
            "side_by_side": case.side_by_side,
            "rounds": rounds,
            "first_token_ms": percentiles([1e3 * each for each in first]),
            "between_tokens_ms": percentiles([1e3 * each for each in gaps]),
            "prompt_tokens_per_second": float(np.median(prompt_speeds)),
            "reply_tokens_per_second": float(np.median(reply_speeds)),
            "all_tokens_per_second": float(np.median(all_speeds)),
        }

    def _round(self, case: Case, n_tokens: int) -> list[_core.Generation]:
        prompts = [self._prompt(case.prompt_tokens) for _ in range(case.side_by_side)]
        generations: list[_core.Generation] = []
        generate_all("text", prompts, partial(self._begin, n_tokens, generations))
        return generations

    def _begin(
        self, n_tokens: int, generations: list[_core.Generation], prompt: Prompt
    ) -> ReplyDecoder:
        generation = begin_text(self._native, prompt.tokens, n_tokens)
        generations.append(generation)
        return ReplyDecoder(generation, self._model.tokenizer, prompt.tokens.tolist())

    def _prompt(self, n_tokens: int) -> Prompt:
        """Return a part of the text that begins where no other prompt did."""
        begin = (self._n_prompts * 997) % len(self._tokens)
        self._n_prompts += 1
        rolled = self._tokens[begin:] + self._tokens[:begin]
        while len(rolled) < n_tokens:
            rolled += rolled
        return Prompt(np.array(rolled[:n_tokens], dtype=np.uint32))
