"""Whatever a text is asked for, drafts change none of its bytes: alone, in company, and served."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from ember_adapter import write_adapter

import akunu
from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "server"))  # running_server

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
PROMPT = "user\nSay it again: one two three four five, one two three four five.\nassistant\n"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
SAMPLED = {"temperature": 0.8, "seed": 4}
# What a text is asked for, as `generate` takes it.
KINDS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": SAMPLED,
    "penalties": {**SAMPLED, "repetition_penalty": 1.2, "frequency_penalty": 0.1},
    "schema": {"schema": SCHEMA},
    "schema-sampled": {**SAMPLED, "schema": SCHEMA},
    "regex": {"regex": "(one |two |three ){10,30}", **SAMPLED},
    "stop": {"stop": ["four", "zzz"]},
    "logprobs": {"logprobs": 3, **SAMPLED},
    "adapter": {"adapters": "odd", **SAMPLED},
}
# What a request to the server asks for.
REQUESTS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "sampled": SAMPLED,
    "penalties": {**SAMPLED, "frequency_penalty": 0.4},
    "schema": {
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "it", "schema": SCHEMA, "strict": True},
        },
    },
    "tools": {"temperature": 0, "tools": [TOOL], "tool_choice": "required"},
    "stop": {"temperature": 0, "stop": ["four"]},
    "logprobs": {**SAMPLED, "logprobs": True, "top_logprobs": 2},
    "adapter": {**SAMPLED, "model": "ember:odd"},
}
SPECULATIONS = ("auto", 4, 15)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An adapter, and a draft model that mostly says what Ember says."""
    folder = tmp_path_factory.mktemp("speculation")
    adapter = write_adapter(folder / "odd.gguf")
    draft = folder / "draft.gguf"
    command = [sys.executable, "-m", "akunu", "quantize", str(EMBER), str(draft), "Q4_0"]
    subprocess.run([*command, "--allow-requantize"], check=True, capture_output=True)
    return {"adapter": adapter, "draft": draft}


@pytest.fixture(scope="module", params=["n-gram", "draft-model"])
def source(request: pytest.FixtureRequest) -> str:
    """Where drafts come from."""
    return str(request.param)


@pytest.fixture(scope="module")
def model(source: str, files: dict[str, Path]) -> Iterator[Any]:
    draft = files["draft"] if source == "draft-model" else None
    with akunu.load(
        "ember", context=512, threads=1, adapters={"odd": files["adapter"]}, draft=draft
    ) as model:
        yield model


def said(text: Any) -> tuple[Any, ...]:
    return (str(text), text.token_ids, text.finish_reason, text.logprobs)


@each_line("kind", KINDS)
def test_alone(model: Any, source: str, kind: str) -> None:
    options = {"max_tokens": 60, **KINDS[kind]}
    expected = model.generate(PROMPT, speculation="off", **options)
    assert expected.drafted_tokens == 0
    n_drafted = 0
    for speculation in SPECULATIONS:
        found = model.generate(PROMPT, speculation=speculation, **options)
        assert said(found) == said(expected)
        n_drafted += found.drafted_tokens
        stream = model.generate(PROMPT, stream=True, speculation=speculation, **options)
        assert "".join(stream) == expected
    if source == "draft-model":
        assert n_drafted > 0


def test_in_company(model: Any) -> None:
    prompts = [PROMPT, "The sea ", "user\nWhat is a cat?\nassistant\n"]
    jobs = list(itertools.product(KINDS, prompts))
    expected = [
        said(model.generate(prompt, max_tokens=40, speculation="off", **KINDS[kind]))
        for kind, prompt in jobs
    ]
    choices = itertools.cycle(("off", *SPECULATIONS))
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [
            pool.submit(
                model.generate, prompt, max_tokens=40, speculation=next(choices), **KINDS[kind]
            )
            for kind, prompt in jobs
        ]
        assert [said(each.result()) for each in running] == expected


