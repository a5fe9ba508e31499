"""`akunu ray` with two replicas on a cluster of its own, as a process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from test_metrics import until

OPTIONS = (
    *("--replicas", "2", "--processors", "1", "--drain-seconds", "60"),
    *("--max-waiting", "40"),
)


class Cluster:
    """The process, and what a client sees of it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.log = folder / "log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "akunu", "ray", "--port", str(port), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, "XDG_STATE_HOME": str(folder), "RAY_USAGE_STATS_ENABLED": "0"},
            )
        self.address = f"http://127.0.0.1:{port}"

    def is_there(self) -> bool:
        """Wait until it says so; False where Ray gives up, after the 30 s that it allows itself."""

        def decided() -> bool:
            return self.process.poll() is not None or "akunu: serving " in self.log.read_text()

        until(decided, seconds=300)
        said = self.log.read_text()
        assert self.process.poll() is None or "timed out during startup" in said, said
        return self.process.poll() is None

    def replica_pids(self) -> list[int]:
        """The processes of the replicas."""
        return list(self._descendants("ServeReplica:akunu:replicas"))

    def _descendants(self, title: str) -> dict[int, str]:
        """The arguments of those processes that began with this one and have a text in them."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (folder / "cmdline").read_bytes().decode(errors="replace")
                if title in arguments and self._is_ancestor(int(folder.name)):
                    found[int(folder.name)] = arguments
            except OSError:  # it has ended meanwhile
                continue
        return found

    def _is_ancestor(self, pid: int) -> bool:
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if pid == self.process.pid:
                return True
        return False

    def end(self) -> None:
        """End it as a terminal would; wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)
