"""`akunu ray`: replicas of the server on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from akunu.cli.terminal import console
from akunu.cli.wording import without_notation
from akunu.errors import AkunuError
from akunu.ray.settings import cluster_options
from akunu.server.running import noted, servers_folder


def serve_replicas(models: Sequence[str], config: Path | None, given: Mapping[str, Any]) -> int:
    """Serve until it is ended; the first model is loaded in every replica before.

    Raises ArgumentError for settings that make no sense, AkunuError where replicas do not start.
    """
    with without_notation():
        wanted = cluster_options(list(models), config, given)
    run = _installed()
    names = [name.partition(",")[0] for name in wanted.sources]
    with run.serving(wanted) as address, noted(address, names, servers_folder()):
        console.tell(f"akunu: serving {', '.join(names)} at {address}/v1")
        run.wait_for_the_end()
    return 0


def _installed() -> Any:
    """Return the module that serves; AkunuError where what it needs is not installed."""
    # Ray would leave out lines that are like others, and those of the access log are.
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    try:
        from akunu.ray import run  # an extra, which may not be installed
    except ImportError as error:
        raise AkunuError(
            f"packages are missing ({error.name}): pip install 'akunu[ray]', or '.[ray]' in a clone"
        ) from None
    return run
