"""Clients of the server at AKUNU_URL, and the address of one that asks for a key."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
from openai import AsyncOpenAI, OpenAI


@pytest.fixture
def client() -> Iterator[OpenAI]:
    with OpenAI(base_url=os.environ["AKUNU_URL"] + "/v1", api_key="any") as client:
        yield client


@pytest.fixture
async def async_client() -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=os.environ["AKUNU_URL"] + "/v1", api_key="any") as client:
        yield client


@pytest.fixture
def guarded_address() -> str:
    """Of a server whose key is `right`, and which answers 10 requests a minute."""
    return os.environ["AKUNU_GUARDED_URL"]
