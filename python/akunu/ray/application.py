"""The application of Ray Serve: fronts that let requests in, and replicas that answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Final

import ray
from ray import serve
from ray.exceptions import RayActorError, RayError, TaskCancelledError
from ray.serve.config import RequestRouterConfig
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from akunu.errors import ArgumentError
from akunu.options.engine_limits import SIDE_BY_SIDE
from akunu.ray.exchange import Part
from akunu.ray.forwarded import Forwarded
from akunu.ray.front import ReplicaDiedError, Replicas, front
from akunu.ray.replica import Replica
from akunu.ray.settings import ClusterOptions, RaySettings
from akunu.server.http.errors import RETRY_AFTER_SECONDS, ApiError
from akunu.server.http.keys import Keys
from akunu.server.run import prepare_log
from akunu.server.settings import ServerSettings

_LONGER: Final = 10  # seconds that a front outlives replicas, whose deaths it has to tell


def built(asked: ClusterOptions) -> Any:
    """Return the application, bound for `serve.run`.

    Raises ArgumentError where the cluster has no room for the replicas, or there is none yet that
    could say how many there should be.
    """
    settings = asked.server
    processors, n_replicas = room(asked.ray)
    inner = replace(
        settings,
        api_keys=(),
        api_key_file=None,
        rate_limit=0,
        cors_origins=(),
        threads=settings.threads or processors,
    )
    replicas = serve.deployment(
        Replica,
        name="replicas",
        ray_actor_options={"num_cpus": processors, "num_gpus": asked.ray.replica_gpus},
        max_ongoing_requests=SIDE_BY_SIDE + settings.max_waiting,
        max_queued_requests=settings.max_waiting,
        graceful_shutdown_timeout_s=settings.drain_seconds,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=5,
        health_check_timeout_s=30,
        max_constructor_retry_count=3,
        request_router_config=RequestRouterConfig(
            request_router_class="akunu.ray.router.ReplicaRouter"
        ),
        **_numbers(asked.ray, n_replicas),
    )
    fronts = serve.deployment(
        serve.ingress()(Front),
        name="fronts",
        num_replicas=asked.ray.fronts,
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=10_000,
        graceful_shutdown_timeout_s=settings.drain_seconds + _LONGER,
        graceful_shutdown_wait_loop_s=0.5,
    )
    # Keys are read here: the file is where the command line is, and only digests travel.
    keys = Keys.of(settings)
    outer = replace(settings, api_keys=(), api_key_file=None)
    bound = replicas.bind(inner, dict(asked.sources))
    return fronts.bind(bound, outer, keys, asked.ray.wait_seconds)


def room(settings: RaySettings) -> tuple[int, int]:
    """Return the processors of each replica, and how many replicas the cluster has room for.

    Raises ArgumentError where there is room for less than was requested.
    """
    if not ray.is_initialized():  # `serve run` asks what to run before it looks for a cluster
        if settings.replicas is None or settings.processors is None:
            raise ArgumentError("there is no Ray cluster yet: set replicas and processors")
        return settings.processors, settings.replicas
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    machines = [each for each in machines if each.get("CPU", 0) >= 1]
    if not machines:
        raise ArgumentError("no machine of the Ray cluster has a processor for replicas")
    processors = settings.processors or int(min(each["CPU"] for each in machines))
    n_replicas = 0
    for each in machines:
        fitting = int(each["CPU"] // processors)
        if settings.replica_gpus:
            fitting = min(fitting, int(each.get("GPU", 0) // settings.replica_gpus))
        n_replicas += fitting
    needed = settings.replicas or 1
    if n_replicas < needed:
        gpus = f" and {settings.replica_gpus} GPUs" if settings.replica_gpus else ""
        raise ArgumentError(
            f"the Ray cluster has room for {n_replicas} replicas of {processors} processors{gpus} "
            f"each; replicas is {needed}"
        )
    return processors, n_replicas


def _numbers(settings: RaySettings, n_replicas: int) -> dict[str, Any]:
    if settings.most_replicas is None:
        return {"num_replicas": settings.replicas or n_replicas}
    return {
        "autoscaling_config": {
            "min_replicas": settings.replicas or 1,
            "max_replicas": settings.most_replicas,
            "target_ongoing_requests": settings.requests_per_replica,
            "upscale_delay_s": settings.scale_up_seconds,
            "downscale_delay_s": settings.scale_down_seconds,
        }
    }


class Front:
    """A deployment of Ray Serve: the application of `front`, which reaches replicas by a handle."""

    def __init__(
        self, replicas: Any, settings: ServerSettings, keys: Keys, wait_seconds: float
    ) -> None:
        """`replicas`: the handle of their deployment."""
        prepare_log()
        self._app = _without_id(front(settings, keys, ByHandle(replicas, wait_seconds)))

    def __serve_build_asgi_app__(self) -> Any:  # Ray Serve's name
        """Return the application; called by Ray Serve."""
        return self._app


def _without_id(app: ASGIApp) -> ASGIApp:
    """Leave out the id of an answer, which Ray Serve adds itself."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [each for each in message["headers"] if each[0] != b"x-request-id"]
                message = {**message, "headers": kept}
            await send(message)

        await app(scope, receive, sent)

    return answered


class ByHandle(Replicas):
    """Replicas after a handle of Ray Serve."""

    def __init__(self, handle: Any, wait_seconds: float) -> None:
        """`wait_seconds`: how long a request may be without a replica."""
        self._handle = handle
        self._answers = handle.options(method_name="answer", stream=True)
        self._wait_seconds = wait_seconds

    async def answer(self, request: Forwarded) -> AsyncGenerator[str | Part, None]:
        """Have one answer; closing the generator cancels its texts."""
        response = self._answers.remote(request)
        name: str | None = None
        try:
            name = str(await asyncio.wait_for(anext(response), self._wait_seconds))
            yield name
            async for part in response:
                yield part
        except (asyncio.CancelledError, GeneratorExit):  # the client went away
            response.cancel()
            raise
        except asyncio.TimeoutError:
            response.cancel()
            message = f"no replica took the request within {self._wait_seconds:g} s"
            raise _no_replica(message) from None
        except BackPressureError:
            retry = {"retry-after": str(RETRY_AFTER_SECONDS)}
            message = "all replicas are busy, and many requests wait"
            raise ApiError(503, message, code="queue_full", headers=retry) from None
        except DeploymentUnavailableError:
            raise _no_replica("there is no replica") from None
        except (RayActorError, TaskCancelledError) as error:
            raise ReplicaDiedError(name) from error

    async def ask_all(self, request: Forwarded) -> list[tuple[str, int, bytes]]:
        """Return the names, statuses and bodies of all; one that dies meanwhile has none."""
        try:
            found = await self._handle.broadcast("ask", request).results_async(
                return_exceptions=True
            )
        except DeploymentUnavailableError:
            raise _no_replica("there is no replica") from None
        answers = [each for each in found if not isinstance(each, BaseException)]
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, RayError):
                raise each
        if not answers:
            raise _no_replica("no replica answered")
        return answers


def _no_replica(message: str) -> ApiError:
    retry = {"retry-after": str(RETRY_AFTER_SECONDS)}
    return ApiError(503, message, code="no_replica", headers=retry)
