"""The conversation that a chat keeps for the next one (`akunu chat --continue`)."""

from __future__ import annotations

from pathlib import Path

from akunu.cli.conversation.saved_conversation import save_conversation
from akunu.text.conversation import Conversation

_Stamp = tuple[int, int, int]


class KeptConversation:
    """A file that has the conversation after each reply.

    It may be another akunu's too, that of a chat in another terminal for example. What another one
    wrote there meanwhile is left alone: this conversation moves to its own file.
    """

    def __init__(self, path: Path, *, is_continued: bool = False) -> None:
        """Make this before what is at `path` is read.

        `is_continued`: the conversation there is the one that continues. Else it is replaced with
        the first reply.
        """
        self.path = path
        """Where the conversation is kept."""
        self.has_moved = False
        """Whether this is another path than the one that was passed."""
        self._seen = _stamp(path)
        self._is_own = is_continued and self._seen is not None

    @property
    def has_conversation(self) -> bool:
        """Whether this conversation is there now."""
        return self._is_own

    def keep(self, conversation: Conversation, title: str, model_name: str) -> bool:
        """Write the conversation, as `save_conversation` does; without turns, remove it.

        Returns whether it has just moved, because another akunu wrote to the file. Raises OSError.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        now = _stamp(self.path)
        is_others = now is not None and now != self._seen
        if not conversation.turns:
            if self._is_own and not is_others:
                self.path.unlink(missing_ok=True)
            self._is_own = False
            return False
        if is_others:
            self.path = _free_path(self.path)
            self.has_moved = True
        save_conversation(self.path, conversation, title, model_name)
        self._seen = _stamp(self.path)
        self._is_own = True
        return is_others


def _stamp(path: Path) -> _Stamp | None:
    """Return what changes with every writing of a file; None where there is none, or no access."""
    try:
        status = path.stat()
    except OSError:  # `keep` says why
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _free_path(path: Path) -> Path:
    """Return last-conversation-2.json, or the next such name that no file has."""
    number = 2
    while (free := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return free
