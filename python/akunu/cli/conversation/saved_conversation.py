"""Conversations in files: JSON that a person can read, checked before it is believed."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from akunu.cli.conversation.history import history_path
from akunu.errors import AkunuError
from akunu.text.conversation import Conversation, Turn

_FORMAT: Final = "akunu conversation"
_VERSION: Final = 1
_MOST_BYTES: Final = 64 * 2**20


class SavedConversationError(AkunuError):
    """A file is not a conversation; the message says where and why."""


@dataclass(frozen=True, slots=True)
class SavedConversation:
    """What a file has."""

    system: str | None
    turns: list[Turn]
    model_name: str | None
    """What the person called the model; None in older files."""


def last_conversation_path() -> Path | None:
    """Return the file of the last conversation, next to the history; None without a home."""
    history = history_path()
    return None if history is None else history.with_name("last-conversation.json")


def save_conversation(path: Path, conversation: Conversation, title: str, model_name: str) -> None:
    """Write a conversation to `path`, all of it or nothing; raises OSError that names `path`.

    `title` says to people which model spoke, `model_name` to akunu. Only its owner can read the
    file. One that is there is replaced: ask before.
    """
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": title,
        "model_name": model_name,
        "saved": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "messages": conversation.messages,
    }
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    try:
        _write(path.resolve(), text.encode())  # a link stays a link
    except OSError as error:  # it would name no file, or the temporary one
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write(target: Path, data: bytes) -> None:
    """Put `data` into the file's place at once, when it is on the disk."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def read_conversation(path: Path) -> SavedConversation:
    """Return a saved conversation.

    Raises OSError where the file cannot be read, SavedConversationError for one that is none.
    """
    if not path.is_file() and path.exists():
        raise _error(path, "is not a file")
    if path.stat().st_size > _MOST_BYTES:
        raise _error(path, f"has more than {_MOST_BYTES >> 20} MiB")
    try:
        content = json.loads(path.read_bytes())
    except UnicodeDecodeError:
        raise _error(path, "is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise _error(path, f"is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise _error(path, "is not a conversation saved by akunu")
    if content.get("version") != _VERSION:
        raise _error(path, f"has version {content.get('version')!r}; this akunu reads {_VERSION}")
    messages = content.get("messages")
    if not isinstance(messages, list):
        raise _error(path, "has no list of messages")
    for index, message in enumerate(messages):
        _check_message(path, index, message)
    system = None
    if messages and messages[0]["role"] == "system":
        system = messages[0]["content"]
        messages = messages[1:]
    first = 0 if system is None else 1
    for index, message in enumerate(messages):
        expected = "assistant" if index % 2 else "user"
        if message["role"] != expected:
            raise _error(
                path, f'messages[{first + index}].role is {message["role"]!r}, not "{expected}"'
            )
    if len(messages) % 2:
        raise _error(path, "ends with a question that has no reply")
    pairs = zip(messages[::2], messages[1::2], strict=True)
    turns = [
        Turn(question["content"], reply["content"], (), reply.get("reasoning_content", ""))
        for question, reply in pairs
    ]
    name = content.get("model_name")
    return SavedConversation(system, turns, name if isinstance(name, str) else None)


def _check_message(path: Path, index: int, message: Any) -> None:
    where = f"messages[{index}]"
    if not isinstance(message, dict):
        raise _error(path, f"{where} is not an object")
    for key in ("role", "content", "reasoning_content"):
        if not isinstance(message.get(key, "" if key == "reasoning_content" else None), str):
            raise _error(path, f"{where}.{key} is not a string")
        try:
            message.get(key, "").encode()
        except UnicodeEncodeError:
            raise _error(path, f"{where}.{key} has half a surrogate pair") from None
    unknown = sorted(set(message) - {"role", "content", "reasoning_content"})
    if unknown:
        raise _error(path, f"{where} has the unknown key {unknown[0]!r}")


def _error(path: Path, what: str) -> SavedConversationError:
    return SavedConversationError(f"{path} {what}")
