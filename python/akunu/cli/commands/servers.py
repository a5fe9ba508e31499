"""`akunu ps` and `akunu stop`: the servers that run on this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from akunu.cli.terminal import console
from akunu.cli.terminal.console import UsageError
from akunu.cli.terminal.tables import write_rows
from akunu.errors import ArgumentError
from akunu.server.running import RunningServer, running_servers, servers_folder, stop_server


def show_servers(*, as_json: bool) -> int:
    """Write the servers of this user to stdout, the oldest first."""
    found = running_servers(servers_folder())
    if as_json:
        json.dump([asdict(each) for each in found], sys.stdout, ensure_ascii=False, indent=2)
        print()
        return 0
    rows = [
        (
            str(each.pid),
            each.address,
            ", ".join(each.models),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(each.began)),
        )
        for each in found
    ]
    write_rows("", ("pid", "address", "models", "since"), rows)
    return 0


def stop_servers(wanted: Sequence[str], *, all_of_them: bool) -> int:
    """End servers after their running requests; report which ones ended.

    `wanted`: process ids or ports; without any, there must be only one server.
    """
    if wanted and all_of_them:
        raise UsageError("--all stops every server: name no server with it")
    folder = servers_folder()
    found = running_servers(folder)
    if not wanted and not all_of_them and len(found) > 1:
        listed = ", ".join(f"{each.pid} ({each.address})" for each in found)
        raise UsageError(f"several servers run: {listed}; name one, or use --all")
    chosen = [_meant(each, found) for each in wanted] if wanted else found
    if not chosen:
        raise ArgumentError("no server runs on this machine")
    assert folder is not None, "there are some in it"
    for server in chosen:
        stop_server(server, folder)
        console.tell(f"akunu: stopped {server.pid}, {server.address}")
    return 0


def _meant(name: str, servers: Sequence[RunningServer]) -> RunningServer:
    for server in servers:
        if name == str(server.pid) or name == server.address.rpartition(":")[2]:
            return server
    raise ArgumentError(
        f"no server on this machine has the process id or port {name}; see akunu ps"
    )
