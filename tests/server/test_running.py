"""`akunu ps` and `akunu stop`: servers are found as long as they live, however they end."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import httpx
import pytest
from test_serve_command import Start, start  # noqa: F401  # a fixture

from akunu.cli.main import main
from akunu.server.running import noted, running_servers


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "akunu" / "servers"


def test_a_server_is_listed_while_it_runs(state: Path) -> None:
    assert running_servers(state) == []
    with noted("http://127.0.0.1:80", ["a", "b"], state):
        (server,) = running_servers(state)
        assert server.pid == os.getpid()
        assert server.address == "http://127.0.0.1:80"
        assert server.models == ("a", "b")
        assert next(state.glob("*.json")).stat().st_mode & 0o777 == 0o600
    assert running_servers(state) == []
    assert list(state.iterdir()) == []


def test_what_a_dead_process_left_is_taken_away(state: Path) -> None:
    state.mkdir(parents=True)
    (state / "1.json").write_text('{"pid": 1, "address": "", "models": [], "began": 0}')
    (state / "2.json").write_text("half a fi")
    assert running_servers(state) == []
    assert list(state.iterdir()) == []


def test_a_server_without_a_home_does_without(tmp_path: Path) -> None:
    with noted("http://x", [], None):
        assert running_servers(None) == []
    (tmp_path / "file").write_text("")
    with noted("http://x", [], tmp_path / "file" / "servers"):
        pass


@pytest.mark.parametrize("room", [0, 10])
def test_a_server_on_a_full_disk_does_without(state: Path, room: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with noted("http://127.0.0.1:80", [], state):
            assert list(state.iterdir()) == []
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_stop_ends_the_one_that_is_meant(
    start: Start,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    process, address = start()
    assert main(["ps", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["pid"] == process.pid
    assert listed["address"] == address
    assert listed["models"] == ["ember"]
    assert main(["stop", "1"]) == 1
    assert "no server on this machine" in capsys.readouterr().err
    assert httpx.get(f"{address}/health").status_code == 200
    assert main(["stop", address.rpartition(":")[2]]) == 0
    assert f"stopped {process.pid}" in capsys.readouterr().err
    assert process.wait(timeout=30) == 0
    assert main(["stop"]) == 1
    assert "no server runs on this machine" in capsys.readouterr().err
    assert main(["ps"]) == 0


def test_of_several_one_must_be_named(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with noted("http://127.0.0.1:80", ["a"], state):
        assert main(["stop", "80", "--all"]) == 2
        other = state / "x.json"
        other.write_bytes(next(state.glob("*.json")).read_bytes())
        with other.open("rb") as file:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            assert main(["stop"]) == 2
    assert "several servers run" in capsys.readouterr().err
