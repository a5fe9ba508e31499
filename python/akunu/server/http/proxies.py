"""The client's address behind a proxy: `x-forwarded-for` counts if a trusted proxy wrote it.

Any client may send that header, and each proxy appends the address that its request came from. So
the header is read from its end, as long as the address that wrote an entry is trusted.

>>> proxies = TrustedProxies(["10.0.0.0/8"])
>>> proxies.client("10.0.0.1", ["1.1.1.1, 2.2.2.2"]), proxies.client("9.9.9.9", ["1.1.1.1"])
('2.2.2.2', '9.9.9.9')
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

UNIX: Final = "unix"
"""The name for clients of a socket of the file system."""


class _Network(Protocol):
    def __contains__(self, address: object) -> bool: ...


class TrustedProxies:
    """Addresses and networks whose `x-forwarded-for` is believed."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names`: addresses, networks (10.0.0.0/8) and "unix"; ValueError for anything else."""
        given = list(names)
        self._trusts_unix = UNIX in given
        self._networks: list[_Network] = [
            ipaddress.ip_network(name) for name in given if name != UNIX
        ]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self._trusts_unix or bool(self._networks)

    def client(self, peer: str | None, forwarded: Sequence[str]) -> str | None:
        """Return the address of the first client, as far as that can be believed.

        `peer`: who is connected, None at a socket of the file system; `forwarded`: the values of
        `x-forwarded-for`, in their order.
        """
        found = peer
        addresses = [each for value in forwarded for each in value.split(",")]
        while addresses and self._trusts(found):
            address = _address(addresses.pop())
            if address is None:  # not an address, as no proxy writes: only its writer is known
                break
            found = address
        return found

    def _trusts(self, name: str | None) -> bool:
        if name is None:
            return self._trusts_unix
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _address(text: str) -> str | None:
    """Return an address as it is written everywhere; some proxies add a port.

    >>> _address(" 1.2.3.4:80"), _address("[::1]:80"), _address("0:0:0:0:0:0:0:1"), _address("x")
    ('1.2.3.4', '::1', '::1', None)
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
