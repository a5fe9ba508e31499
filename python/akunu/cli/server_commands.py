"""The commands of the server: `akunu serve`, `akunu ps` and `akunu stop`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from akunu.cli import commands, options
from akunu.cli.serve_options import takes_settings
from akunu.cli.terminal import console
from akunu.ray.settings import RaySettings
from akunu.server.settings import ServerSettings

FirstModels = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL",
        help="A model, or NAME=MODEL to name it.",
        autocompletion=options.complete_model,
        show_default=False,
    ),
]
MoreModels = Annotated[
    list[str] | None,
    typer.Option(
        "--model", "-m", metavar="MODEL", help="Serve this model as well. May be repeated."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The file with settings. Default: akunu.toml."),
]


@takes_settings(ServerSettings)
def serve(
    first: FirstModels = None,
    model: MoreModels = None,
    config: ConfigFile = None,
    **settings: Any,
) -> int:
    """Serve models."""

    def run() -> int:
        return commands.serve.serve_models([*(first or ()), *(model or ())], config, settings)

    return console.reported(run)


@takes_settings(RaySettings, ServerSettings)
def ray(
    first: FirstModels = None,
    model: MoreModels = None,
    config: ConfigFile = None,
    **settings: Any,
) -> int:
    """Serve models with replicas on a Ray cluster."""

    def run() -> int:
        return commands.ray.serve_replicas([*(first or ()), *(model or ())], config, settings)

    return console.reported(run)


def show_servers(json: options.Json = False) -> int:
    """List the servers that run on this machine."""

    def run() -> int:
        return commands.servers.show_servers(as_json=json)

    return console.reported(run)


def stop_servers(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SERVER",
            help="Process ids or ports from `akunu ps`. Default: the only server that runs.",
            show_default=False,
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Stop every server.")] = False,
) -> int:
    """Stop servers after their running requests are finished."""

    def run() -> int:
        return commands.servers.stop_servers(servers or [], all_of_them=all)

    return console.reported(run)
