"""Keys, limits, ids and the log: what every request goes through."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_server import Serving

HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}


def post(client: httpx.Client, **headers: str) -> httpx.Response:
    return client.post("/v1/chat/completions", json=HELLO, headers=headers)


def test_a_key_may_be_in_any_of_three_headers(serving: Serving, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# two\nsecret-1\nsecret-2\n")
    with serving(api_keys=["secret-0"], api_key_file=keys) as client:
        for key in ("secret-0", "secret-1", "secret-2"):
            assert post(client, authorization=f"Bearer {key}").status_code == 200
            assert post(client, **{"x-api-key": key}).status_code == 200
            assert post(client, **{"api-key": key}).status_code == 200
        for headers in ({}, {"authorization": "Bearer secret-3"}, {"authorization": "secret-0"}):
            answer = post(client, **headers)
            assert answer.status_code == 401
            error = answer.json()["error"]
            assert error["code"] == "invalid_api_key"
            assert error["type"] == "authentication_error"
            assert "secret" not in answer.text
        for path in ("/v1/models", "/metrics", "/openapi.json", "/nothing"):
            assert client.get(path).status_code == 401
        for path in ("/health", "/ready"):
            assert client.get(path).status_code == 200


def test_a_body_that_is_too_large_is_refused(serving: Serving) -> None:
    with serving(max_body=1000) as client:
        assert post(client).status_code == 200
        for content in (b"x" * 1001, (b"x" * 501 for _ in range(2))):  # the latter in chunks
            answer = client.post("/v1/chat/completions", content=content)
            assert answer.status_code == 413
            error = answer.json()["error"]
            assert error["code"] == "request_too_large"
            assert "1000 bytes" in error["message"]
        assert post(client).status_code == 200


def test_a_body_that_comes_too_slowly_is_given_up(serving: Serving) -> None:
    with serving(body_seconds=0.05) as client:
        host, port = client.base_url.host, client.base_url.port
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(
                b"POST /chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{"
            )
            assert b" 408 " in connection.recv(4000)


def test_an_answer_has_an_id_and_keeps_the_clients_own(client: httpx.Client) -> None:
    assert client.get("/health", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == (
        "mine-1"
    )
    ids = [client.get("/nothing", headers={"x-request-id": "a b"}).headers["x-request-id"]]
    ids += [post(client).headers["x-request-id"]]
    assert all(each.startswith("req_") for each in ids)
    assert len(set(ids)) == 2


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "access" in record.name]


@pytest.mark.parametrize("form", ["text", "json", "none"])
def test_the_log_has_a_line_without_the_prompt(
    serving: Serving, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    caplog.set_level(logging.INFO, "akunu.server.access")
    with serving(access_log=form, api_keys=["secret"]) as client:
        answer = post(client, authorization="Bearer secret")
        client.get("/a%0Ab%20c", headers={"authorization": "Bearer secret"})
    lines = lines_of(caplog)
    if form == "none":
        assert lines == []
        return
    first, second = lines
    assert "Hello" not in "".join(lines)
    assert "secret" not in "".join(lines)
    usage = answer.json()["usage"]
    if form == "json":
        facts: dict[str, Any] = json.loads(first)
        assert facts["status"] == 200
        assert facts["path"] == "/v1/chat/completions"
        assert facts["model"] == "ember"
        assert facts["completion_tokens"] == 1
        assert facts["prompt_tokens"] == usage["prompt_tokens"]
        assert facts["finish_reason"] == "length"
        assert facts["request_id"] == answer.headers["x-request-id"]
        assert json.loads(second)["path"] == "/a\nb c"
    else:
        assert first.startswith("POST /v1/chat/completions 200 request_id=req_")
        assert " completion_tokens=1 " in first
        assert "\n" not in second


def test_prompts_are_logged_where_that_is_asked_for(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "akunu.server.access")
    with serving(log_prompts=True, access_log="json") as client:
        post(client)
    (line,) = lines_of(caplog)
    assert json.loads(json.loads(line)["body"]) == HELLO


def test_a_client_that_leaves_during_its_upload_is_a_line_of_the_log(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with serving() as client:
        host, port = client.base_url.host, client.base_url.port
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{"
            )
    (line,) = lines_of(caplog)
    assert line.startswith("POST /v1/messages 499 ")
    assert not any(record.exc_info for record in caplog.records)


def test_requests_beyond_the_rate_wait(serving: Serving) -> None:
    with serving(rate_limit=2, api_keys=["a", "b"]) as client:
        statuses = [post(client, authorization="Bearer a").status_code for _ in range(2)]
        assert statuses == [200, 200]
        answer = post(client, authorization="Bearer a")
        assert answer.status_code == 429
        error = answer.json()["error"]
        assert error["code"] == "rate_limit_exceeded"
        assert error["type"] == "rate_limit_error"
        assert 0 < int(answer.headers["retry-after"]) <= 30
        assert post(client, authorization="Bearer b").status_code == 200
        assert client.get("/health").status_code == 200


def test_another_origin_has_no_access_unless_it_is_named(serving: Serving) -> None:
    evil = {"origin": "https://evil.example"}
    asked = {**evil, "access-control-request-method": "POST"}
    with serving() as client:
        answer = client.options("/v1/chat/completions", headers=asked)
        assert "access-control-allow-origin" not in answer.headers
        answer = post(client, **evil)
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "origin_not_allowed"
        assert post(client, origin=str(client.base_url).rstrip("/")).status_code == 200
    with serving(cors_origins=["https://good.example"]) as client:
        asked["origin"] = "https://good.example"
        answer = client.options("/v1/chat/completions", headers=asked)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://good.example"
        answer = post(client, origin="https://good.example")
        assert answer.headers["access-control-allow-origin"] == "https://good.example"
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert post(client, **evil).status_code == 403


def test_an_origin_that_is_named_may_use_a_private_network(serving: Serving) -> None:
    asked = {
        "origin": "https://good.example",
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
    }
    with serving(cors_origins=["https://good.example"]) as client:
        answer = client.options("/v1/chat/completions", headers=asked)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-private-network"] == "true"
        evil = {**asked, "origin": "https://evil.example"}
        assert client.options("/v1/chat/completions", headers=evil).status_code == 400
    with serving(cors_origins=["*"]) as client:
        answer = client.options("/v1/chat/completions", headers=asked)
        assert "access-control-allow-private-network" not in answer.headers


def test_a_name_that_somebody_pointed_at_this_machine_is_refused(serving: Serving) -> None:
    with serving() as client:
        for host in ("evil.example", "127.0.0.1.evil.example", "a.localhost", "0.0.0.0", "[::]:5"):
            answer = post(client, host=host)
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "host_not_allowed"
        for host in ("localhost", "localhost:80", "127.0.0.1", "[::1]:5", "host.docker.internal"):
            assert post(client, host=host).status_code == 200
    with serving(api_keys=["a"]) as client:
        assert post(client, host="evil.example", authorization="Bearer a").status_code == 200
