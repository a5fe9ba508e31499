"""How a server listens and ends, and models that nobody uses."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from running_server import Serving
from test_metrics import until
from test_serve_command import Start, start  # noqa: F401  # a fixture

from akunu.errors import ArgumentError
from akunu.server import ServerSettings
from akunu.server.run import listening

HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
ENDLESS = {"messages": HELLO["messages"], "ignore_eos": True, "stream": True}


def is_loaded(client: httpx.Client) -> bool:
    return bool(client.get("/v1/models").json()["data"][0]["loaded"])


def test_a_model_that_nobody_uses_is_unloaded_and_comes_back(serving: Serving) -> None:
    with serving(idle_seconds=0.02) as client:
        assert not is_loaded(client)
        for _ in range(2):
            assert client.post("/v1/chat/completions", json=HELLO).status_code == 200
            until(lambda: not is_loaded(client))


def test_a_model_in_use_is_not_unloaded(serving: Serving) -> None:
    with serving(idle_seconds=0.001) as client:
        answer = client.post("/v1/chat/completions", json={**ENDLESS, "max_tokens": 200})
    events = [line for line in answer.text.split("\n\n") if line]
    assert events[-1] == "data: [DONE]"
    assert json.loads(events[-2][6:])["choices"][0]["finish_reason"] == "length"


def test_it_listens_at_a_socket_of_the_file_system(
    start: Start,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "socket"
    process, address = start("--unix-socket", str(path))
    assert address == f"unix:{path}"
    assert path.stat().st_mode & 0o777 == 0o600
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://x") as each:
        assert each.get("/health").status_code == 200
        assert each.post("/v1/chat/completions", json=HELLO).status_code == 200
    with pytest.raises(ArgumentError, match="already in use"):
        ExitStack().enter_context(listening(ServerSettings(unix_socket=path)))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert not path.exists()


def test_a_socket_that_a_server_has_left_is_taken_over_with_the_mode_that_is_set(
    tmp_path: Path,
) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with listening(ServerSettings(unix_socket=path, unix_socket_mode="660")):
        assert path.stat().st_mode & 0o777 == 0o660
    assert not path.exists()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here to make a certificate")
def test_it_speaks_tls(serving: Serving, tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    with serving(tls_certificate=certificate, tls_key=key) as client:
        address = str(client.base_url)
        assert address.startswith("https://")
        import ssl

        trusting = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{address}/health", verify=trusting).status_code == 200


def test_what_is_under_way_comes_to_its_end_when_the_server_is_ended(
    start: Start,  # noqa: F811
) -> None:
    process, address = start()
    body = {**ENDLESS, "max_tokens": 300}
    with httpx.stream("POST", f"{address}/v1/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        next(lines)
        process.send_signal(signal.SIGTERM)
        rest = [line for line in lines if line]
    assert rest[-1] == "data: [DONE]"
    assert json.loads(rest[-2][6:])["choices"][0]["finish_reason"] == "length"
    assert process.wait(timeout=30) == 0


def test_a_whole_answer_that_takes_longer_than_it_may_is_an_error_of_its_dialect(
    start: Start,  # noqa: F811
) -> None:
    process, address = start("--drain-seconds", "0")
    body = {**ENDLESS, "stream": False, "n": 32}
    with ThreadPoolExecutor(2) as threads:
        asked = [
            threads.submit(httpx.post, f"{address}/v1/{route}", json=given, timeout=60)
            for route, given in (
                ("chat/completions", body),
                ("messages", {**HELLO, "max_tokens": 1000, "ignore_eos": True}),
            )
        ]
        until(lambda: 'akunu_engine_running{model="ember"} 0.0' not in metrics_of(address))
        process.send_signal(signal.SIGTERM)
        whole, other = (each.result() for each in asked)
    assert whole.status_code == 503
    assert whole.json()["error"]["code"] == "server_stopping"
    if other.status_code != 200:  # it may have been over
        assert other.json()["error"]["type"] == "overloaded_error"
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in log, log


def metrics_of(address: str) -> str:
    return httpx.get(f"{address}/metrics").text


def takes_requests(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").status_code == 200
    except httpx.TransportError:  # refused, or closed before it answered
        return False


def test_a_second_signal_ends_it_at_once_and_is_no_error(start: Start) -> None:  # noqa: F811
    process, address = start()
    body = {**ENDLESS, "n": 32}
    with httpx.stream("POST", f"{address}/v1/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        next(lines)
        process.send_signal(signal.SIGINT)
        until(lambda: not takes_requests(address))  # two signals that both wait are one to Python
        process.send_signal(signal.SIGINT)
        rest = [line for line in lines if line and line != "data: [DONE]"]
    assert json.loads(rest[-1][6:])["error"]["code"] == "server_stopping"
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in log, log


def test_what_takes_longer_than_it_may_is_told(start: Start) -> None:  # noqa: F811
    process, address = start("--drain-seconds", "0")
    body = {**ENDLESS, "n": 32}
    with httpx.stream("POST", f"{address}/v1/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        next(lines)
        process.send_signal(signal.SIGTERM)
        rest = [line for line in lines if line]
    assert json.loads(rest[-1][6:])["error"]["code"] == "server_stopping"
    assert process.wait(timeout=30) == 0


def test_a_thread_that_knows_no_end_does_not_keep_the_process() -> None:
    script = (
        "import threading, time; from akunu.server.run import leave_threads; "
        "threading.Thread(target=time.sleep, args=(60,)).start(); leave_threads(0.1)"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=30, check=False)
    assert done.returncode == 0
