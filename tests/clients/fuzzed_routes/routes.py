"""Each route of the served OpenAPI document, with requests that Schemathesis makes up from it."""

from __future__ import annotations

import os

import hypothesis
import pytest
import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

ADDRESS = os.environ["ADDRESS"]
MESSAGES = [{"role": "user", "content": "What is 12 + 7?"}]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
schema = schemathesis.openapi.from_url(f"{ADDRESS}/openapi.json")
OPERATIONS = [each.ok() for each in schema.get_all_operations()]


@schema.hook
def map_body(context, body):
    """Have three of four requests get further than to the first field that is wrong.

    They name the model that is there, have few of the fields, and none that is refused for its
    name alone; half of them have a conversation.
    """
    size = len(repr(body))
    if not isinstance(body, dict) or size % 4 == 0:
        return body
    described = context.operation.body[0].definition["schema"]
    required = described.get("required", ())
    found = {
        name: value
        for index, (name, value) in enumerate(body.items())
        if name in required or (size + index) % 6 == 0
    }
    for name in [*found]:
        note = described["properties"].get(name, {}).get("description", "")
        if note.startswith("Not supported"):
            del found[name]
    if "model" in described["properties"]:
        found["model"] = "ember"
    if size % 4 > 1:
        for name, value in (
            ("messages", MESSAGES),
            ("prompt", "12 +"),
            ("input", "What is 1 + 1?"),
        ):
            if name in described["properties"]:
                found[name] = value
    return found


@pytest.mark.parametrize("mode", [*GenerationMode], ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_route(operation, mode):
    """Each answer is as the document has it, and no mistake of the server's own."""
    if mode.is_negative and not (operation.body or operation.query):
        return  # there is nothing in it that could be wrong

    @hypothesis.settings(
        max_examples=int(os.environ["EXAMPLES"]),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        case.call_and_validate(checks=CHECKS, timeout=60)

    run()


def test_server_afterwards():
    """It lives, and writes as before."""
    assert requests.get(f"{ADDRESS}/health", timeout=60).json() == {"status": "ok"}
    body = {"messages": MESSAGES, "max_tokens": 16}
    answer = requests.post(f"{ADDRESS}/v1/chat/completions", json=body, timeout=60).json()
    assert answer["choices"][0]["message"]["content"].startswith("12 + 7 = 19")
