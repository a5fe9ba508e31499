"""Behind proxies: whose address counts."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx
import pytest
from running_server import Serving

from akunu import ArgumentError
from akunu.server import ServerSettings
from akunu.server.http.proxies import TrustedProxies
from lines import each_line

HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}


@each_line(
    ("peer", "forwarded", "client"),
    [
        ("9.9.9.9", ["1.1.1.1"], "9.9.9.9"),  # not a proxy of ours
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1"], "1.1.1.1"),  # the client wrote the first one
        ("10.0.0.1", ["6.6.6.6", "1.1.1.1, 10.0.0.2"], "1.1.1.1"),  # two proxies, two headers
        ("10.0.0.1", ["10.0.0.7"], "10.0.0.7"),
        ("10.0.0.1", ["1.1.1.1, unknown"], "10.0.0.1"),
        ("fd00::1", ["[2001:db8::5]:443"], "2001:db8::5"),
        (None, ["1.1.1.1"], "1.1.1.1"),
    ],
)
def test_the_last_address_that_a_trusted_proxy_wrote_counts(
    peer: str | None, forwarded: list[str], client: str
) -> None:
    proxies = TrustedProxies(["10.0.0.0/8", "fd00::/8", "unix"])
    assert proxies.client(peer, forwarded) == client


def test_without_trust_a_socket_has_no_address() -> None:
    assert TrustedProxies([]).client(None, ["1.1.1.1"]) is None


@each_line("name", ["proxy.example", "10.0.0.1/8", "300.0.0.1", "*"])
def test_what_is_no_network_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="trusted_proxies is"):
        ServerSettings(trusted_proxies=(name,))


def statuses(client: httpx.Client, *addresses: str) -> list[int]:
    return [
        client.post(
            "/v1/chat/completions", json=HELLO, headers={"x-forwarded-for": address}
        ).status_code
        for address in addresses
    ]


def test_each_address_behind_a_proxy_has_a_rate_of_its_own(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "akunu.server.access")
    with serving(rate_limit=1, trusted_proxies=["127.0.0.1"]) as client:
        assert statuses(client, "1.1.1.1", "2.2.2.2", "1.1.1.1") == [200, 200, 429]
    assert " client=1.1.1.1 " in caplog.text
    assert "127.0.0.1" not in caplog.text
    with serving(rate_limit=1) as client:
        assert statuses(client, "1.1.1.1", "2.2.2.2") == [200, 429]


def test_the_socket_of_a_proxy_may_be_trusted(serving: Serving, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with (
        serving(rate_limit=1, trusted_proxies="unix", unix_socket=path),
        httpx.Client(
            transport=httpx.HTTPTransport(uds=str(path)), base_url="http://x", timeout=60
        ) as client,
    ):
        assert statuses(client, "1.1.1.1", "2.2.2.2", "1.1.1.1") == [200, 200, 429]
