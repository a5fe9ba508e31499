"""The journal: answers to requests with an `Idempotency-Key`, in a folder, so that they continue.

Each answer has a file (file.py) with what it needs to be written again, its seed above
all, and what of it was written: tokens and events. docs/decisions/server.md
says why.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from akunu import __version__
from akunu.errors import AkunuError, ArgumentError
from akunu.server.http.errors import ApiError
from akunu.server.http.sending import event
from akunu.server.journal.file import JournalFile, Record
from akunu.server.settings import ServerSettings

VERSION: Final = 1
SUFFIX: Final = ".journal"
_BETWEEN_SYNCS: Final = 0.1  # seconds; a disk that spins needs 10 ms for one
_BETWEEN_LOOKS: Final = 60.0  # seconds after which old answers are looked for again
WHOLE: Final = -1
"""The `text` of what belongs to no text of an answer, but to the answer."""


@dataclass(frozen=True, slots=True)
class AnswerStep:
    """A step of an answer: new tokens of one of its texts, and the events that tell of them."""

    text: int
    tokens: list[int]
    event: bytes


class KeptAnswer:
    """An answer in the journal; used from the server's event loop alone."""

    def __init__(self, file: JournalFile, head: Record, records: Sequence[Record]) -> None:
        """`records`: those after the head."""
        self._file = file
        self._is_synced = True
        self._syncing: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()
        self.head = head
        self.begun: Record | None = None
        """Facts from the start of its texts; None: they have not started."""
        self.steps: list[AnswerStep] = []
        self.events: list[bytes] = []
        """All events of a stream so far, each with its id."""
        self.body = b""
        """The body of an answer that is not a stream, once it is complete."""
        self.is_over = False
        self.n_bytes = 0
        self.n_readers = 0
        self.runner: asyncio.Task[None] | None = None
        """The task that writes the answer; None: there is none."""
        self.failure: ApiError | None = None
        """Why its runner gave up."""
        for each in records:
            if "prompts" in each:
                self.begun = each
            elif "event" in each:
                self._show(AnswerStep(each["text"], each["tokens"], each["event"].encode()))
            self.is_over = self.is_over or "over" in each
        self.is_here = False
        """Whether its texts have begun in this process."""
        self.is_stopping = False
        self.needs_readers = True
        """Whether it is written on only while someone reads it."""
        self.say_failed: Callable[[ApiError], bytes] = _failed
        """The error that readers of a stream get, in the form of its dialect."""

    @property
    def path(self) -> Path:
        """Its file."""
        return self._file.path

    async def begin(self, record: dict[str, Any]) -> None:
        """Note what is known now that its texts begin; on the disk when this is over."""
        if self.begun is None:
            self._append(record)
            self.begun = record
            await self.sync()
        self.is_here = True
        self.tell()

    def add(self, step: AnswerStep) -> None:
        """Note a step, then show it to readers."""
        self._append(_record_of(step))
        self._show(step)
        self.tell()
        if self._syncing is None:
            self._syncing = asyncio.ensure_future(self._sync_soon())

    async def end(self, step: AnswerStep) -> None:
        """Note the last step; readers are shown it when it is on the disk."""
        self._append({**_record_of(step), "over": True})
        await self.sync()
        self._show(step)
        self.is_over = True
        self.tell()

    def fail(self, failure: ApiError) -> None:
        """Have readers know that no one writes it any more."""
        self.failure = failure
        self.tell()

    async def changed(self) -> None:
        """Wait until there is more to show."""
        await self._changed.wait()

    def tell(self) -> None:
        """Wake readers."""
        self._changed.set()
        self._changed = asyncio.Event()

    @contextmanager
    def reading(self, linger_seconds: float) -> Iterator[None]:
        """Count a reader. Without any for this long, the answer is not written on until one
        comes."""
        self.n_readers += 1
        try:
            yield
        finally:
            self.n_readers -= 1
            if not self.n_readers and self.runner is not None and self.needs_readers:
                asyncio.get_running_loop().call_later(linger_seconds, self._stop_if_alone)

    def _stop_if_alone(self) -> None:
        if not self.n_readers and self.runner is not None:
            self.is_stopping = True
            self.runner.cancel()

    async def sync(self) -> None:
        """Have all that was noted on the disk."""
        if not self._is_synced:
            self._is_synced = True
            await asyncio.get_running_loop().run_in_executor(None, self._file.sync)

    async def _sync_soon(self) -> None:
        try:
            await asyncio.sleep(_BETWEEN_SYNCS)
            with suppress(OSError):  # the disk's trouble is reported where something is written
                await self.sync()
        finally:
            self._syncing = None

    async def close(self) -> None:
        """Close its file; its records stay."""
        if self._syncing is not None:
            self._syncing.cancel()
            await asyncio.gather(self._syncing, return_exceptions=True)
        with suppress(OSError):
            await self.sync()
        self._file.close()

    def _append(self, record: Record) -> None:
        self.n_bytes += self._file.append(record)
        self._is_synced = False

    def _show(self, step: AnswerStep) -> None:
        self.steps.append(step)
        if not self.head["is_stream"]:
            self.body = step.event
            return
        for each in step.event.split(b"\n\n"):
            if each:
                number = len(self.events) + 1
                self.events.append(b"id: %d\n%s\n\n" % (number, each))


def _failed(error: ApiError) -> bytes:
    return event(error.body)


def _record_of(step: AnswerStep) -> Record:
    return {"text": step.text, "tokens": step.tokens, "event": step.event.decode()}


