"""Batches: the requests of a file, many at a time, answered in files.

A batch's own object says how far it is; which requests are answered, its files of answers say. So
a batch continues after a killed process with the requests that have no answer yet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from starlette.types import ASGIApp

from akunu.common.clock_and_ids import random_hex
from akunu.server.http.errors import ApiError, api_error
from akunu.server.stored.batch_lines import AnswerFile, BatchLine, answered_line, lines_of, look_at
from akunu.server.stored.files import StoredFiles, new_file_id
from akunu.server.stored.items import not_found
from akunu.server.stored.store import FolderStore, Key, merged, too_full
from akunu.server.stored.within import post_within

_LOG: Final = logging.getLogger("akunu.server")
OVER: Final = ("completed", "failed", "cancelled")
_RETRY_SECONDS: Final = 0.5
_AFTER_OTHERS: Final = 1
"""The priority of texts of a batch that do not set it: other requests are taken first."""


@dataclass(slots=True)
class _Running:
    """A batch that is being answered."""

    task: asyncio.Task[None]
    outputs: list[AnswerFile] = field(default_factory=list)
    """The file of answers, and that of errors."""


class Batches:
    """The batches of one application."""

    def __init__(self, app: ASGIApp, store: FolderStore, most_at_once: int) -> None:
        """`most_at_once`: requests of all batches together."""
        self._app = app
        self._store = store
        self._places = asyncio.Semaphore(most_at_once)
        self._running: dict[Key, _Running] = {}

    def create(self, owner: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Begin a batch; `asked`: what the request has."""
        batch = {
            "id": f"batch_{random_hex(16)}",
            "object": "batch",
            "endpoint": asked["endpoint"],
            "errors": None,
            "input_file_id": asked["input_file_id"],
            "completion_window": "24h",
            "status": "validating",
            "output_file_id": None,
            "error_file_id": None,
            "created_at": int(time.time()),
            "in_progress_at": None,
            "expires_at": None,
            "finalizing_at": None,
            "completed_at": None,
            "failed_at": None,
            "expired_at": None,
            "cancelling_at": None,
            "cancelled_at": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
            "metadata": asked.get("metadata"),
        }
        key = (owner, "batches", batch["id"])
        files = [new_file_id(), new_file_id()]
        record = {"batch": batch, "files": files, "seconds": asked.get("seconds")}
        self._store.add(key, record)
        self._start(key)
        return batch

    def find(self, owner: str, name: str) -> dict[str, Any]:
        """Return a batch as it is now; ApiError where there is none."""
        key = (owner, "batches", name)
        found = merged(self._store.find(key))
        if not found:
            raise not_found("batch", name)
        batch: dict[str, Any] = found["batch"]
        if key in self._running:
            batch["request_counts"].update(_counts(self._running[key].outputs))
        return batch

    def all(self, owner: str) -> list[dict[str, Any]]:
        """Return all batches of an owner, the oldest first."""
        found = [self.find(owner, name) for _, _, name in self._store.keys("batches", owner)]
        return sorted(found, key=lambda each: (each["created_at"], each["id"]))

    def cancel(self, owner: str, name: str) -> dict[str, Any]:
        """End a batch; requests that are answered keep their answers."""
        batch = self.find(owner, name)
        if batch["status"] in OVER:
            raise ApiError(409, f"batch {name!r} is {batch['status']}", code="batch_is_over")
        if batch["status"] in ("cancelling", "finalizing"):  # which it ends with at once
            return batch
        key = (owner, "batches", name)
        batch = self._note(key, batch, "cancelling")
        if key in self._running:
            self._running[key].task.cancel()
        else:  # an earlier attempt could not even note that it failed
            self._start(key)
        return batch

    def resume(self) -> None:
        """Continue with batches that an earlier process has begun."""
        for key in self._store.keys("batches"):
            found = merged(self._store.find(key))
            if found and found["batch"]["status"] not in OVER:
                self._start(key)

    async def close(self) -> None:
        """Stop; the next process continues."""
        tasks = [each.task for each in self._running.values()]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, key: Key) -> None:
        self._running[key] = _Running(asyncio.ensure_future(self._run(key)))

    def _note(self, key: Key, batch: dict[str, Any], status: str, **more: Any) -> dict[str, Any]:
        """Store a new status of a batch, and since when it has it."""
        batch = {**batch, "status": status, f"{status}_at": int(time.time()), **more}
        self._store.add(key, {"batch": batch})
        return batch

    async def _run(self, key: Key) -> None:
        """Answer a batch, from its beginning or from where an earlier process was."""
        running = self._running[key]
        status = "completed"
        try:
            try:
                if self._stored(key)["status"] != "cancelling":
                    await self._answer(key, running)
                else:
                    status = "cancelled"
            except asyncio.CancelledError:
                if key not in self._running:  # the server ends
                    raise
                status = "cancelled"
            if key in self._running and self._stored(key)["status"] != "failed":
                await self._finish(key, running, status)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._fail(key, running, api_error(error))
        finally:
            for each in running.outputs:
                each.close()
            self._running.pop(key, None)

    def _stored(self, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = merged(self._store.find(key))["batch"]
        return found

    async def _answer(self, key: Key, running: _Running) -> None:
        """Answer all requests that have no answer yet."""
        loop = asyncio.get_running_loop()
        owner = key[0]
        batch = self._stored(key)
        files = StoredFiles(self._store, owner)
        files.find(batch["input_file_id"], "input_file_id")
        path = files.content(batch["input_file_id"])
        if batch["status"] == "validating":
            n_lines, errors = await loop.run_in_executor(None, look_at, path, batch["endpoint"])
            if errors:
                told = {"object": "list", "data": errors}
                self._note(key, batch, "failed", errors=told)
                return
            counts = {"total": n_lines, "completed": 0, "failed": 0}
            batch = self._note(key, batch, "in_progress", request_counts=counts)
        running.outputs = await loop.run_in_executor(None, self._outputs, key)
        answered = set().union(*(each.names for each in running.outputs))
        tasks: set[asyncio.Task[None]] = set()
        try:
            for line in lines_of(path):
                if line.custom_id in answered:
                    continue
                _raise_from(tasks)
                await self._places.acquire()
                answer = self._answer_line(owner, batch["endpoint"], line, running.outputs)
                task = asyncio.ensure_future(answer)
                task.add_done_callback(lambda _: self._places.release())
                tasks.add(task)
            while tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                _raise_from(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer_line(
        self, owner: str, endpoint: str, line: BatchLine, outputs: list[AnswerFile]
    ) -> None:
        body = line.body
        if endpoint != "/v1/embeddings":
            body = {"priority": _AFTER_OTHERS, **body}
        while True:
            answer = await post_within(self._app, endpoint, body, owner)
            if answer.status != 503:
                break
            await asyncio.sleep(_RETRY_SECONDS)  # until there is a place, or the server ends
        told = answered_line(line.custom_id, answer.status, answer.request_id, answer.body)
        try:
            outputs[answer.status != 200].append(line.custom_id, told)
        except OSError as error:
            raise too_full(error.strerror or str(error)) from None

    def _outputs(self, key: Key) -> list[AnswerFile]:
        files = StoredFiles(self._store, key[0])
        names = merged(self._store.find(key))["files"]
        return [AnswerFile(files.content(each)) for each in names]

    async def _finish(self, key: Key, running: _Running, status: str) -> None:
        """Make files of the answers, and note that a batch is over."""
        loop = asyncio.get_running_loop()
        if not running.outputs:
            running.outputs = await loop.run_in_executor(None, self._outputs, key)
        batch = self._stored(key)
        if status == "completed":
            batch = self._note(key, batch, "finalizing")
        for each in running.outputs:
            await loop.run_in_executor(None, each.sync)
        self._note(key, batch, status, **self._files_of(key, running))

    def _files_of(self, key: Key, running: _Running) -> dict[str, Any]:
        """Make files of the answers that there are; return what the batch says of them."""
        files = StoredFiles(self._store, key[0])
        stored = merged(self._store.find(key))
        told: dict[str, Any] = {}
        add: Callable[..., Any] = partial(
            files.add, purpose="batch_output", seconds=stored["seconds"]
        )
        for what, name, output in zip(
            ("output", "error"), stored["files"], running.outputs, strict=False
        ):
            if output.names:
                add(name, f"{key[2]}_{what}.jsonl")
                told[f"{what}_file_id"] = name
        counts = {**stored["batch"]["request_counts"], **_counts(running.outputs)}
        return {**told, "request_counts": counts}

    def _fail(self, key: Key, running: _Running, error: ApiError) -> None:
        """Note why a batch cannot continue, if there is room to; else the next process tries."""
        _LOG.error("%s stopped: %s", key[2], error.logged)
        why = {"code": error.code, "message": error.message, "param": error.param, "line": None}
        errors = {"object": "list", "data": [why]}
        try:
            told = self._files_of(key, running)
            self._note(key, self._stored(key), "failed", errors=errors, **told)
        except ApiError:
            return


def _counts(outputs: list[AnswerFile]) -> dict[str, int]:
    if not outputs:
        return {}
    return {"completed": len(outputs[0].names), "failed": len(outputs[1].names)}


def _raise_from(tasks: set[asyncio.Task[None]]) -> None:
    """Take out the tasks that are over; raises what one of them raised."""
    for task in [task for task in tasks if task.done()]:
        tasks.discard(task)
        task.result()
