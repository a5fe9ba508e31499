"""Which pages and names a server without keys answers: other web sites cannot use it in a browser.

A page from anywhere may send a request to this machine (it cannot read the answer, but the model
has worked), and a site's name may be pointed at 127.0.0.1, so that its page may even read. Where
there are keys, neither has one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from inspect import signature
from typing import Any
from urllib.parse import urlsplit

from akunu.server.fields.table import IGNORED_HEADER
from akunu.server.http.errors import ApiError
from akunu.server.settings import ServerSettings

# No public DNS server resolves these names, so DNS rebinding cannot use them. Not among them: names
# below localhost, which may be pages of other programs, and 0.0.0.0, by which a page from another
# site can reach this machine.
_LOCALHOST, _INTERNAL = "localhost", ".internal"


def cors_options(settings: ServerSettings) -> dict[str, Any]:
    """Return the arguments of CORSMiddleware that let in pages of `cors_origins`."""
    from starlette.middleware.cors import CORSMiddleware

    private = {}
    if "allow_private_network" in signature(CORSMiddleware).parameters:  # older ones lack it
        # Chrome asks for it where a page from elsewhere uses a server of this machine or network.
        private["allow_private_network"] = "*" not in settings.cors_origins
    return {
        **private,
        "allow_origins": settings.cors_origins,
        "allow_methods": ["GET", "POST"],
        "allow_headers": ["*"],
        "expose_headers": ["x-request-id", IGNORED_HEADER],
    }


def refusal_of(headers: Mapping[bytes, bytes], settings: ServerSettings) -> ApiError | None:
    """Return the error for a request that another site's page may have sent, or None."""
    host = headers.get(b"host", b"").decode("latin-1")
    if settings.is_local and host and not _is_allowed_host(host, settings):
        return ApiError(
            403,
            f"the request is for the host {host!r}, which is not this server's name: "
            "add it to allowed_hosts, or set an API key",
            code="host_not_allowed",
        )
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin and not _is_allowed_origin(origin, host, settings):
        return ApiError(
            403,
            f"pages of {origin!r} may not use this server: add it to cors_origins, or set an "
            "API key",
            code="origin_not_allowed",
        )
    return None


def _is_allowed_host(host: str, settings: ServerSettings) -> bool:
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if name in (_LOCALHOST, settings.host, *settings.allowed_hosts) or name.endswith(_INTERNAL):
        return True
    if settings.unix_socket is not None:
        return True
    try:
        return not ipaddress.ip_address(name).is_unspecified
    except ValueError:
        return False


def _is_allowed_origin(origin: str, host: str, settings: ServerSettings) -> bool:
    if "*" in settings.cors_origins or origin in settings.cors_origins:
        return True
    scheme, separator, rest = origin.partition("://")
    if not separator:
        return False  # "null"
    # Programs that show their own pages (app://, vscode-webview://) are not web sites.
    return scheme not in ("http", "https") or rest == host
