"""Finished texts against the schema of their grammar: what a weakened one let through."""

from __future__ import annotations

import json
import re
from itertools import islice

from akunu.errors import AkunuError


def schema_mistakes(schema: str, text: str) -> tuple[str, ...]:
    """What a text does against a schema, both as JSON; at most ten mistakes.

    Raises AkunuError for a pattern that Python's `re` cannot read.
    """
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        value = json.loads(text)
    except ValueError as error:
        return (f"the text is not JSON: {error}",)
    whole = json.loads(schema)
    validator = validator_for(whole, default=Draft202012Validator)(whole)
    found = []
    try:
        for mistake in islice(validator.iter_errors(value), 10):
            place = "".join(f"/{key}" for key in mistake.absolute_path)
            found.append(f"{place or 'at its root'}: {mistake.message[:300]}")
    except re.error as error:
        raise AkunuError(
            f"the package jsonschema cannot read a pattern of the schema: {error}"
        ) from error
    return tuple(found)
