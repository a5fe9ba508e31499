"""What tests of coroutines share: a prompt, a conversation, and a loop that ends in time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

PROMPT = "user\nWhat can you do?\nassistant\n"
MESSAGES = [{"role": "user", "content": "What is 12 + 7?"}]

Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run it as a program would; nothing may take longer than a minute."""

    async def in_time() -> Result:
        return await asyncio.wait_for(coroutine, 60)

    return asyncio.run(in_time(), debug=True)
