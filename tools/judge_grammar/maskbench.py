"""Schemas from the wild with their instances: what is compiled, and what it accepts.

Each schema is compiled, or refused with a JSON pointer and a reason. Of a compiled one each valid
instance must be accepted and each invalid one refused. The pinned llguidance is asked the same
about the schema as it stands: what it can, akunu must.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llguidance import LLMatcher
from tools.judge_grammar.acceptance import Judge

from akunu.grammar import Grammar, from_schema
from akunu.grammar.errors import SchemaError


@dataclass
class Outcome:
    """What became of one schema."""

    name: str
    refused: str = ""
    """Pointer and reason."""
    reason: str = ""
    llguidance_refuses: bool = False
    reordered: bool = False
    """A valid instance fits only with its properties in the schema's order."""
    valid_refused: int = 0
    llguidance_refuses_them: bool = False
    invalid_accepted: int = 0
    weakened: list[str] = field(default_factory=list)


def schemas(file: Path) -> Iterator[dict[str, Any]]:
    """Every schema: `name`, `schema`, `tests` with `data` and `valid`."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def judged(
    judge: Judge, case: dict[str, Any], *, weaken: bool = False, masks: bool = False
) -> Outcome:
    """One schema and its instances."""
    outcome = Outcome(case["name"])
    plain = Grammar(llguidance=LLMatcher.grammar_from_json_schema(case["schema"]))
    outcome.llguidance_refuses = bool(LLMatcher.validate_grammar(plain.llguidance, None))
    try:
        grammar = from_schema(case["schema"], weaken=weaken)
    except SchemaError as error:
        outcome.refused = str(error)
        outcome.reason = error.reason
        return outcome
    outcome.weakened = [one.pointer for one in grammar.weakened]
    for test in case["tests"]:
        text = json.dumps(test["data"], ensure_ascii=False)
        accepted = judge.accepts(grammar, text, masks=masks and test["valid"])
        if not test["valid"]:
            if grammar.weakened:
                continue  # the finished text is looked at instead
            in_order = None if accepted else judge.text_in_order(grammar, test["data"])
            outcome.invalid_accepted += accepted or in_order is not None
        elif not accepted:
            text = judge.text_in_order(grammar, test["data"]) or text
            if judge.accepts(grammar, text):
                outcome.reordered = True
                continue
            outcome.valid_refused += 1
            outcome.llguidance_refuses_them = outcome.llguidance_refuses or not judge.accepts(
                plain, text
            )
    return outcome


def report(outcomes: list[Outcome], judge: Judge) -> dict[str, Any]:
    """What is committed: counts, and by name what is not as the instances want it."""
    from importlib.metadata import version

    compiled = [one for one in outcomes if not one.refused]
    reasons = Counter(kind_of(one.reason) for one in outcomes if one.refused)
    result: dict[str, Any] = {
        "llguidance": version("llguidance"),
        "schemas": len(outcomes),
        "compiled": len(compiled),
        "right": sum(1 for one in compiled if not (one.valid_refused or one.invalid_accepted)),
        "compiled_where_llguidance_refuses": sum(one.llguidance_refuses for one in compiled),
        "weakened": sum(bool(one.weakened) for one in compiled),
        "refused": len(outcomes) - len(compiled),
        "refused_where_llguidance_compiles": sorted(
            one.name for one in outcomes if one.refused and not one.llguidance_refuses
        ),
        "valid_instances_refused": sorted(
            one.name + ("" if one.llguidance_refuses_them else " (not by llguidance)")
            for one in compiled
            if one.valid_refused
        ),
        "invalid_instances_accepted": sorted(one.name for one in compiled if one.invalid_accepted),
        "valid_in_the_order_of_the_schema": sorted(one.name for one in compiled if one.reordered),
        "reasons": dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        "refused_schemas": {one.name: one.refused[:200] for one in outcomes if one.refused},
    }
    if judge.mask_seconds:
        microseconds = sorted(1e6 * seconds for seconds in judge.mask_seconds)
        result["masks"] = {
            "count": len(microseconds),
            "vocabulary": judge.tokenizer.vocab_size,
            "p50_us": round(statistics.median(microseconds), 1),
            "p99_us": round(microseconds[len(microseconds) * 99 // 100], 1),
        }
    return result


def kind_of(reason: str) -> str:
    """A reason without what is particular to one schema."""
    reason = re.sub(r" \(/.*$", "", reason)
    reason = re.sub(r"^\S+ is not in this schema.*$", "a reference leads out of the schema", reason)
    reason = re.sub(r"alternatives \d+ and \d+", "two alternatives", reason)
    reason = re.sub(r" at character .*$", "", reason)
    reason = re.sub(r"regexes .* are not", "regexes are not", reason)
    reason = re.sub(r"(regex is empty|recursion limit exceeded).*$", r"\1", reason)
    return reason[:120]
