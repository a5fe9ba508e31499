"""What grammars cost: time of a mask, and speed of a text with masks beside one without.

Times are those of the thread that computes, so that other work of the machine does not count;
speeds are wall clock, the best of several runs in turn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tools.judge_grammar.maskbench import schemas

import akunu
from akunu.errors import AkunuError
from akunu.grammar import from_schema
from akunu.grammar.vocabulary import constraint_of, grammar_vocabulary

_MOST_TOKENS = 500  # of an instance
_FORCED = 15  # as the engine asks for, kMaxFewRows - 1
_ANY_TEXT = r"(?s:.{1000,2000})"
_LARGE = ("pattern", "patternProperties")
_RUNS = 7


def cost(model: str, file: Path, n: int) -> dict[str, Any]:
    """Measure masks along valid instances of `n` schemas, and the speed of texts."""
    with akunu.load(model, context=1024) as loaded:
        masks = _masks(loaded, file, n)
        return {"model": loaded.config.name, "masks": masks, "speed": _speed(loaded)}


def _masks(model: akunu.Model, file: Path, n: int) -> dict[str, Any]:
    tokenizer, n_logits = model.tokenizer, model.config.vocab_size
    vocabulary = grammar_vocabulary(tokenizer, n_logits)
    compiled, first, accepted = [], [], []
    later: dict[bool, list[float]] = {True: [], False: []}
    cases = list(schemas(file))
    for case in cases[:: max(1, len(cases) // n)]:
        try:
            grammar = from_schema(case["schema"], weaken=True)
        except AkunuError:
            continue
        has_pattern = any(f'"{each}"' in json.dumps(case["schema"]) for each in _LARGE)
        valid = [each["data"] for each in case["tests"] if each["valid"]]
        if not valid:
            continue
        started = time.thread_time()
        constraint = constraint_of(vocabulary, grammar)
        compiled.append(time.thread_time() - started)
        tokens = tokenizer.encode(json.dumps(valid[0], ensure_ascii=False), add_special=False)
        for index, token in enumerate(tokens[:_MOST_TOKENS]):
            started = time.thread_time()
            if not constraint.forced(_FORCED):
                mask = constraint.fill([], n_logits)
                taken = time.thread_time() - started
                (first if index == 0 else later[has_pattern]).append(taken)
                if not mask[0][token // 32] >> token % 32 & 1:
                    break
            started = time.thread_time()
            if not constraint.accept(token):
                break
            accepted.append(time.thread_time() - started)
    return {
        "compiling": _microseconds(compiled),
        "first of a text": _microseconds(first),
        "others": _microseconds(later[False]),
        "others, of schemas with patterns": _microseconds(later[True]),
        "accepting a token": _microseconds(accepted),
    }


def _microseconds(times: Sequence[float]) -> dict[str, float]:
    if not times:
        return {"n": 0}
    parts = np.percentile(times, [50, 99, 100]) * 1e6
    median, p99, most = (round(float(each), 1) for each in parts)
    return {"n": len(times), "median": median, "p99": p99, "most": most}


def _speed(model: akunu.Model) -> dict[str, float]:
    """Tokens a second of a text that may be anything, with and without masks."""
    forms: dict[str, dict[str, Any]] = {"free": {}, "with masks": {"regex": _ANY_TEXT}}
    best = dict.fromkeys(forms, 0.0)
    for _ in range(_RUNS):
        for name, form in forms.items():
            with model.generate(
                "Once upon a time", max_tokens=120, ignore_eos=True, stream=True, **form
            ) as stream:
                for _ in stream:
                    pass
            reply = stream.completion
            speed = (len(reply.token_ids) - 1) / reply.completion_seconds
            best[name] = max(best[name], speed)
    return {**best, "ratio": best["with masks"] / best["free"]}
