"""Texts that a model writes under schemas from the wild: complete, and valid by another judge.

A text that `max_tokens` cuts is incomplete; every complete one must be valid by `jsonschema`, for
the schema as it was published. The grammars are those of `from_schema(schema, brief=True)`, with
DRY sampling, as the page on structured output advises for small models; `is_brief=False` leaves
the bounds away.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from jsonschema.validators import Draft202012Validator, validator_for
from tools.judge_grammar.maskbench import schemas

import akunu
from akunu.grammar import Grammar, from_schema
from akunu.grammar.errors import SchemaError

MAX_TOKENS = 1900
CONTEXT = 2048
SAMPLING: dict[str, Any] = {"temperature": 0.8, "dry_multiplier": 0.8}
SIDE_BY_SIDE = 16


def generated(
    model: str,
    file: Path,
    n: int,
    seeds: int,
    *,
    is_brief: bool = True,
    progress: Path | None = None,
) -> dict[str, Any]:
    """`n` schemas that compile, each with `seeds` seeds: how many texts end, how many are valid.

    `progress`: a file that gets a line of JSON for each text as soon as it is written.
    """
    cases = spread(list(schemas(file)), n, is_brief=is_brief)
    with akunu.load(model, context=CONTEXT) as loaded:
        judged = asyncio.run(_judged(loaded, cases, seeds, progress))
    by_verdict: dict[str, list[str]] = {"complete": [], "incomplete": [], "invalid": []}
    failed: dict[str, str] = {}
    for name, verdict, reason in judged:
        if verdict == "failed":
            failed[name] = reason
        else:
            by_verdict[verdict].append(f"{name}: {reason}" if reason else name)
    n_complete = len(by_verdict["complete"]) + len(by_verdict["invalid"])
    return {
        "model": Path(model).name,
        "brief": is_brief,
        "max_tokens": MAX_TOKENS,
        "sampling": SAMPLING,
        "schemas": len(cases),
        "texts": len(judged),
        "complete": n_complete,
        "share_complete": round(n_complete / max(len(judged), 1), 3),
        "invalid": by_verdict["invalid"],
        "incomplete": by_verdict["incomplete"],
        "failed": failed,
    }


Case = tuple[str, Any, Grammar]


def spread(published: list[dict[str, Any]], n: int, *, is_brief: bool) -> list[Case]:
    """`n` schemas that compile, evenly from all of them: name, schema and grammar."""
    compiled: list[Case] = []
    for case in published:
        try:
            grammar = from_schema(case["schema"], brief=is_brief)
        except SchemaError:
            continue
        compiled.append((case["name"], case["schema"], grammar))
    n = min(n, len(compiled))
    return [compiled[i * len(compiled) // n] for i in range(n)]


async def _judged(
    model: akunu.Model, cases: list[Case], seeds: int, progress: Path | None
) -> list[tuple[str, str, str]]:
    """Of each text its name, a verdict and a reason; many are written side by side."""
    places = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(case: Case, seed: int) -> tuple[str, str, str]:
        name, schema, grammar = case
        async with places:
            verdict, reason, text = await _verdict(model, schema, grammar, seed)
        name = f"{name} (seed {seed})"
        if progress is not None:
            with progress.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([name, verdict, reason, text], ensure_ascii=False) + "\n")
        return name, verdict, reason

    return await asyncio.gather(*(one(case, seed) for case in cases for seed in range(seeds)))


async def _verdict(
    model: akunu.Model, schema: Any, grammar: Grammar, seed: int
) -> tuple[str, str, str]:
    prompt = f"A JSON value, as short as possible, for {_title(schema)}:\n"
    try:
        reply = await model.generate_async(
            prompt, grammar=grammar, max_tokens=MAX_TOKENS, seed=seed, **SAMPLING
        )
    except akunu.AkunuError as error:
        return "failed", str(error)[:200], ""
    if reply.finish_reason == "length":
        return "incomplete", "", reply.text
    try:
        errors = [error.message for error in _validator(schema).iter_errors(json.loads(reply.text))]
    except ValueError as error:
        errors = [str(error)]
    return ("invalid", errors[0][:120], reply.text) if errors else ("complete", "", reply.text)


def _validator(schema: Any) -> Any:
    return validator_for(schema, default=Draft202012Validator)(schema)


def _title(schema: Any) -> str:
    title = schema.get("title") or schema.get("description") if isinstance(schema, dict) else None
    return f'"{title[:100]}"' if isinstance(title, str) and title else "this schema"
