"""Serves an application until a signal stops it: uvicorn, and how it starts and ends here."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import math
import os
import queue
import resource
import signal
import socket
import ssl
import stat
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from akunu.errors import ArgumentError, OutOfMemoryError
from akunu.server.http.connection import Connection
from akunu.server.http.keys import Keys
from akunu.server.settings import ServerSettings

_ARENA_MAX: Final = -8  # M_ARENA_MAX of glibc's mallopt
_STACK_BYTES: Final = 2 << 20
_LEAST_LEFT: Final = 64 << 20
_MOST_FILES: Final = 1 << 16
_LOG: Final = logging.getLogger("akunu.server")


def check_reach(settings: ServerSettings) -> None:
    """Raise ArgumentError where other machines could use the server without a key."""
    if settings.is_local or settings.without_key or Keys.of(settings):
        return
    raise ArgumentError(
        f"host is {settings.host}, so other machines can connect, but there is no API key: set "
        f"one (AKUNU_SERVE_API_KEYS, --api-key-file), or allow access without one (--without-key)"
    )


def serve(
    app: FastAPI,
    settings: ServerSettings,
    sockets: list[socket.socket],
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; texts under way have `drain_seconds` to end.

    `sockets`: those of `listening`. `ready` is called with the address once requests are taken.
    """
    server = _server(app, settings, sockets, ready)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(server.serve(sockets=sockets))
        loop.run_until_complete(_ended(loop))
    finally:
        loop.close()  # which does not wait for threads, as asyncio.run does


async def _ended(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the remaining tasks of an event loop."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await loop.shutdown_asyncgens()


def leave_threads(seconds: float = 1.0) -> None:
    """End this process where threads continue for longer: what llguidance does knows no end."""
    ends = time.monotonic() + seconds
    others = [
        each
        for each in threading.enumerate()
        if each is not threading.current_thread() and not each.daemon
    ]
    for thread in others:
        thread.join(max(0.0, ends - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


@contextmanager
def serve_in_thread(app: FastAPI, settings: ServerSettings) -> Iterator[str]:
    """Serve in another thread meanwhile, at the address that this gives: for tests, notebooks.

    Raises ArgumentError where the address cannot be had.
    """
    with listening(settings) as sockets:
        begun: queue.SimpleQueue[str] = queue.SimpleQueue()
        server = _server(app, settings, sockets, begun.put)
        serving = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=sockets)), name="akunu server"
        )
        serving.start()
        try:
            yield begun.get(timeout=60)
        finally:
            server.end()
            serving.join()


def _server(
    app: FastAPI,
    settings: ServerSettings,
    sockets: list[socket.socket],
    ready: Callable[[str], None],
) -> _Server:
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        lifespan="on",
        loop="asyncio",
        http=partial(Connection, settings),  # type: ignore[arg-type]  # it calls what it gets
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(settings.drain_seconds),
    )
    return _Server(config, ready, settings, sockets)


class _Server(uvicorn.Server):
    """Tells when it is ready; a signal ends it, a second one at once."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[str], None],
        settings: ServerSettings,
        sockets: list[socket.socket],
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._settings = settings
        self._sockets = sockets

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        asyncio.get_running_loop().set_exception_handler(_Complaints())
        await super().startup(sockets)
        if self.started:
            self._ready(address(self._settings, self._sockets))

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take signals to end; uvicorn's own would raise them again when it is over."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main one gets signals
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, lambda *_: self.end()) for each in handled}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def end(self) -> None:
        """Take no more requests, and end when those under way have; called again: at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        state = getattr(getattr(self.config.app, "state", None), "akunu", None)
        if state is not None:
            state.is_ready = False


class _Complaints:
    """Takes what goes wrong in the event loop itself, as `loop.set_exception_handler` wants it.

    Where the process may have no more files, asyncio complains of thousands of connections a second
    that it cannot take, each with a traceback: here that is a line a minute.
    """

    def __init__(self) -> None:
        self._silent_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ValueError) and "_start_serving" in context.get("message", ""):
            return  # it would take connections again, and the server has ended meanwhile
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._silent_until:
            self._silent_until = loop.time() + 60
            _LOG.error(
                "no more connections are possible: this process has reached its limit of files "
                "(ulimit -n); new ones wait until others end"
            )


