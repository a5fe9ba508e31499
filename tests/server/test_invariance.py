"""One request gives one answer, byte for byte, whatever is asked beside it and in which order."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx
from running_server import running

# What depends on the clock, on chance (ids) or on what the cache had; the text does not.
VOLATILE = {"id", "item_id", "call_id", "created", "created_at", "completed_at", "timings"}
VOLATILE |= {"cached_tokens", "prefix_end", "tokens_cached", "sequence_number"}
VOLATILE |= {"input_tokens", "cache_read_input_tokens"}  # of messages, which tell them apart
VOLATILE |= {f"{name}_duration" for name in ("total", "load", "prompt_eval", "eval")}
# A stream sends these fields in parts; a client concatenates them.
PIECES = {"content", "text", "delta", "response", "thinking", "arguments", "partial_json"}

Request = tuple[str, dict[str, Any]]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}}
NAMED = {"type": "json_schema", "name": "number", "schema": SCHEMA}
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}}
ADD = {"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}
WILD = {"temperature": 4.0, "top_k": 0}
PENALTIES = {"temperature": 1.5, "repetition_penalty": 1.3, "dry_multiplier": 0.8, "min_p": 0.01}
LONG = "We count apples, and pears, and plums. " * 5


def requests() -> list[Request]:
    """64 of six APIs: sampled and not, whole and streamed, with tools, schemas and logprobs."""
    found: list[Request] = []
    for n in range(8):
        seed = {"seed": n}
        is_stream = {"stream": n % 2 == 0}
        question = {"role": "user", "content": f"{LONG * (n % 3)}What is {n} + {3 * n}?"}
        chat: dict[str, Any] = {"messages": [question], "max_tokens": 5 + n, **is_stream}
        found += [("/v1/chat/completions", {**chat, **more}) for more in chats(n)]
        text = {"prompt": f"Once {n}", "max_tokens": 3 * n, "logprobs": 2, **seed, **WILD}
        found.append(("/v1/completions", {**text, **is_stream}))
        found.append(("/v1/responses", {"input": question["content"], **is_stream, **response(n)}))
        found.append(("/v1/messages", {**chat, **seed, **message(n)}))
        options = {"num_predict": 9, "temperature": 2.0, "seed": n}
        ollama = {"model": "ember", "options": options, "stream": n % 4 < 2}
        if n % 2:
            found.append(("/api/chat", {"messages": [question], **ollama}))
        else:
            found.append(("/api/generate", {"prompt": f"Twice {n}", "raw": True, **ollama}))
        completion = {"prompt": f"Thrice {n}", "n_predict": 4 + n, "n_probs": 2 * (n % 2), **seed}
        found.append(("/completion", {**completion, **is_stream, **WILD}))
    return found


def chats(n: int) -> list[dict[str, Any]]:
    """What three requests for a chat ask for besides."""
    held = {"json_schema": {"name": "number", "schema": SCHEMA}, "type": "json_schema"}
    return [
        {"seed": n, "n": 1 + n % 3, **WILD},
        {"response_format": held, "logprobs": True, "top_logprobs": 2, "seed": n, **WILD},
        {"tools": [ADD], "tool_choice": "required" if n % 2 else "auto", "seed": n, **PENALTIES},
    ]


def response(n: int) -> dict[str, Any]:
    """What a request for a response asks for besides."""
    tool = {"type": "function", "name": "add", "parameters": PARAMETERS}
    more = [{}, {"text": {"format": NAMED}}, {"tools": [tool], "tool_choice": "required"}]
    return {"max_output_tokens": 20, "temperature": 1.0, "seed": n, **more[n % 3]}


def message(n: int) -> dict[str, Any]:
    """What a request for a message asks for besides."""
    tool = {"name": "add", "input_schema": PARAMETERS}
    return {"tools": [tool], "tool_choice": {"type": "any"}} if n % 3 == 0 else WILD


def plain(value: Any) -> Any:
    """A value of JSON without what is volatile."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in VOLATILE}
    return [plain(each) for each in value] if isinstance(value, list) else value


def said(answer: httpx.Response) -> Any:
    """What an answer says; of a stream, what a client puts together, however it is cut."""
    kind = answer.headers["content-type"]
    if kind.startswith("application/json"):
        return plain(answer.json())
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    joined: dict[str, Any] = {}
    for line in lines:
        if line.startswith("{"):
            event = plain(json.loads(line))
            join(joined, event, f"{event.get('type')} {event.get('index')}")
    assert joined
    return joined


def join(joined: dict[str, Any], event: dict[str, Any], place: str) -> None:
    """Add an event: pieces and lists are joined, other fields have the value they had last."""
    for name, value in event.items():
        key = f"{place}/{name}"
        if isinstance(value, dict):
            join(joined, value, key)
        elif isinstance(value, list) and name in ("choices", "tool_calls"):
            for each in value:
                join(joined, each, f"{key} {each.get('index')}")
        elif isinstance(value, list) or (name in PIECES and isinstance(value, str)):
            joined[key] = joined[key] + value if joined.get(key) else value
        elif value is not None:
            joined[key] = value


async def go_away(client: httpx.AsyncClient, n: int) -> None:
    """Ask for a text without end, and leave when it has begun."""
    question = {"role": "user", "content": LONG * n}
    endless = {"messages": [question], "stream": True, "ignore_eos": True, "seed": n, **WILD}
    async with client.stream("POST", "/v1/chat/completions", json=endless) as answer:
        async for _ in answer.aiter_bytes():
            break


async def answers(address: str, asked: list[Request]) -> list[dict[int, Any]]:
    """What requests are answered in two random orders and companies, and some of them alone."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

        async def answer(index: int) -> Any:
            path, body = asked[index]
            got = await client.post(path, json=body)
            assert got.status_code == 200, got.text
            return said(got)

        rounds = []
        for seed in (1, 2):
            order = random.Random(seed).sample(range(len(asked)), len(asked))
            strangers = [asyncio.ensure_future(go_away(client, n)) for n in range(3)]
            got = await asyncio.gather(*map(answer, order))
            await asyncio.gather(*strangers)
            rounds.append(dict(zip(order, got, strict=True)))
        some = range(0, len(asked), 3)
        return [*rounds, {index: await answer(index) for index in some}]


def test_answers_are_the_same_in_any_company() -> None:
    asked = requests()
    assert len(asked) == 64
    with running(access_log="none") as client:
        first, second, alone = asyncio.run(answers(str(client.base_url), asked))
    assert len({json.dumps(each) for each in first.values()}) >= 60  # different questions
    assert len(first) == len(second) == 64
    for got in (second, alone):
        for index, answer in got.items():
            assert answer == first[index], asked[index]
