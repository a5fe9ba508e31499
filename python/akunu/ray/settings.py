"""How many replicas there are and where; next to the settings of `akunu serve`.

>>> from akunu.ray.settings import RaySettings
>>> RaySettings(replicas=3, most_replicas=2)
Traceback (most recent call last):
...
akunu.errors.ArgumentError: replicas is 3; it must not be more than most_replicas, 2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from akunu.common.checks import MAX_UINT32
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.declarations import MEMORY, USUAL, check_options, option
from akunu.options.option_checks import Integers
from akunu.server.configuration import from_environment, from_file, value_of_text
from akunu.server.model_names import named_sources
from akunu.server.settings import (
    ServerSettings,
    _seconds,
    _text,
    declared_settings,
)

TABLE: Final = "ray"  # in akunu.toml; the environment has AKUNU_RAY_REPLICAS and so on
_OF_LISTENING: Final = ("host", "port", "tls_certificate", "tls_key")
_OF_ONE_MACHINE: Final = ("all_models", "models_dir", "allow_pull")
_OF_CONNECTIONS: Final = (
    "unix_socket",
    "unix_socket_mode",
    "header_seconds",
    "read_seconds",
)


@explains_typos_of_init
@dataclass(frozen=True, kw_only=True)
class RaySettings:
    """How replicas are spread. None is a setting's default. Raises ArgumentError for bad values."""

    cluster: str | None = option(
        None,
        _text,
        "Address of a Ray cluster, or auto to find one.",
        "ADDRESS",
        group=USUAL,
        default_is="a new cluster on this machine",
    )
    replicas: int | None = option(
        None,
        Integers(1, 10_000),
        "How many replicas run; with most_replicas, the fewest.",
        group=USUAL,
        default_is="as many as the cluster has room for",
    )
    most_replicas: int | None = option(
        None,
        Integers(1, 10_000),
        "Add replicas under load, up to this many.",
        group=USUAL,
        default_is="the same as replicas",
    )
    requests_per_replica: int = option(
        8,
        Integers(1, MAX_UINT32),
        "Concurrent requests that one replica serves before another is added.",
    )
    scale_up_seconds: float = option(
        30.0, _seconds, "Add replicas after this long under load.", "SECONDS"
    )
    scale_down_seconds: float = option(
        600.0, _seconds, "Remove replicas after this long without load.", "SECONDS"
    )
    processors: int | None = option(
        None,
        Integers(1, 10_000),
        "Processors of each replica, and its threads.",
        group=MEMORY,
        default_is="all of the smallest machine",
    )
    replica_gpus: int = option(
        0,
        Integers(0, 64),
        "GPUs that Ray reserves for each replica.",
        group=MEMORY,
    )
    fronts: int = option(
        1, Integers(1, 1000), "Processes that accept requests and pass them to replicas."
    )
    wait_seconds: float = option(
        60.0,
        _seconds,
        "A request that no replica accepts within this time gets status 503.",
        "SECONDS",
    )

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense, alone or together."""
        check_options(self)
        least, most = self.replicas or 1, self.most_replicas
        if most is not None and least > most:
            raise ArgumentError(
                f"replicas is {least}; it must not be more than most_replicas, {most}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterOptions:
    """All that an application is made of."""

    server: ServerSettings
    ray: RaySettings
    sources: Mapping[str, str]
    """What `akunu.load` takes, by the names of models."""


def cluster_options(
    models: list[str], config: Path | None, given: Mapping[str, Any]
) -> ClusterOptions:
    """Return settings of a command line, the environment and a file, in this order.

    `given`: values by name; None: not set. Raises ArgumentError for values that make no sense, and
    for settings without effect on a cluster.
    """
    configured = from_file(config)
    if configured.presets:
        raise ArgumentError(
            f"models.{next(iter(configured.presets))} is a table; on a cluster a model is a text, "
            "and its options are settings of all models"
        )
    ray_in_file = from_file(config, TABLE, RaySettings).settings
    server = {**configured.settings, **from_environment(), **_those_of(ServerSettings, given)}
    for name in _OF_ONE_MACHINE:
        if server.get(name):
            raise ArgumentError(f"{name} is set; a cluster serves the models that are named")
    for name in _OF_CONNECTIONS:
        if server.get(name) is not None:
            raise ArgumentError(f"{name} is set; Ray Serve manages the connections: leave it out")
    ray = {
        **ray_in_file,
        **from_environment(None, TABLE, RaySettings),
        **_those_of(RaySettings, given),
    }
    return ClusterOptions(
        server=ServerSettings(**server),
        ray=RaySettings(**ray),
        sources=named_sources(models or configured.models or ["ember"]),
    )


def options_of_serve(arguments: Mapping[str, Any]) -> ClusterOptions:
    """Return settings of Ray Serve's arguments, where values may be texts.

    Raises ArgumentError for values that make no sense, and for what says how to listen.
    """
    left = dict(arguments)
    models = left.pop("models", [])
    models = models.split() if isinstance(models, str) else models
    if isinstance(models, dict):
        models = [f"{name}={source}" for name, source in models.items()]
    known = {**declared_settings(), **declared_settings(RaySettings)}
    for name, value in left.items():
        if name not in known:
            raise ArgumentError(f"there is no setting {name!r}")
        if isinstance(value, str):
            left[name] = value_of_text(known[name], value)
    found = cluster_options(list(models), None, left)
    for name in (*_OF_LISTENING, "cluster"):
        settings = found.ray if name == "cluster" else found.server
        if getattr(settings, name) != type(settings).__dataclass_fields__[name].default:
            raise ArgumentError(
                f"{name} is set, but Ray Serve listens: leave it out and set http_options, or "
                f"start with `akunu ray`"
            )
    return found


def _those_of(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    names = declared_settings(kind)
    return {name: value for name, value in given.items() if name in names and value is not None}
