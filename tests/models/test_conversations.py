"""Conversations at random: each reply is what its request gives alone, from a cold cache."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import GPUS, chunked, finished, random_chunks, settle, start
from random_models import ModelCase

import akunu
from arithmetic import available_levels

Cases = Callable[..., ModelCase]

PAGE = 256  # positions
CONTEXT = 3 * PAGE
N_CONVERSATIONS = 4  # of a session, side by side and in turns


@dataclass
class Ask:
    """A request, and what came of it."""

    prompt: list[int]
    n: int
    sampling: dict[str, Any]
    priority: int
    text: list[int] = field(default_factory=list)
    is_whole: bool = True  # it was not cancelled


@contextmanager
def opened(path: Path, device: str, **options: Any) -> Iterator[Any]:
    """The model, with a context of three pages."""
    with akunu.load(path, device=device, context=CONTEXT, threads=1, **options) as model:
        yield model


class Session:
    """Some conversations with a model that has a cache of little more than one of them needs."""

    def __init__(self, case: ModelCase, device: str, seed: int, kv_memory: int) -> None:
        """The same seed gives the same requests; when they meet is up to the machine."""
        self._case = case
        self._device = device
        self._kv_memory = kv_memory
        self._random = random.Random(seed)
        self._instructions = self._tokens(self._random.choice([3, 100, 255, 256, 300]))
        self._conversations = [self._begun() for _ in range(N_CONVERSATIONS)]
        self.asked: list[Ask] = []
        self.logits: list[tuple[list[int], Any]] = []

    def _tokens(self, n: int) -> list[int]:
        return [self._random.randrange(self._case.spec.vocab_size) for _ in range(n)]

    def _begun(self) -> list[int]:
        """A conversation's first tokens; many begin with the same instructions."""
        return list(self._instructions) if self._random.random() < 0.7 else []

    def run(self, n_turns: int) -> None:
        """Run so many turns, each of one or several conversations at once."""
        loads = 0
        while n_turns > 0:
            loads += 1
            # The model is loaded again now and then.
            n_until_close = min(n_turns, self._random.choice([2, 5, 8]))
            n_turns -= n_until_close
            with opened(self._case.path, self._device, kv_memory=self._kv_memory) as model:
                for _ in range(n_until_close):
                    self._turn(model)

    def _turn(self, model: Any) -> None:
        n = self._random.choice([1, 1, 2, 3])
        places = self._random.sample(range(N_CONVERSATIONS), n)
        asks = [self._ask(place) for place in places]
        under_way = [
            start(model, ask.prompt, ask.n, priority=ask.priority, **ask.sampling) for ask in asks
        ]
        self._disturb(model, asks[0].prompt)
        for place, ask, generation in zip(places, asks, under_way, strict=True):
            if self._random.random() < 0.2:
                ask.text = generation.next(timeout_ms=self._random.choice([0, 1, 5, 1000])) or []
                generation.cancel()
                ask.is_whole = False
                finished(generation)
            else:
                ask.text = finished(generation)
            self.asked.append(ask)
            self._conversations[place] = self._continued(ask)
        if self._random.random() < 0.4:
            settle(model)
        if self._random.random() < 0.3:
            tokens = self._conversations[places[0]]
            self.logits.append((tokens, model.logits(tokens, last=1)[0]))

    def _ask(self, place: int) -> Ask:
        tokens = self._conversations[place]
        n_new = self._random.choice([1, 2, 15, 17, 60, 130])
        n = self._random.choice([1, 3, 10, 20, 40, 90])
        if len(tokens) + n_new + n > CONTEXT:
            tokens = self._begun()
        temperature = self._random.choice([0.0, 1.5])
        return Ask(
            [*tokens, *self._tokens(n_new)],
            n,
            {"temperature": temperature, "seed": self._random.randrange(1000)},
            self._random.choice([0, 0, 1, -1]),
        )

    def _disturb(self, model: Any, prompt: list[int]) -> None:
        """Have tokens of a text run beside it: as a prompt in odd pieces, or as generated ones."""
        if self._random.random() < 0.3:
            role = self._random.choice(["prompt", "generated"])
            tokens = [*prompt[: self._random.randrange(1, 60)], *self._tokens(5)]
            chunked(model, tokens, random_chunks(len(tokens), 16, seed=1), role)

    def _continued(self, ask: Ask) -> list[int]:
        """The conversation behind a reply, or behind what a template made of it."""
        tokens = [*ask.prompt, *ask.text]
        if self._random.random() < 0.2:
            tokens = tokens[: -self._random.randrange(1, 8)]
        return tokens or self._tokens(1)


def held(case: ModelCase, device: str, seeds: range, n_turns: int) -> int:
    """Hold sessions to what requests give alone; how many replies there were."""
    n_replies = 0
    with opened(case.path, device) as model:
        one_context = model.memory["cache"]
    with opened(case.path, device, prefix_cache=False) as cold:
        for seed in seeds:
            session = Session(case, device, seed, one_context + seed % 2 * one_context // 3)
            session.run(n_turns)
            for ask in session.asked:
                expected = finished(start(cold, ask.prompt, ask.n, **ask.sampling))
                if not ask.is_whole:
                    expected = expected[: len(ask.text)]
                assert ask.text == expected, f"seed {seed}, a prompt of {len(ask.prompt)}"
            for tokens, logits in session.logits:
                np.testing.assert_array_equal(
                    logits, cold.logits(tokens, last=1)[0], err_msg=f"seed {seed}"
                )
            n_replies += len(session.asked)
    return n_replies


# Everything seen by all layers, or windows of 37 positions in most of them.
MODELS = [("llama-32", "q8_0"), ("gemma3", "f16")]


@pytest.mark.parametrize(("kind", "weight_format"), MODELS)
def test_replies_are_those_of_a_cold_cache(
    model_case: Cases, kind: str, weight_format: str
) -> None:
    """At the best level of this machine, where prompts have an arithmetic of their own if any."""
    assert held(model_case(kind, weight_format), "cpu", range(3), 8) > 30


@pytest.mark.slow
@pytest.mark.parametrize("level", available_levels())
@pytest.mark.parametrize(("kind", "weight_format"), MODELS)
def test_replies_of_a_thousand_conversations_are_those_of_a_cold_cache(
    model_case: Cases,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    weight_format: str,
    level: str,
) -> None:
    """For each of two models, at every level of this machine."""
    case = model_case(kind, weight_format)
    monkeypatch.setenv("AKUNU_CPU_ISA", level)
    assert held(case, "cpu", range(100, 100 + 1000 // N_CONVERSATIONS), 8) > 2000


@pytest.mark.slow
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("kind", "weight_format"), MODELS)
def test_replies_on_a_gpu_are_those_of_a_cold_cache(
    model_case: Cases, gpu: str, kind: str, weight_format: str
) -> None:
    assert held(model_case(kind, weight_format), gpu, range(2), 4) > 6
