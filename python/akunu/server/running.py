"""The servers that run on this machine: each has a file, and holds a lock on it while it lives.

A process that dies, however it does, lets go of its lock; the next process that looks removes its
file.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from akunu.common.files import open_regular
from akunu.common.state_folder import state_path
from akunu.errors import AkunuError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server's facts in its file."""

    pid: int
    address: str
    """With "unix:" before the path of a socket."""
    models: tuple[str, ...]
    began: float
    """Seconds since 1970."""


def servers_folder() -> Path | None:
    """Return the folder of the servers' files; None: the user has no home folder."""
    return state_path("servers")


@contextmanager
def noted(address: str, models: Sequence[str], folder: Path | None) -> Iterator[None]:
    """List this process among the servers meanwhile, if its file can be written."""
    server = RunningServer(
        pid=os.getpid(), address=address, models=tuple(models), began=time.time()
    )
    held = _write_note(server, folder)
    try:
        yield
    finally:
        if held is not None:
            path, descriptor = held
            path.unlink(missing_ok=True)
            os.close(descriptor)


def _write_note(server: RunningServer, folder: Path | None) -> tuple[Path, int] | None:
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".")
    except OSError:  # a server can do without
        return None
    path = folder / f"{server.pid}.json"
    facts = json.dumps(asdict(server)).encode()
    try:
        # The lock first and the name last: no one finds a file without its lock.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.write(descriptor, facts) < len(facts):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.replace(name, path)
    except OSError:  # the disk is full, for example
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)
        return None
    return path, descriptor


def running_servers(folder: Path | None) -> list[RunningServer]:
    """Return those that live, the oldest first; files of others are taken away."""
    found = []
    for path in sorted(folder.glob("*.json")) if folder is not None else ():
        with suppress(OSError, ValueError, TypeError), open_regular(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                facts = json.load(file)
                found.append(RunningServer(**{**facts, "models": tuple(facts["models"])}))
            else:
                path.unlink(missing_ok=True)
    return sorted(found, key=lambda server: server.began)


def stop_server(server: RunningServer, folder: Path) -> None:
    """Ask a server to end and wait until it has; AkunuError if that is not allowed."""
    path = folder / f"{server.pid}.json"
    try:
        file = open_regular(path)
    except FileNotFoundError:  # it has ended meanwhile
        return
    with file:
        try:
            os.kill(server.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            raise AkunuError(f"the server {server.pid} belongs to another user") from None
        fcntl.flock(file, fcntl.LOCK_SH)  # free once the server has ended
