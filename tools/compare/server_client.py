"""A client that costs nearly nothing: one request of HTTP/1.1, the answer's times and its usage."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

Address = tuple[str, int]

_TEXT = re.compile(rb'"(?:content|text)":"(?!")')
_USAGE = re.compile(rb'"(prompt|completion)_tokens":\s?(\d+)')


@dataclass(frozen=True, slots=True)
class Answer:
    """When it came, in seconds since it was asked for, and what it counts."""

    first: float
    whole: float
    prompt_tokens: int
    completion_tokens: int


def parse_address(text: str) -> Address:
    """
    >>> parse_address("127.0.0.1:8080")
    ('127.0.0.1', 8080)
    """
    host, _, port = text.strip("/").rpartition(":")
    return host, int(port)


async def ask(address: Address, body: bytes) -> Answer:
    """Ask for a chat as a stream; ValueError where the answer is none, or has no text."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(*address)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    told = b""
    first = None
    while piece := await reader.read(1 << 16):
        told += piece
        if first is None and _TEXT.search(told):
            first = time.monotonic() - began
    whole = time.monotonic() - began
    writer.close()
    usage = {name: int(number) for name, number in _USAGE.findall(told)}
    if first is None or len(usage) < 2:
        raise ValueError(f"no stream of text: {told[:400].decode(errors='replace')}")
    return Answer(first, whole, usage[b"prompt"], usage[b"completion"])