class Journal:
    """The answers in a folder; one server at a time has it."""

    def __init__(self, folder: Path, most_bytes: int, most_seconds: float) -> None:
        """Take the folder, made where there is none.

        Answers older than `most_seconds` are deleted, and the oldest ones while all have more than
        `most_bytes`. Raises ArgumentError for a folder that another server has, or none may.
        """
        self._folder = folder
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._running: dict[Path, KeptAnswer] = {}
        self._opening = asyncio.Lock()
        self._n_bytes = 0
        self._looked = -math.inf  # a monotonic time: a clock that is set back must not end it
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ArgumentError(f"journal {folder}: {error.strerror or error}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ArgumentError(
                f"journal {folder} is in use by another server; use another folder"
            ) from None

    @classmethod
    def of(cls, settings: ServerSettings) -> Journal | None:
        """Return the one that the settings name; None: they name none."""
        if settings.journal is None:
            return None
        return cls(settings.journal, settings.journal_size, settings.journal_seconds)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._folder

    @property
    def most_bytes(self) -> int:
        """How large it may be."""
        return self._most_bytes

    def wrote(self, n_bytes: int) -> None:
        """Count what was written to another file in its folder, and delete what is old."""
        self._n_bytes += n_bytes
        self._delete_old()

    def path_of(self, name: Sequence[str]) -> Path:
        """Return where the answer with a name is, or would be; see `find`."""
        whole_name = "\0".join(name).encode()
        return self._folder / (hashlib.blake2b(whole_name, digest_size=20).hexdigest() + SUFFIX)

    async def find(self, name: Sequence[str], body: bytes, *, is_stream: bool) -> KeptAnswer:
        """Return the answer with a name; a new one if there is none.

        `name`: the client, the route and the key. Raises ApiError if another body was sent with
        this name, and if the journal cannot be written.
        """
        digest = hashlib.blake2b(body, digest_size=32).hexdigest()
        path = self.path_of(name)
        async with self._opening:
            kept = self._running.get(path)
            if kept is not None and kept.is_stopping and kept.runner is not None:
                await asyncio.gather(kept.runner, return_exceptions=True)
                kept = None
            if kept is None:
                loop = asyncio.get_running_loop()
                try:
                    found = await loop.run_in_executor(None, self._opened, path, digest, is_stream)
                except ApiError:
                    raise
                except (AkunuError, OSError) as error:
                    raise ApiError(
                        500,
                        f"the journal: {error}",
                        code="journal_failed",
                        headers={"x-should-retry": "false"},
                    ) from error
                kept = KeptAnswer(*found)
        if kept.head["body"] != digest:
            await self.let_go(kept)
            raise ApiError(
                422,
                f"another request was sent with the idempotency key {name[-1]!r}; each request "
                f"needs its own key",
                param="Idempotency-Key",
                code="idempotency_key_reused",
            )
        return kept

    def run(self, kept: KeptAnswer, runner: asyncio.Task[None]) -> None:
        """Have a task write an answer on."""
        kept.runner = runner
        self._running[kept.path] = kept

    async def let_go(self, kept: KeptAnswer, *, forget: bool = False) -> None:
        """Close an answer that no one writes, or `forget` it; one that is written stays open."""
        if kept.runner is not None:
            return
        self._n_bytes += kept.n_bytes
        if forget:
            with suppress(OSError):
                kept.path.unlink()
        await kept.close()

    def ended(self, kept: KeptAnswer) -> None:
        """Note that no one writes an answer any more."""
        kept.runner = None
        self._running.pop(kept.path, None)

    async def close(self) -> None:
        """Stop writing; what is not over can continue in the next server."""
        runners = [kept.runner for kept in self._running.values() if kept.runner is not None]
        for runner in runners:
            runner.cancel()
        await asyncio.gather(*runners, return_exceptions=True)
        os.close(self._lock)

    def _opened(
        self, path: Path, digest: str, is_stream: bool
    ) -> tuple[JournalFile, Record, list[Record]]:
        """Open the file of an answer, or begin it; in a thread."""
        self._delete_old()
        file = JournalFile(path)
        records = file.read()
        if records and records[0].get("journal") == VERSION:
            return file, records[0], records[1:]
        if records:
            file.close()
            raise AkunuError(
                f"{path} has format version {records[0].get('journal')!r}; this akunu reads "
                f"{VERSION}"
            )
        head = {
            "journal": VERSION,
            "akunu": __version__,
            "body": digest,
            "is_stream": is_stream,
            "seed": int.from_bytes(os.urandom(8), "little"),
            "drawn": os.urandom(16).hex(),
            "now": time.time(),
        }
        self._n_bytes += file.append(head)
        file.sync()
        folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return file, head, []

    def _delete_old(self) -> None:
        looked, now = time.monotonic(), time.time()
        if looked - self._looked < _BETWEEN_LOOKS and self._n_bytes <= self._most_bytes:
            return
        self._looked = looked
        known = []
        for path in self._folder.rglob("*" + SUFFIX):
            with suppress(OSError):
                state = path.stat()
                known.append((state.st_mtime, state.st_size, path))
        left = sum(size for _, size, _ in known)
        for changed, size, path in sorted(known):
            is_old = now - changed > self._most_seconds or left > self._most_bytes
            if is_old and path not in self._running:
                with suppress(OSError):
                    path.unlink()
                left -= size
        self._n_bytes = left
