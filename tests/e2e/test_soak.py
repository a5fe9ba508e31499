"""Random requests for a long time: none stuck, none changed by the others, memory flat.

Texts, chats, sessions that are forked and kept in files, forms, contexts that go on, drafts,
cancellations, and requests that must fail, 32 at a time in a cache that holds some of them.
"""

from __future__ import annotations

import asyncio
import os
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from edited_model import string, tensors_end

import akunu
from akunu.hub.packaged_models import PACKAGED_MODELS

SIDE_BY_SIDE = 32
STUCK = 300  # seconds in which no request ends, however slow the machine is
OVERTAKEN = 500  # requests that ended while one did not that few others may go before
BAD = 4000  # a token whose embedding is not a number
CONTEXT = 512
LONG = CONTEXT - 9  # tokens of a prompt that leaves little room
TEXT = "user\nWhat is {}? {}\nassistant\n"
KINDS = {  # and of 100 requests how many
    "text": 55,
    "chat": 8,
    "form": 10,
    "several": 4,
    "shift": 5,
    "session": 6,
    "logits": 4,
    "bad row": 3,
    "bad token": 3,
    "too long": 2,
}
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
FORMS: list[dict[str, Any]] = [
    {"regex": "[a-z]{2,6}( [0-9]+)?"},
    {"choice": ["yes", "no", "perhaps"]},
    {"schema": SCHEMA},
    {"json": True},
]


@dataclass
class Request:
    """What one of the callers asks for, and how it goes about it."""

    kind: str  # one of KINDS
    given: Any
    options: dict[str, Any] = field(default_factory=dict)
    pieces: int | None = None  # leaves the stream after so many, where it does
    is_cancelled: bool = False  # its task is cancelled some time later
    is_checked: bool = False  # once more at the end, alone


def random_requests(seed: int, n_requests: int, vocab_size: int) -> Iterator[Request]:
    """Texts most of all, with beginnings that many have in common; a few of everything else."""
    draw = random.Random(seed)
    beginnings = [[draw.randrange(BAD) for _ in range(300)] for _ in range(6)]

    def tokens() -> list[int]:
        begin = draw.choice(beginnings)[: draw.choice([0, 3, 255, 256, 257, 300])]
        return begin + [draw.randrange(BAD) for _ in range(draw.randint(1, 40))]

    for _ in range(n_requests):
        options: dict[str, Any] = {
            "max_tokens": draw.randint(1, 24),
            "temperature": draw.choice([0, 0.7, 2.0]),
            "top_k": draw.choice([0, 40]),
            "repetition_penalty": draw.choice([1.0, 1.2]),
            "seed": draw.randrange(1000),
            "priority": draw.choice([0, 0, 0, 1]),
            "stop": draw.choice([(), (), ("e",), ("the", "\n")]),
            "logit_bias": {BAD: float("-inf")},
            "speculation": draw.choice(["auto", "auto", "off", 2, 7]),
        }
        kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
        request = Request(kind, tokens(), options, is_checked=draw.random() < 0.05)
        if kind == "text" and draw.random() < 0.3:
            request.given = TEXT.format(draw.randrange(100), draw.choice(["Please!", "Quick."]))
        elif kind in ("chat", "form"):
            if kind == "form":
                options |= draw.choice(FORMS) | {"stop": ()}
            request.given = [{"role": "user", "content": f"What is {draw.randrange(50)} + 7?"}]
        elif kind == "several":
            options["n"] = draw.randint(2, 4)
        elif kind == "shift":  # over the end of the context, once or twice
            request.given = (tokens() + [draw.randrange(BAD) for _ in range(LONG)])[:LONG]
            options |= {"max_tokens": 160, "context_overflow": draw.choice(["shift", "reread"])}
        elif kind == "session":
            request.given = (tokens(), draw.randrange(2**32))
        elif kind == "bad row":
            request.given = [*request.given, BAD]
        elif kind == "bad token":
            request.given = [*request.given, vocab_size]
        elif kind == "too long":
            request.given = request.given * (1 + CONTEXT)
        if kind == "text" and draw.random() < 0.1:
            request.pieces = draw.randint(0, 3)
        elif draw.random() < 0.05:
            request.is_cancelled = True
        yield request


async def ask(model: akunu.Model, request: Request, folder: Path) -> Any:
    """Return what the request gives: a text, logits, the error it must have, or None."""
    if request.kind == "logits":
        return await model.logits_async(request.given, last=1)
    if request.kind == "session":
        return await go_on(model, *request.given, request.options, folder)
    call = model.chat_async if request.kind in ("chat", "form") else model.generate_async
    if request.pieces is not None:
        stream = call(request.given, stream=True, **request.options)
        for _ in range(request.pieces):
            await anext(stream, None)
        await stream.aclose()
        return None
    errors = {
        "bad row": akunu.DeviceError,
        "bad token": akunu.ArgumentError,
        "too long": akunu.ContextOverflowError,
    }
    if request.kind in errors:
        with pytest.raises(errors[request.kind]):
            await call(request.given, **request.options)
        return None
    return await call(request.given, **request.options)