def address(settings: ServerSettings, sockets: list[socket.socket]) -> str:
    """Return where a client finds the server."""
    if settings.unix_socket is not None:
        return f"unix:{settings.unix_socket}"
    scheme = "https" if settings.tls_certificate else "http"
    host, port = sockets[0].getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"


@contextmanager
def listening(settings: ServerSettings) -> Iterator[list[socket.socket]]:
    """Have a socket at the address.

    Raises ArgumentError where the address cannot be had, or may not.
    """
    check_reach(settings)
    _check_certificate(settings)
    if settings.unix_socket is not None:
        with _unix_socket(settings.unix_socket, int(settings.unix_socket_mode, 8)) as found:
            yield [found]
        return
    with _bound(settings) as found:
        yield [found]


@contextmanager
def _unix_socket(path: Path, mode: int) -> Iterator[socket.socket]:
    """Have a socket of the file system, which no one but its mode allows can open at any time."""
    with socket.socket(socket.AF_UNIX) as found:
        try:
            if _is_left_over(path):
                path.unlink()
            before = os.umask(0o777 & ~mode)  # a mode set later would leave it open until then
            try:
                found.bind(str(path))
            finally:
                os.umask(before)
            made = path.stat().st_ino
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE and not path.is_socket():
                why = "another file has that name; remove it, or use another name"
            raise ArgumentError(f"cannot listen at the socket {path}: {why}") from None
        try:
            yield found
        finally:
            with suppress(OSError):
                if path.stat().st_ino == made:
                    path.unlink()


def _check_certificate(settings: ServerSettings) -> None:
    """Raise ArgumentError for files of TLS that cannot be read: uvicorn would not say which."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None or key is None:
        return
    for name, path in (("tls_certificate", certificate), ("tls_key", key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise ArgumentError(f"{name} {path} cannot be read: {error.strerror}") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        why = error.reason or "they have no certificate or key in PEM"
        raise ArgumentError(
            f"tls_certificate {certificate} and tls_key {key} cannot be used: {why}"
        ) from None


def _is_left_over(path: Path) -> bool:
    """Whether there is a socket on which no one listens any more."""
    if not path.exists() or not stat.S_ISSOCK(path.stat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False


def _bound(settings: ServerSettings) -> socket.socket:
    found = None
    try:
        family = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family[0], family[1])
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(family[4])
    except OSError as error:
        if found is not None:
            found.close()
        why = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            why += "; `akunu ps` lists the servers here, --port sets another port (0: any)"
        raise ArgumentError(
            f"cannot listen at {settings.host}, port {settings.port}: {why}"
        ) from None
    return found


def allow_connections() -> None:
    """Let this process have as many connections as the system allows, rather than 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def keep_address_space() -> None:
    """Where the process may have so much address space and no more, have threads take less of it.

    glibc gives each thread a heap of 64 MiB and 8 MiB of stack: eight requests at once would take
    half a GiB that no one uses. Called before there are threads.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    threading.stack_size(_STACK_BYTES)


def check_address_space() -> None:
    """Raise OutOfMemoryError where requests would find no room next to the model: libraries end the
    process then."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    taken = Path("/proc/self/statm")
    if limit == resource.RLIM_INFINITY or not taken.exists():
        return
    left = limit - int(taken.read_text().split()[0]) * resource.getpagesize()
    if left < _LEAST_LEFT:
        raise OutOfMemoryError(
            f"with its model loaded, the process may take {max(0, left) >> 20} MiB more (ulimit "
            f"-v), and a server needs {_LEAST_LEFT >> 20} MiB for requests: allow more, or load "
            "the model with a shorter context"
        )


def prepare_log() -> None:
    """Write the log of the server to stderr, a line each, with its time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for name in ("akunu.server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "akunu.server" else logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Whether a record is more than that the server was ended at once: Starlette takes that for an
    error, and says where everything stood."""
    return not record.getMessage().rstrip().endswith("CancelledError")
