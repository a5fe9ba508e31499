"""What tells one conversation from another: how it begins.

Every turn of a conversation is sent whole, so its first question is in each of them. What stands
before it may change on the way (an agent's system prompt has the date) or is shared by everybody,
and so tells nothing.

>>> asked = {"role": "user", "content": "Hi"}
>>> later = [asked, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Bye"}]
>>> conversation_key({"messages": [asked]}) == conversation_key({"messages": later}) != ""
True
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

# A prompt that is one text may grow with each turn; its beginning stands for the conversation.
_BEGINNING: Final = 256  # characters, or token ids


def key_of_body(body: bytes) -> str:
    """Return the key of the conversation that a request's body has, "" for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):  # the replica says what is wrong
        return ""
    return conversation_key(found) if isinstance(found, dict) else ""


def conversation_key(request: Mapping[str, Any]) -> str:
    """Return the same text for all turns of a conversation, "" where there is none.

    `request`: the body, in any of the dialects.
    """
    beginning = next(filter(None, map(_beginning, _places(request))), "")
    if not beginning:
        return ""
    model = request.get("model")
    hashed = json.dumps([model if isinstance(model, str) else "", beginning])
    return hashlib.blake2b(hashed.encode(), digest_size=16).hexdigest()


def _places(request: Mapping[str, Any]) -> list[Any]:
    """Where a request may have its conversation: chats, responses, Ollama's, plain texts."""
    return [
        request.get("messages"),
        request.get("input"),
        request.get("context"),
        request.get("prompt"),
        request.get("input_prefix"),
    ]


def _beginning(place: Any) -> str:
    if isinstance(place, str):
        return place[:_BEGINNING]
    if not isinstance(place, list) or not place:
        return ""
    if isinstance(place[0], int):  # token ids
        return str(place[:_BEGINNING])
    if isinstance(place[0], str):  # several prompts
        return place[0][:_BEGINNING]
    asked = next((each for each in place if _is_question(each)), place[0])
    return _text_of(asked.get("content")) if isinstance(asked, dict) else ""


def _is_question(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def _text_of(content: Any) -> str:
    """Return the text of a message; marks next to it (`cache_control`) move from turn to turn."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))
