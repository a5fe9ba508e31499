"""Texts that a model writes under schemas from the wild: complete, and valid by another judge.

A text that `max_tokens` cuts is incomplete; every complete one must be valid by `jsonschema`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema.validators import Draft202012Validator, validator_for
from tools.judge_grammar.maskbench import schemas

import akunu
from akunu.grammar import from_schema
from akunu.grammar.errors import SchemaError

MAX_TOKENS = 1024
# Small models seldom come to an end by themselves: what was said often becomes less likely, what
# ends a text or a list more.
SAMPLING: dict[str, Any] = {
    "temperature": 0.8,
    "frequency_penalty": 0.4,
    "penalty_window": MAX_TOKENS,
}
_ENDING_BIAS = 4.0


def generated(model: str, file: Path, n: int, seeds: int) -> dict[str, Any]:
    """`n` schemas that compile, each with `seeds` seeds: how many texts end, how many are valid."""
    complete, texts = 0, 0
    incomplete: list[str] = []
    invalid: list[str] = []
    failed: dict[str, str] = {}
    with akunu.load(model, context=2 * MAX_TOKENS) as loaded:
        bias = _ending(loaded.tokenizer)
        for case in spread(file, n):
            validator = _validator(case["schema"])
            prompt = f"A JSON value, as short as possible, for {_title(case['schema'])}:\n"
            for seed in range(seeds):
                name = f"{case['name']} (seed {seed})"
                texts += 1
                try:
                    reply = loaded.generate(
                        prompt,
                        schema=case["schema"],
                        max_tokens=MAX_TOKENS,
                        seed=seed,
                        logit_bias=bias,
                        **SAMPLING,
                    )
                except akunu.AkunuError as error:
                    failed[name] = str(error)[:200]
                    continue
                if reply.finish_reason == "length":
                    incomplete.append(name)
                    continue
                complete += 1
                try:
                    errors = [
                        error.message for error in validator.iter_errors(json.loads(reply.text))
                    ]
                except ValueError as error:
                    errors = [str(error)]
                if errors:
                    invalid.append(f"{name}: {errors[0][:120]}")
    return {
        "model": Path(model).name,
        "texts": texts,
        "complete": complete,
        "share_complete": round(complete / max(texts, 1), 3),
        "invalid": invalid,
        "incomplete": incomplete,
        "failed": failed,
    }


def spread(file: Path, n: int) -> list[dict[str, Any]]:
    """`n` schemas that compile, evenly from the whole file."""
    compiled = []
    for case in schemas(file):
        try:
            from_schema(case["schema"])
        except SchemaError:
            continue
        compiled.append(case)
    n = min(n, len(compiled))
    return [compiled[i * len(compiled) // n] for i in range(n)]


def _ending(tokenizer: akunu.Tokenizer) -> dict[int, float]:
    """Tokens that end a text, an object or a list, and what they gain."""
    endings = {token: tokenizer.token_text(token) for token in range(tokenizer.vocab_size)}
    return {
        token: _ENDING_BIAS
        for token, text in endings.items()
        if text.strip() and set(text.strip()) <= set('"}]')
    }


def _validator(schema: Any) -> Any:
    return validator_for(schema, default=Draft202012Validator)(schema)


def _title(schema: Any) -> str:
    title = schema.get("title") or schema.get("description") if isinstance(schema, dict) else None
    return f'"{title[:100]}"' if isinstance(title, str) and title else "this schema"
