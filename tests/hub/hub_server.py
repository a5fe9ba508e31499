"""A hub of ours on loopback: real HTTP, what huggingface_hub asks for, and faults on demand.

Large files are sent as the hub sends them: `resolve` answers with a redirect to another host
("localhost" in the place of "127.0.0.1"), where the content is under its checksum.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

LFS_FROM = 1000  # bytes; smaller files are in git itself
TOKEN = "hf_of_a_reader"


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Repo:
    files: dict[str, bytes]
    commit: str = "a" * 40
    is_gated: bool = False
    is_private: bool = False


@dataclass
class Hub:
    """What the server has, what it shall do wrong, and what it was asked."""

    address: str = ""
    repos: dict[str, Repo] = field(default_factory=dict)
    plain: dict[str, bytes] = field(default_factory=dict)
    """Files of a web server that is no hub, by path."""
    plain_headers: dict[str, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    break_after: list[int] = field(default_factory=list)
    """For each content that is sent next: close the connection after so many bytes."""
    statuses: list[int] = field(default_factory=list)
    """Answers of the next requests for contents."""
    damage: bool = False
    """Send contents with a wrong last byte."""
    ignores_ranges: bool = False
    is_portal: bool = False
    """Answer everything with a login page, as the network of a hotel does."""
    on_content: Callable[[int], None] | None = None
    """Called with the bytes sent so far, while contents are sent."""

    def reset(self) -> None:
        fresh = Hub(address=self.address)
        self.__dict__.update(fresh.__dict__)

    def paths(self, method: str = "GET", part: str = "") -> list[str]:
        return [r.path for r in self.requests if r.method == method and part in r.path]

    def contents(self) -> list[str]:
        """The Range of each request for a large content; "" for all of it."""
        return [r.headers.get("range", "") for r in self.requests if "/cdn/" in r.path]


@lru_cache
def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_id(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub  # set on a subclass per server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        hub.requests.append(Request(self.command, self.path, headers))
        if hub.is_portal:
            self._send(
                200, b"<!doctype html><title>Log in</title>", **{"Content-Type": "text/html"}
            )
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            self._send_info(found[1], found[2] or "main")
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._send_resolved(found[1], found[2], found[3])
        elif path.startswith("/cdn/"):
            contents = (c for repo in hub.repos.values() for c in repo.files.values())
            self._send_content(next(c for c in contents if sha256(c) == path[5:]))
        elif path in hub.plain:
            self._send_content(hub.plain[path], **hub.plain_headers)
        else:
            self._send(404, b"not found")

    def _repo(self, name: str, *, for_content: bool) -> Repo | None:
        """Return a repository that the caller may see; else answer why not."""
        repo = self.hub.repos.get(name)
        sent = self.headers.get("Authorization", "")
        if sent and sent != f"Bearer {TOKEN}" and "stranger" not in sent:
            message = {"X-Error-Message": "Invalid credentials in Authorization header"}
            self._send(401, b"", **message)
        elif repo is None or (repo.is_private and sent != f"Bearer {TOKEN}"):
            error = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            self._send(404 if sent else 401, b"", **error)
        elif repo.is_gated and for_content and sent != f"Bearer {TOKEN}":
            self._send(403 if sent else 401, b"", **{"X-Error-Code": "GatedRepo"})
        else:
            return repo
        return None

    def _send_info(self, name: str, revision: str) -> None:
        repo = self._repo(name, for_content=False)
        if repo is None:
            return
        if revision not in ("main", repo.commit):
            self._send(404, b"", **{"X-Error-Code": "RevisionNotFound"})
            return
        siblings = []
        for path, data in repo.files.items():
            entry: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": git_id(data)}
            if len(data) >= LFS_FROM:
                entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        gated = "manual" if repo.is_gated else False
        info = {"id": name, "modelId": name, "sha": repo.commit, "siblings": siblings}
        info |= {"gated": gated, "private": repo.is_private, "tags": ["gguf"], "downloads": 1}
        self._send(200, json.dumps(info).encode(), **{"Content-Type": "application/json"})

    def _send_resolved(self, name: str, revision: str, path: str) -> None:
        repo = self._repo(name, for_content=True)
        if repo is None:
            return
        headers = {"X-Repo-Commit": repo.commit}
        if revision not in ("main", repo.commit):
            self._send(404, b"", **{"X-Error-Code": "RevisionNotFound"})
        elif path not in repo.files:
            self._send(404, b"", **headers, **{"X-Error-Code": "EntryNotFound"})
        elif len(repo.files[path]) < LFS_FROM:
            data = repo.files[path]
            self._send_content(data, **headers, ETag=f'"{git_id(data)}"')
        else:
            data = repo.files[path]
            port = urlsplit(self.hub.address).port
            headers |= {
                "X-Linked-Etag": f'"{sha256(data)}"',
                "X-Linked-Size": str(len(data)),
                "Location": f"http://localhost:{port}/cdn/{sha256(data)}",
            }
            self._send(302, b"", **headers)

    def _send_content(self, data: bytes, **headers: str) -> None:
        hub = self.hub
        if hub.statuses:
            self._send(hub.statuses.pop(0), b"")
            return
        headers = {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream", **headers}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        is_same = condition is None or condition == headers.get("ETag")
        begin, end, status = 0, len(data), 200
        if wanted and is_same and not hub.ignores_ranges:
            begin, end = int(wanted[1]), min(end, int(wanted[2] or len(data)) + 1)
            if begin >= len(data):
                self._send(416, b"", **{"Content-Range": f"bytes */{len(data)}"})
                return
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            status = 206
        body = data[begin:end]
        if hub.damage and end == len(data):
            body = body[:-1] + bytes([body[-1] ^ 1])
        is_rest = wanted is None or not wanted[2]  # of a download, not of a look at the header
        cut = (
            hub.break_after.pop(0)
            if hub.break_after and is_rest and self.command == "GET"
            else None
        )
        self._send(status, body, cut=cut, **headers)

    def _send(self, status: int, body: bytes, cut: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if cut is not None:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body if cut is None else body[:cut]
        for start in range(0, len(body), 1 << 16):
            if self.hub.on_content and status in (200, 206):
                self.hub.on_content(start)
            self.wfile.write(body[start : start + (1 << 16)])
        if cut is not None:
            self.close_connection = True


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # whoever hangs up in the middle of a file is part of the tests


def serve() -> tuple[Hub, QuietServer]:
    """Start a hub at a free port; return it and the server, which is to be shut down."""
    hub = Hub()
    handler = type("HubHandler", (Handler,), {"hub": hub})
    server = QuietServer(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return hub, server