def test_a_tool_call(model: Any) -> None:
    messages = [{"role": "user", "content": "What is 12 + 7?"}]
    options: dict[str, Any] = {"tools": [TOOL], "tool_choice": "required", "max_tokens": 60}
    expected = model.chat(messages, speculation="off", **options)
    assert expected.tool_calls
    for speculation in SPECULATIONS:
        found = model.chat(messages, speculation=speculation, **options)
        calls = [
            [(each.name, each.arguments_text) for each in reply.tool_calls]
            for reply in (found, expected)
        ]
        assert calls[0] == calls[1]
        assert said(found) == said(expected)


@pytest.fixture(scope="module")
def client(source: str, files: dict[str, Path]) -> Iterator[httpx.Client]:
    from running_server import running

    from akunu.server import ServedModels, ServerSettings

    draft = str(files["draft"]) if source == "draft-model" else None
    settings = ServerSettings(adapters=[f"odd={files['adapter']}"], draft=draft, context=1024)
    with running(ServedModels.of(settings)) as client:
        yield client


def answered(client: httpx.Client, request: dict[str, Any], *, streamed: bool) -> list[Any]:
    """What an answer says, without what differs from one to the next: ids, times and counts."""
    body = {
        "model": "ember",
        "messages": [{"role": "user", "content": "Say one two three four five twice."}],
        "max_tokens": 40,
        **request,
        "stream": streamed,
    }
    if not streamed:
        reply = client.post("/v1/chat/completions", json=body).raise_for_status().json()
        return without_ids(reply["choices"])
    deltas: dict[str, str] = {}
    reasons = []
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                collect(choice["delta"], "", deltas)
                reasons.append(choice["finish_reason"])
    return [deltas, [each for each in reasons if each]]


def collect(value: Any, place: str, into: dict[str, str]) -> None:
    """Join texts that come in pieces: where a piece ends depends on time."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key != "id":
                collect(each, f"{place}/{key}", into)
    elif isinstance(value, list):
        for i, each in enumerate(value):
            collect(each, f"{place}/{i}", into)
    elif value is not None and not place.endswith(("/role", "/index", "/type")):
        into[place] = into.get(place, "") + str(value)


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_ids(each) for key, each in value.items() if key != "id"}
    return [without_ids(each) for each in value] if isinstance(value, list) else value


@each_line("streamed", [False, True], ids=["whole", "streamed"])
@each_line("kind", REQUESTS)
def test_served(client: httpx.Client, kind: str, streamed: bool) -> None:
    request = REQUESTS[kind]
    expected = answered(client, {**request, "speculation": "off"}, streamed=streamed)
    with ThreadPoolExecutor(len(SPECULATIONS)) as pool:
        found = [
            pool.submit(
                answered, client, {**request, "speculation": speculation}, streamed=streamed
            )
            for speculation in SPECULATIONS
        ]
        for each in found:
            assert each.result() == expected


def test_the_server_says_what_was_drafted(client: httpx.Client, source: str) -> None:
    body = {
        "model": "ember",
        "messages": [{"role": "user", "content": "one two three one two three one two three"}],
        "max_tokens": 40,
        "temperature": 0,
        "speculation": 4,
    }
    before = drafted(client)
    timings = client.post("/v1/chat/completions", json=body).raise_for_status().json()["timings"]
    n = timings.get("draft_n", 0)
    assert timings.get("draft_n_accepted", 0) <= n
    assert n > 0 or source == "n-gram"
    deadline = time.monotonic() + 10  # the engine says so behind the last step
    while drafted(client) - before < n and time.monotonic() < deadline:
        time.sleep(0.01)
    assert drafted(client) - before == n


def drafted(client: httpx.Client) -> int:
    models = client.get("/v1/metrics").json()["models"]
    return int(models["ember"]["engine"]["drafted"]) if "ember" in models else 0  # not loaded yet
