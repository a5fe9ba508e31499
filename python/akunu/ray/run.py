"""Starting the application on a cluster, and ending it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import ray
from ray import serve

from akunu.errors import AkunuError, ArgumentError
from akunu.ray.application import built
from akunu.ray.settings import ClusterOptions
from akunu.server.run import check_reach
from akunu.server.settings import ServerSettings

_NAME: Final = "akunu"
_QUIET: Final = {"log_level": "WARNING", "enable_access_log": False}  # the server has its own log


@contextmanager
def serving(asked: ClusterOptions) -> Iterator[str]:
    """Have the application on a cluster meanwhile, at the address that this gives.

    At the end what is under way has `drain_seconds`. Raises ArgumentError for settings with which
    Ray Serve cannot listen, AkunuError where replicas do not start.
    """
    settings = asked.server
    check_reach(settings)
    if settings.port == 0:
        raise ArgumentError("port is 0; Ray Serve needs a fixed port")
    with ExitStack() as ends:
        try:
            ray.init(
                address=asked.ray.cluster or "local",
                include_dashboard=None if asked.ray.cluster else False,
                logging_level=logging.WARNING,
            )
        except Exception as error:  # Ray raises all kinds, some of them Exception itself
            where = f"at {asked.ray.cluster}" if asked.ray.cluster else "on this machine"
            raise AkunuError(f"the Ray cluster {where} cannot be used: {error}") from error
        ends.callback(ray.shutdown)
        serve.start(
            http_options={
                "host": settings.host,
                "port": settings.port,
                "ssl_certfile": _text(settings.tls_certificate),
                "ssl_keyfile": _text(settings.tls_key),
            },
            logging_config=_QUIET,
        )
        if not asked.ray.cluster:
            ends.callback(serve.shutdown)
        ends.callback(serve.delete, _NAME)
        try:
            serve.run(built(asked), name=_NAME, route_prefix="/", logging_config=_QUIET)
        except RuntimeError as error:
            raise AkunuError(f"the replicas do not start: {error}") from None
        yield _address(settings)


def wait_for_the_end() -> None:
    """Wait for SIGINT or SIGTERM."""
    ended = threading.Event()
    handled = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda *_: ended.set()) for each in handled}
    try:
        ended.wait()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _address(settings: ServerSettings) -> str:
    scheme = "https" if settings.tls_certificate else "http"
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{shown}:{settings.port}"


def _text(path: object | None) -> str | None:
    return None if path is None else str(path)