async def go_on(
    model: akunu.Model, tokens: list[int], seed: int, options: dict[str, Any], folder: Path
) -> list[akunu.Completion]:
    """Return the replies of a session that is forked, rewound, and kept in a file."""
    draw = random.Random(seed)
    session = model.session()
    is_talk = draw.random() < 0.3
    question = {"role": "user", "content": f"What is {draw.randrange(50)} + 7?"}
    await session.append_async(question if is_talk else tokens)
    replies = []
    for _ in range(draw.randint(1, 3)):
        begun = session.n_tokens
        branch = session.fork()
        replies += await asyncio.gather(
            session.generate_async(**options), branch.generate_async(**{**options, "seed": 5})
        )
        step = draw.choice(["rewind", "save", "branch", "append"])
        if step == "rewind":
            session.rewind(begun)
            continue
        if step == "save":
            path = folder / f"{os.getpid()}-{id(session)}.session"
            try:
                await session.save_async(path)
                session = await model.load_session_async(path)
            finally:
                path.unlink(missing_ok=True)
        elif step == "branch":
            session = branch
        await session.append_async(question if is_talk else tokens[-9:])
    return replies


async def ask_and_cancel(model: akunu.Model, request: Request, folder: Path) -> Any:
    """Ask, and sometimes have the task cancelled in the middle."""
    asking = asyncio.ensure_future(ask(model, request, folder))
    if not request.is_cancelled:
        return await asking
    await asyncio.wait([asking], timeout=0.02)
    asking.cancel()
    return (await asyncio.gather(asking, return_exceptions=True))[0]


def resident_bytes() -> int:
    """Return what the process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def soak(
    model: akunu.Model, seed: int, n_requests: int, folder: Path
) -> tuple[list[Any], list[int]]:
    """Return the requests to check with their answers, and the memory at ten times."""
    requests = random_requests(seed, n_requests, model.tokenizer.vocab_size)
    checked: list[Any] = []
    memory: list[int] = []
    n_done = 0
    begun: dict[int, tuple[int, Request]] = {}  # those under way, and how many had ended before

    async def work(place: int) -> None:
        nonlocal n_done
        for request in requests:
            begun[place] = n_done, request
            answer = await ask_and_cancel(model, request, folder)
            # Prompts that are refused are long, and would be all that grows.
            if request.is_checked and not request.is_cancelled and answer is not None:
                checked.append((request, answer))
            n_done += 1
            if n_done * 10 // n_requests > len(memory):
                memory.append(resident_bytes())
            first, _ = begun.pop(place)
            if request.options["priority"] >= 0:  # before the others all may go
                assert n_done - first < OVERTAKEN, request

    working = asyncio.gather(*(work(place) for place in range(SIDE_BY_SIDE)))
    before = -1
    while not working.done():
        assert before < n_done, begun
        before = n_done
        await asyncio.wait([working], timeout=STUCK)
    await working
    assert n_done == n_requests
    return checked, memory


def with_a_bad_token(target: Path) -> Path:
    """Write the packaged model with a copy of its embeddings, in which one is not a number."""
    source = PACKAGED_MODELS["ember"]
    reader = gguf.GGUFReader(source)
    data = source.read_bytes()
    begin, end = reader.tensors[0].field.offset, tensors_end(reader)
    (table,) = (tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    rows = table.data.reshape(-1, table.data.shape[-1]).copy()
    rows[BAD, 0:2] = np.frombuffer(np.float16("nan").tobytes(), np.uint8)  # a scale of Q8_0
    tensors = data[reader.data_offset :]
    tensors += bytes(-len(tensors) % reader.alignment)
    # What were the embeddings now chooses tokens only, and the copy behind them all is embedded.
    infos = data[begin:end].replace(string("token_embd.weight"), string("output.weight"))
    width, height = (int(size) for size in table.shape)
    infos += string("token_embd.weight") + struct.pack(
        "<IQQIQ", 2, width, height, table.tensor_type, len(tensors)
    )
    header = data[:8] + struct.pack("<Q", len(reader.tensors) + 1) + data[16:begin] + infos
    header += bytes(-len(header) % reader.alignment)
    target.write_bytes(header + tensors + rows.tobytes())
    return target


def _texts_of(answer: Any) -> list[tuple[str, tuple[int, ...], str]]:
    replies = answer if isinstance(answer, list) else [answer]
    return [(str(each), each.token_ids, each.finish_reason) for each in replies]


def run_soak(path: Path, seed: int, n_requests: int) -> list[int]:
    """Soak a model whose cache holds a part of them; compare; return the memory over time."""
    with akunu.load(path, context=CONTEXT, kv_memory=8 * 2**20) as model:
        checked, memory = asyncio.run(soak(model, seed, n_requests, path.parent))
        assert len(checked) >= n_requests // 50
        assert not model._wakers._by_loop
        assert model._native.wait_until_idle(timeout_ms=60_000)
        occupancy = model.occupancy
        assert (occupancy.waiting, occupancy.running) == (0, 0)
        assert occupancy.accepted > 0
        assert all(group.in_use == 0 for group in occupancy.cache)
    with akunu.load(path, context=CONTEXT, prefix_cache=False) as alone:
        for request, answer in checked:
            if request.kind == "logits":
                assert np.array_equal(answer, alone.logits(request.given, last=1))
            else:
                expected = asyncio.run(ask(alone, request, path.parent))
                assert _texts_of(answer) == _texts_of(expected), request
    return memory


def test_random_requests_side_by_side_are_those_alone(tmp_path: Path) -> None:
    run_soak(with_a_bad_token(tmp_path / "m.gguf"), 1, 200)


@pytest.mark.slow
def test_10000_random_requests_leave_memory_flat(tmp_path: Path) -> None:
    memory = run_soak(with_a_bad_token(tmp_path / "m.gguf"), 2, 10_000)
    # The first tenths fill caches and arenas of the allocator; from there on nothing may grow.
    assert max(memory[5:]) - memory[4] < 16 * 2**20, memory
