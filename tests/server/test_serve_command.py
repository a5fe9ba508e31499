"""`akunu serve` as a process: it says where it is, answers, and ends when it is told to."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from akunu.cli.main import main

Start = Callable[..., tuple[subprocess.Popen[str], str]]
HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}


def _limited(mebibytes: str) -> Callable[[], None] | None:
    """What allows a process so much address space and no more."""
    limit = int(mebibytes or 0) << 20
    return (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start("--context", "64", AKUNU_SERVE_PORT="0")`: a process and its address."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "akunu", "serve", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            preexec_fn=_limited(environment.pop("AKUNU_TEST_LIMIT", "")),
            env={
                **os.environ,
                "AKUNU_SERVE_PORT": "0",
                "XDG_STATE_HOME": str(tmp_path / "state"),
                **environment,
            },
        )
        begun.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"akunu: serving .* at (\S+)/v1", line):
                return process, found[1]
        raise AssertionError(f"it ended with {process.wait()}")

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("command", ["serve", "ray"])
def test_a_refused_setting_is_said_without_notation_of_python(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, allowed in (
        ("--context", "an integer from 1 to 2147483647"),
        ("--threads", 'an integer from 1 to 256 or "auto"'),
    ):
        assert main([command, "ember", option, "0"]) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert line == f"akunu: error: {option[2:]} is 0; it must be {allowed}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_until_it_is_ended(start: Start, number: signal.Signals) -> None:
    process, address = start("small=ember", "--context", "64")
    answer = httpx.post(f"{address}/v1/chat/completions", json=HELLO)
    assert answer.json()["model"] == "small"
    assert httpx.get(f"{address}/v1/models").json()["data"][0]["max_model_len"] == 64
    process.send_signal(number)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    assert "POST /v1/chat/completions 200" in log
    assert "Hello" not in log
    assert "Traceback" not in log


def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments, message in (
            (["--port", "99999"], "port is 99999"),
            (["--host", "0.0.0.0"], "there is no API key"),
            (["none.gguf"], "none.gguf"),
            (["a=ember", "a=ember"], "two models are called 'a'"),
            (["--config", "no.toml"], "no.toml"),
            (["--port", str(port)], "Address already in use; `akunu ps` lists the servers"),
            (["--unix-socket", str(tmp_path)], "another file has that name"),
            (["ember", "b=none.gguf"], "none.gguf"),
            (["--tls-certificate", "no", "--tls-key", "no"], "tls_certificate no cannot be read"),
            (["--tls-certificate", "empty", "--tls-key", "empty"], "empty cannot be used: "),
            (["--unix-socket", "no/such/folder"], "cannot listen at the socket no/such/folder"),
            (["--memory", "5"], "memory is 5 bytes, and the model 'ember' takes"),
        ):
            assert main(["serve", *arguments]) == (2 if message == "port is 99999" else 1)
            line = capsys.readouterr().err.splitlines()[-1]
            assert line.startswith("akunu: error: ")
            assert message in line


def test_importing_akunu_loads_nothing_of_the_server() -> None:
    program = "import akunu, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {"fastapi", "uvicorn", "asyncio", "akunu.server"} & set(done.stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
def test_with_little_address_space_it_does_not_begin(tmp_path: Path) -> None:
    """What it would begin without, a library of it ends the process where it finds no room."""
    program = (
        "import resource, sys; n = 300 << 20; resource.setrlimit(resource.RLIMIT_AS, (n, n)); "
        "from akunu.cli.main import main; sys.exit(main(['serve', '--port', '0', 'ember', "
        "'--context', '4096', '--threads', '2']))"  # each takes 8 MiB for its stack
    )
    # NumPy takes some of the address space, for each of these threads.
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert re.search(r"may take \d+ MiB more \(ulimit -v\), and a server needs", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_threads_take_little_of_a_limited_address_space(start: Start) -> None:
    def taken(process: int) -> int:
        found = re.search(r"VmSize:\s*(\d+)", Path(f"/proc/{process}/status").read_text())
        return int(found[1]) >> 10 if found else 0

    process, address = start("--context", "64", AKUNU_TEST_LIMIT="1500")
    before = taken(process.pid)
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: httpx.post(f"{address}/v1/chat/completions", json=HELLO), range(8))
        )
    assert [each.status_code for each in answers] == [200] * 8
    assert taken(process.pid) < before + 200  # MiB
