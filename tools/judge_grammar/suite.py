"""The JSON Schema organisation's own tests: Debian's package json-schema-test-suite, or a checkout.

Each group is a schema with instances. Of the groups that are compiled, valid instances must be
accepted, in some order of their properties, and invalid ones refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.judge_grammar.acceptance import Judge
from tools.judge_grammar.maskbench import kind_of

from akunu.grammar import from_schema
from akunu.grammar.errors import SchemaError

DEBIAN = Path("/usr/share/json-schema-test-suite")
"""Where Debian's package puts it."""

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def groups(folder: Path, draft: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every required group of a draft, named by its file."""
    for file in sorted((folder / "tests" / draft).glob("*.json")):
        for group in json.loads(file.read_text(encoding="utf-8")):
            yield file.stem, group


def judged_suite(folder: Path, judge: Judge, every: int = 1) -> dict[str, Any]:
    """Counts for each draft that is there, mismatches by name; of so many groups one."""
    return {
        draft: _judged_draft(list(groups(folder, draft))[::every], uri, judge)
        for draft, uri in DRAFTS.items()
        if (folder / "tests" / draft).is_dir()
    }


def _judged_draft(
    cases: list[tuple[str, dict[str, Any]]], uri: str, judge: Judge
) -> dict[str, Any]:
    refused: Counter[str] = Counter()
    valid_refused: list[str] = []
    invalid_accepted: list[str] = []
    instances = 0
    for file, group in cases:
        schema = group["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": uri, **schema}
        try:
            grammar = from_schema(schema)
        except SchemaError as error:
            nothing_fits = error.reason.startswith("nothing fits")
            if nothing_fits and not any(test["valid"] for test in group["tests"]):
                refused["nothing fits it, and nothing should"] += 1
            else:
                refused[kind_of(error.reason)] += 1
            continue
        for test in group["tests"]:
            instances += 1
            accepted = judge.text_in_order(grammar, test["data"]) is not None
            if accepted != test["valid"]:
                name = f"{file}: {group['description']}: {test['description']}"
                (valid_refused if test["valid"] else invalid_accepted).append(name)
    return {
        "groups": len(cases),
        "compiled": len(cases) - refused.total(),
        "instances_of_compiled": instances,
        "valid_refused": valid_refused,
        "invalid_accepted": invalid_accepted,
        "refused": dict(sorted(refused.items(), key=lambda pair: (-pair[1], pair[0]))),
    }
