"""One request gives one answer, byte for byte, whatever is asked beside it and in which order."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx

from akunu.server import ServedModels, ServerSettings, create_app

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
WILD = {"temperature": 4.0, "top_k": 0}


def requests() -> list[tuple[str, dict[str, Any]]]:
    """Sampled and not, whole and streamed, with tools, schemas and logprobs."""
    found: list[tuple[str, dict[str, Any]]] = []
    for number in range(16):
        question = {"role": "user", "content": f"What is {number} + {3 * number}?"}
        chat: dict[str, Any] = {"messages": [question], "max_tokens": 12, "stream": number % 2 == 0}
        more: list[dict[str, Any]] = [
            {},
            {"seed": number, "n": 2, **WILD},
            {"tools": [ADD], "tool_choice": "required"},
            {
                "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
                "logprobs": True,
                "seed": number,
            },
        ]
        found.append(("/v1/chat/completions", {**chat, **more[number % 4]}))
        prompt = {"prompt": f"Once {number}", "max_tokens": number, "seed": 1, **WILD}
        found.append(("/v1/completions", prompt))
    return found


def plain(answer: httpx.Response) -> list[Any]:
    """What an answer says: without ids, times, and what came from the cache."""
    text = answer.text
    if not text.startswith("data: "):
        text = f"data: {text}"
    said: dict[int, dict[str, Any]] = {}
    for event in text.split("\n\n"):
        if not event or event.endswith("[DONE]"):
            continue
        for choice in json.loads(event.removeprefix("data: "))["choices"]:
            of = said.setdefault(choice["index"], {"text": "", "calls": "", "reason": None})
            told = choice.get("delta") or choice.get("message") or choice
            of["text"] += told.get("content") or told.get("text") or ""
            calls = told.get("tool_calls") or ()
            of["calls"] += "".join(call["function"].get("arguments", "") for call in calls)
            of["reason"] = choice["finish_reason"] or of["reason"]
            if choice.get("logprobs"):
                of.setdefault("logprobs", []).extend(choice["logprobs"]["content"])
    return [said[index] for index in sorted(said)]


def test_answers_are_the_same_in_any_company() -> None:
    async def all_answers() -> list[list[list[Any]]]:
        asked = requests()
        rounds = []
        settings = ServerSettings(access_log="none", kv_type="f32")
        app = create_app(settings, ServedModels(options=settings.load_options))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):

            async def answer(path: str, body: dict[str, Any]) -> list[Any]:
                got = await client.post(path, json=body, timeout=60)
                assert got.status_code == 200, got.text
                return plain(got)

            rounds.append([await answer(*each) for each in asked])  # one after the other
            for seed in (1, 2):
                order = list(range(len(asked)))
                random.Random(seed).shuffle(order)
                got = await asyncio.gather(*(answer(*asked[index]) for index in order))
                rounds.append([each for _, each in sorted(zip(order, got, strict=True))])
        return rounds

    alone, first, second = asyncio.run(all_answers())
    assert first == alone
    assert second == alone
