"""A server that is killed again and again, and clients that come back: no byte differs."""

from __future__ import annotations

import itertools
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from journal_requests import REQUESTS, request_of, without_times
from running_server import running

from akunu.server.journal.journal import SUFFIX

_N_CLIENTS = 4
_LONG = {"max_tokens": 120}


class KilledServer:
    """A server at one address, whose process changes."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self.address = f"http://127.0.0.1:{self._port}"

    def start(self) -> subprocess.Popen[str]:
        """Begin a process; it may not take requests yet."""
        log = (self._folder.parent / "log").open("a")
        command = [sys.executable, "-m", "akunu", "serve", "ember", "--access-log", "none"]
        options = ["--port", str(self._port), "--journal", str(self._folder)]
        state = {"XDG_STATE_HOME": str(self._folder.parent)}
        self._process = subprocess.Popen(
            [*command, *options], stderr=log, text=True, env={**os.environ, **state}
        )
        log.close()
        return self._process

    def wait_until_ready(self) -> None:
        while True:
            try:
                if httpx.get(f"{self.address}/ready").status_code == 200:
                    return
            except httpx.TransportError:
                assert self._process is not None
                assert self._process.poll() is None, "it ended by itself"
                time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Asking:
    """One answer, by a client that asks until it has all of it."""

    def __init__(self, number: int) -> None:
        names = list(REQUESTS)
        self.is_stream = number % 4 != 0
        name = names[number % len(names)]
        self.route, body = request_of(name, is_stream=self.is_stream)
        self.body = {**body, **_LONG} if body.get("ignore_eos") else body
        self.key = f"{number}-{name}".replace(" ", "-")
        self.text = ""
        self.n_pieces = 0
        self.n_cuts = 0

    def ask(self, client: httpx.Client, last_event: int | None = None) -> Iterator[str]:
        headers = {"idempotency-key": self.key}
        if last_event:
            headers["last-event-id"] = str(last_event)
        with client.stream("POST", self.route, json=self.body, headers=headers) as answer:
            if answer.status_code != 200:
                raise AssertionError(answer.read().decode())
            yield from answer.iter_text()

    def work(self, client: httpx.Client) -> None:
        while True:
            part = ""
            try:
                n_events = self.text.count("\n\n") if self.is_stream else None
                for piece in self.ask(client, n_events):
                    part += piece
                    self.n_pieces += 1
            except httpx.TransportError:
                self.n_cuts += bool(part)
                if self.is_stream:  # what is no whole event is thrown away, as by EventSource
                    self.text += part[: part.rfind("\n\n") + 2] if "\n\n" in part else ""
                time.sleep(0.02)
                continue
            self.text += part
            return


@contextmanager
def _clients(address: str, askings: list[Asking], is_over: threading.Event) -> Iterator[list[Any]]:
    numbers, lock, errors = itertools.count(), threading.Lock(), []

    def work() -> None:
        try:
            with httpx.Client(base_url=address, timeout=60) as client:
                while not is_over.is_set():
                    with lock:
                        asking = Asking(next(numbers))
                        askings.append(asking)
                    asking.work(client)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(_N_CLIENTS)]
    for each in threads:
        each.start()
    yield errors
    for each in threads:
        each.join()


@pytest.mark.parametrize("n_kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_a_killed_server_changes_no_byte(n_kills: int, tmp_path: Path) -> None:
    folder, askings, is_over = tmp_path / "journal", list[Asking](), threading.Event()
    server = KilledServer(folder)
    moments = random.Random(n_kills)
    try:
        with _clients(server.address, askings, is_over) as errors:
            for i in range(n_kills):
                n_pieces = sum(each.n_pieces for each in askings)
                server.start()
                if i % 8:  # while clients read; else while it starts
                    server.wait_until_ready()
                    while sum(each.n_pieces for each in askings) == n_pieces and not errors:
                        time.sleep(0.01)
                time.sleep(moments.uniform(0.0, 0.8))
                server.kill()
            server.start()
            server.wait_until_ready()
            is_over.set()
        assert not errors, errors[0]
        with httpx.Client(base_url=server.address, timeout=60) as client:
            for each in askings:
                assert "".join(each.ask(client)) == each.text
    finally:
        server.kill()
    n_cuts = sum(each.n_cuts for each in askings)
    print(f"{n_kills} kills, {len(askings)} answers, {n_cuts} of them cut within a stream")
    assert n_cuts > n_kills // 4
    _compare_with_whole_answers(folder, tmp_path / "undisturbed", askings)


def _compare_with_whole_answers(folder: Path, other: Path, askings: list[Asking]) -> None:
    """What the clients have is what a server that nobody kills makes of the same beginnings."""
    other.mkdir()
    for path in folder.glob("*" + SUFFIX):
        head = path.read_bytes().splitlines(keepends=True)[0]
        (other / path.name).write_bytes(head)
    with running(journal=other) as client:
        for each in askings:
            assert without_times("".join(each.ask(client))) == without_times(each.text)
