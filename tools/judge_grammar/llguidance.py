"""llguidance's own tests: what it says that grammars accept, through akunu's and with its masks.

A schema is compiled by `from_schema`, Lark by `from_rules`. A text that fits must be allowed token
by token and accepted at its end, one that does not must not; what makes no sense must be refused.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tools.judge_grammar.acceptance import Judge

from akunu.errors import ArgumentError
from akunu.grammar import Grammar, from_rules, from_schema


def published(file: Path) -> list[dict[str, Any]]:
    """Every form with what is expected of it."""
    return json.loads(file.read_text(encoding="utf-8"))["tests"]  # type: ignore[no-any-return]


def judged_tests(cases: list[dict[str, Any]], judge: Judge) -> dict[str, Any]:
    """Counts of expectations that are met, and by name those that are not."""
    met: Counter[str] = Counter()
    different: dict[str, list[str]] = {}
    for case in cases:
        for kind, what in _outcomes(case, judge):
            if what is None:
                met[kind] += 1
            else:
                different.setdefault(what, []).append(case["test"])
    return {
        "forms": len(cases),
        "met": dict(sorted(met.items())),
        "different": {
            what: {name: names.count(name) for name in dict.fromkeys(names)}
            for what, names in sorted(different.items())
        },
    }


def _outcomes(case: dict[str, Any], judge: Judge) -> list[tuple[str, str | None]]:
    """Kind of each expectation, and what is different; None: it is met."""
    fits, fails = case.get("fits", []), case.get("fails", [])
    begins = case.get("begins", [])
    try:
        grammar = _compiled(case)
    except ArgumentError as error:
        if "error" in case:
            return [("refused", None)]
        what = f"refused: {str(error).splitlines()[0][:160]}"
        n = len(fits) + len(fails) + len(begins)
        # What accepts nothing accepts nothing of what it must not, either.
        return [("refused", what if fits or begins or not fails else None)] * max(n, 1)
    if "error" in case:
        return [("refused", f"compiled; llguidance: {case['error']}")]
    found: list[tuple[str, str | None]] = []
    if not (fits or fails or begins):
        found.append(("compiled", None))
    for text in map(_text(case), fits):
        accepted = judge.accepts(grammar, text, masks=True)
        found.append(("fits", None if accepted else f"not accepted: {text[:80]!r}"))
    for text in map(_text(case), fails):
        text, is_late = text.removeprefix("FINAL_REJECT:"), text.startswith("FINAL_REJECT:")
        accepted = judge.accepts(grammar, text, masks=True)
        early = is_late and not judge.accepts(grammar, text, masks=True, whole=False)
        wrong = "accepted" if accepted else "refused before its end" if early else None
        found.append(("fails", wrong and f"{wrong}: {text[:80]!r}"))
    for text in begins:
        allowed = judge.accepts(grammar, text, masks=True, whole=False)
        found.append(("begins", None if allowed else f"not allowed: {text[:80]!r}"))
    return found


def _compiled(case: dict[str, Any]) -> Grammar:
    return from_schema(case["schema"]) if "schema" in case else from_rules(case["lark"])


def _text(case: dict[str, Any]) -> Any:
    if "schema" not in case:
        return str
    return lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
