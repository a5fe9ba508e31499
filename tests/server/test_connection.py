"""What a connection may do besides HTTP: dawdle, talk nonsense, read nothing, die."""

from __future__ import annotations

import json
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import h11
import httpx
import pytest
from running_server import Serving
from test_metrics import samples, until
from test_serve_command import Start, start  # noqa: F401  # a fixture

from akunu.server.run import allow_connections
from akunu.server.running import running_servers
from lines import each_line

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"


def connected(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def rest_of(connection: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    found = b""
    while piece := connection.recv(1 << 16):
        found += piece
    return found


def hear(connection: socket.socket, text: bytes) -> None:
    """Read until the server has said so."""
    found = b""
    while text not in found:
        piece = connection.recv(1 << 16)
        assert piece, found
        found += piece


def error_in(answer: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error


@pytest.mark.parametrize("size", [70_000, 200_000, 2_000_000])
def test_headers_that_are_too_large_get_an_error_of_openais_shape(
    client: httpx.Client, size: int
) -> None:
    with connected(client) as connection:
        connection.sendall(HEAD + b"connection: close\r\nx: " + b"x" * size + b"\r\n\r\n")
        status, error = error_in(rest_of(connection))
    assert status == 431
    assert "headers" in error["message"]


@each_line(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # TLS
        b"GET /health HTTP/1.1\r\n\r\n",  # no host
        b"GET /health HTTP/one\r\nhost: localhost\r\n\r\n",
        HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        HEAD + b"content-length: -2\r\n\r\n{}",
        HEAD + b"content-length: 1e3\r\n\r\n{}",
        HEAD + b"transfer-encoding: gzip\r\n\r\n{}",
        HEAD + b"transfer-encoding: chunked\r\n\r\nno number\r\n",
        HEAD + b"a header without a colon\r\n\r\n",
        HEAD + b"x-nul: \x00\r\n\r\n",
    ],
)
def test_what_is_no_http_is_an_error_of_openais_shape(
    client: httpx.Client, request_: bytes
) -> None:
    with connected(client) as connection:
        connection.sendall(request_)
        status, error = error_in(rest_of(connection))
    assert status in (400, 501)
    assert error["type"] == ("invalid_request_error" if status == 400 else "server_error")
    assert client.get("/health").status_code == 200


def test_headers_that_come_too_slowly_are_given_up(serving: Serving) -> None:
    with serving(header_seconds=0.1) as client, connected(client) as connection:
        connection.sendall(HEAD)
        status, error = error_in(rest_of(connection))
        assert status == 408
        assert "headers" in error["message"]


def test_so_are_those_of_a_second_request(serving: Serving) -> None:
    with serving(header_seconds=0.1) as client, connected(client) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        hear(connection, b'{"status":"ok"}')
        connection.sendall(b"GET /hea")
        status, _ = error_in(rest_of(connection))
        assert status == 408


def test_a_connection_without_a_request_is_closed_without_a_word(serving: Serving) -> None:
    with serving(header_seconds=0.1) as client, connected(client) as connection:
        assert rest_of(connection) == b""


def test_many_slow_clients_do_not_keep_another_waiting(serving: Serving) -> None:
    with serving(header_seconds=0.5) as client:
        slow = [connected(client) for _ in range(200)]
        for each in slow:
            each.sendall(HEAD)
        assert client.get("/health").status_code == 200
        for each in slow:
            assert error_in(rest_of(each))[0] == 408
            each.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow less than they say")
def test_the_server_may_have_more_connections_than_a_shell_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
        allow_connections()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(hard, 65536), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_client_that_was_refused_does_not_hold_its_connection(serving: Serving) -> None:
    with serving(header_seconds=0.1, api_keys=["a"]) as client, connected(client) as connection:
        connection.sendall(HEAD + b"content-length: 1000\r\n\r\n{")
        assert error_in(rest_of(connection))[0] == 401


def test_a_body_that_is_too_large_is_refused_where_its_client_sees_it(serving: Serving) -> None:
    with serving(max_body=1000) as client, connected(client) as connection:
        connection.sendall(HEAD + b"content-length: 8000000\r\n\r\n" + b"x" * 8_000_000)
        hear(connection, b"request_too_large")
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")  # it goes on
        hear(connection, b'{"status":"ok"}')


def test_a_text_of_a_client_that_reads_nothing_is_given_up(
    start: Start,  # noqa: F811
    tmp_path: Path,
) -> None:
    body = {
        "messages": [{"role": "user", "content": "Hello"}],
        **{"ignore_eos": True, "stream": True, "logprobs": True, "top_logprobs": 20},
    }
    content = json.dumps(body).encode()
    path = str(tmp_path / "socket")  # which holds less than TCP before its writer has to wait
    start("--unix-socket", path, "--read-seconds", "0.1")
    transport = httpx.HTTPTransport(uds=path)
    with (
        httpx.Client(transport=transport, base_url="http://localhost") as client,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        connection.connect(path)
        connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(content) + content)
        until(lambda: samples(client).get("akunu_texts_total,ember,cancelled") == 1)
        assert samples(client)["akunu_texts_running,ember"] == 0


def asking(path: str, body: dict[str, Any], version: bytes = b"1.1") -> bytes:
    content = json.dumps(body).encode()
    head = b"POST %s HTTP/%s\r\nhost: localhost\r\n" % (path.encode(), version)
    return head + b"content-length: %d\r\n\r\n" % len(content) + content


def answers_in(received: bytes, n: int = 1) -> list[tuple[int, bytes]]:
    """What a client that knows HTTP reads: h11 is one."""
    reader = h11.Connection(h11.CLIENT)
    found = []
    reader.receive_data(received)
    reader.receive_data(b"")
    for _ in range(n):
        reader.send(h11.Request(method="POST", target="/", headers=[("host", "a")]))
        reader.send(h11.EndOfMessage())
        status, body = 0, b""
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                assert isinstance(event, h11.InformationalResponse), event
        found.append((status, body))
        if n > 1:
            reader.start_next_cycle()
    return found


SHORT = {"messages": [{"role": "user", "content": "Spell apple."}], "max_tokens": 4}


@each_line(
    ("body", "version", "end"),
    [
        (SHORT, b"1.1", b"}"),
        (SHORT, b"1.0", b"}"),
        ({**SHORT, "stream": True}, b"1.1", b"data: [DONE]\n\n"),
        ({**SHORT, "stream": True}, b"1.0", b"data: [DONE]\n\n"),
        ({"messages": []}, b"1.1", b"}"),
    ],
)
def test_a_client_that_ends_its_side_gets_its_answer(
    client: httpx.Client, body: dict[str, Any], version: bytes, end: bytes
) -> None:
    with connected(client) as connection:
        connection.sendall(asking("/v1/chat/completions", body, version))
        connection.shutdown(socket.SHUT_WR)
        received = rest_of(connection)
    assert received.startswith(b"HTTP/1.1 " + (b"200" if body["messages"] else b"400"))
    ((_, text),) = answers_in(received)
    assert text.endswith(end)


def test_so_does_one_whose_answer_takes_long(client: httpx.Client) -> None:
    long = {**SHORT, "max_tokens": 600, "n": 2, "ignore_eos": True}
    for body in (long, {**long, "stream": True}):
        with connected(client) as connection:
            connection.sendall(asking("/v1/chat/completions", body))
            connection.shutdown(socket.SHUT_WR)
            received = rest_of(connection)
        assert received.startswith(b"HTTP/1.1 100 Continue") is ("stream" not in body)
        ((status, text),) = answers_in(received)
        assert status == 200
        assert text.count(b'"length"') == 2


def test_requests_in_a_row_are_all_answered(client: httpx.Client) -> None:
    with connected(client) as connection:
        asked = asking("/v1/chat/completions", SHORT)
        connection.sendall(asked + asked + b"GET /hea")
        connection.shutdown(socket.SHUT_WR)
        first, second = answers_in(rest_of(connection), 2)
    assert first[0] == second[0] == 200


@pytest.mark.parametrize("stream", [False, True])
def test_the_text_of_a_client_that_is_gone_ends(serving: Serving, stream: bool) -> None:
    endless = {**SHORT, "max_tokens": 100_000, "ignore_eos": True, "stream": stream}
    endless["context_overflow"] = "shift"
    with serving() as client:
        with connected(client) as connection:
            connection.sendall(asking("/v1/chat/completions", endless))
            until(lambda: samples(client).get("akunu_texts_running,ember") == 1)
        until(lambda: samples(client).get("akunu_texts_total,ember,cancelled") == 1)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
def test_without_files_it_waits_and_says_so_once(start: Start) -> None:  # noqa: F811
    process, address = start()
    n_open = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (n_open + 5, n_open + 5))
    host, _, port = address.removeprefix("http://").partition(":")
    held = [socket.create_connection((host, int(port)), timeout=30) for _ in range(30)]
    time.sleep(1.5)
    for each in held:
        each.close()
    assert httpx.get(f"{address}/health", timeout=30).status_code == 200
    process.terminate()
    log = process.communicate(timeout=30)[1]
    assert log.count("no more connections are possible") == 1
    assert len(log.splitlines()) < 20


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..%2f..%2fetc%2fpasswd"])
def test_the_name_of_a_model_is_never_a_path(client: httpx.Client, name: str) -> None:
    for path in ("chat/completions", "completions", "messages", "responses", "tokenize"):
        text = {"responses": "input", "completions": "prompt"}.get(path, "content")
        body = {"model": name, text: "a", "messages": [{"role": "user", "content": "a"}]}
        answer = client.post(f"/v1/{path}", json=body)
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "model_not_found"
    for path in ("/api/show", "/api/chat", "/api/generate"):
        assert client.post(path, json={"model": name}).status_code == 404
    for path in (f"/v1/models/{name}", f"/page/{name}", f"/props?model={name}"):
        assert client.get(path).status_code == 404


def test_after_a_kill_there_is_nothing_to_repair(
    start: Start,  # noqa: F811
    tmp_path: Path,
) -> None:
    state = tmp_path / "state" / "akunu" / "servers"
    process, address = start()
    assert [each.pid for each in running_servers(state)] == [process.pid]
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    assert running_servers(state) == []
    path = tmp_path / "socket"
    for _ in range(2):  # the second one finds the socket of the first
        process, _ = start("--unix-socket", str(path))
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport, base_url="http://localhost") as client:
            assert client.get("/health").status_code == 200
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    process, again = start("--port", address.rpartition(":")[2])
    assert again == address
    assert httpx.get(f"{address}/health").status_code == 200
