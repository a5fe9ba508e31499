"""Random requests to models with recurrent layers, side by side: each text is that of alone.

Prompts begin alike and go on from replies, in a cache that holds some of them; texts are drafted,
cancelled in the middle, saved and restored.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import dense_golden
import head_models
import numpy as np
import pytest
from dense_golden import VOCAB
from engine import finished, start

import akunu

SIDE_BY_SIDE = 6
CONTEXT = 512
# Replies have few tokens to choose from and repeat themselves, so that there is something to draft.
FEW = dict.fromkeys(range(6, VOCAB), -np.inf)
CUTS = (1, 2, 40, 255, 256, 257, 300)


class Alone:
    """What a request gives in a model of its own, whose cache keeps nothing; asked for once."""

    def __init__(self, model: akunu.Model) -> None:
        self._model = model
        self._known: dict[Any, list[int]] = {}

    def reply(self, prompt: tuple[int, ...], options: dict[str, Any]) -> list[int]:
        key = (prompt, *sorted(options.items()))
        if key not in self._known:
            self._known[key] = finished(start(self._model, list(prompt), logit_bias=FEW, **options))
        return self._known[key]


def run_requests(folder: Path, seed: int, n_requests: int, **options: Any) -> dict[str, int]:
    """Return how often what happened. `options`: of the model beside the one that keeps nothing."""
    draw = random.Random(seed)
    stems = [[draw.randrange(6, VOCAB) for _ in range(300)] for _ in range(3)]
    tails = [[draw.randrange(6, VOCAB) for _ in range(draw.randint(1, 9))] for _ in range(4)]
    happened = dict.fromkeys(("ended", "cancelled", "taken over", "drafted", "restored"), 0)
    saved: dict[tuple[int, ...], Any] = {}
    last: list[tuple[int, ...]] = []  # texts that ended or came back
    running: list[tuple[Any, tuple[int, ...], dict[str, Any]]] = []
    with (
        akunu.load(folder, context=CONTEXT, prefix_cache=False, threads=1) as cold,
        # Of nine places of states, and six pages: texts drive one another out.
        akunu.load(folder, context=CONTEXT, threads=2, **options) as model,
    ):
        alone = Alone(cold)

        def prompt() -> tuple[int, ...]:
            if last and draw.random() < 0.4:  # a conversation goes on
                begin = last.pop()
                if len(begin) < CONTEXT - 100:
                    return (*begin, *draw.choice(tails))
            return (*draw.choice(stems)[: draw.choice(CUTS)], *draw.choice(tails))

        def end(place: int) -> None:
            generation, given, options = running.pop(place)
            if draw.random() < 0.15:
                generation.cancel()
                happened["cancelled"] += 1
                return
            got = finished(generation)
            assert got == alone.reply(given, options), (given, options)
            last.append((*given, *got))
            happened["ended"] += 1
            happened["taken over"] += generation.cached_tokens > 0
            happened["drafted"] += generation.drafted_tokens > 0

        for _ in range(n_requests):
            given = prompt()
            if draw.random() < 0.1:
                tokens = np.array(given, np.uint32)
                if given not in saved:
                    saved[given] = model._native.save_positions(tokens)
                happened["restored"] += model._native.restore_positions(
                    tokens, *saved[given]
                ) == len(given)
                last.append(given)
                continue
            asked: dict[str, Any] = {
                "n": draw.choice([1, 8, 24]),
                "temperature": draw.choice([0.0, 1.0]),
                "seed": draw.randrange(2),
            }
            drafts = draw.choice([{}, {"speculation": 1}, {"speculation": 4}])
            running.append(
                (start(model, list(given), logit_bias=FEW, **asked, **drafts), given, asked)
            )
            if len(running) == SIDE_BY_SIDE:
                end(draw.randrange(SIDE_BY_SIDE))
        while running:
            end(0)
        assert model._native.wait_until_idle(timeout_ms=60_000)
        assert all(group.in_use == 0 for group in model.occupancy.cache)
    return happened


@pytest.fixture(params=["falcon-h1", "granitehybrid", "kimi-linear", "mamba2", "qwen35"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load(request.param))


def test_random_requests_are_those_alone(folder: Path) -> None:
    happened = run_requests(folder, 1, 150)
    assert min(happened.values()) > 0, happened


def test_a_prediction_head_changes_none(tmp_path: Path) -> None:
    folder = head_models.write(tmp_path / "model", "qwen35", 0.02)
    happened = run_requests(folder, 3, 150, prediction_head=True)
    assert min(happened.values()) > 0, happened


@pytest.mark.slow
def test_10000_random_requests_are_those_alone(tmp_path: Path) -> None:
    folder = dense_golden.write(tmp_path / "model", dense_golden.load("qwen35"))
    happened = run_requests(folder, 2, 10_000)
    assert min(happened.values()) > 100, happened
