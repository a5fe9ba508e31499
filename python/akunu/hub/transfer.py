"""Bytes by HTTP: a range of a file, or all of it, resumed where an earlier attempt ended.

All addresses use the client of huggingface_hub: it knows the proxies, the certificates and the
offline mode that the user has set. It sends a token only to sources that have one, and drops it if
a response redirects to another host.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from akunu.errors import ArgumentError, DownloadError
from akunu.hub.watch import Watch

_TIMEOUT_SECONDS = 30.0  # without a byte
_ATTEMPTS = 5  # that bring nothing, one after the other
_RANGE_ATTEMPTS = 3
_PAUSES = (0.0, 1.0, 2.0, 4.0)  # seconds between attempts
_READ_BYTES = 1 << 20  # of a file that is hashed
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file at an address, and what is known of it."""

    url: str
    shown: str
    """What to call it in errors."""
    size: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    git_id: str = ""
    """SHA-1 of the content as git counts it."""
    validator: str = ""
    """An ETag; the rest of a file is taken only if it is still the same."""


class _BrokenError(Exception):
    """The connection broke; what came until then is kept."""


def client() -> Any:
    """Return huggingface_hub's HTTP client, an httpx.Client or its successor of the same shape."""
    from huggingface_hub import get_session

    return get_session()


def http_module() -> Any:
    """Return the module of that client, whose exceptions it raises."""
    for each in type(client()).__mro__:
        name = each.__module__.partition(".")[0]
        if name.startswith("httpx"):
            return sys.modules[name]
    raise DownloadError("huggingface_hub has an HTTP client that akunu does not know")


@contextmanager
def answer(source: Source, method: str = "GET", **headers: str) -> Iterator[Any]:
    """Open an address and yield the answer, its status checked; its body is still to come.

    Raises DownloadError, which says what to do. huggingface_hub's own errors are raised unchanged:
    the caller knows the repository.
    """
    from huggingface_hub import hf_raise_for_status

    http = http_module()
    try:
        with client().stream(
            method,
            source.url,
            headers={**source.headers, "Accept-Encoding": "identity", **headers},
            timeout=_TIMEOUT_SECONDS,
            follow_redirects=True,
        ) as response:
            if not _may_be_read(str(response.url), source.url):
                raise DownloadError(
                    f"{source.shown}: the answer leads to {response.url.host} without encryption"
                )
            if response.status_code >= 400:
                response.read()
            hf_raise_for_status(response)
            yield response
    except (http.InvalidURL, http.UnsupportedProtocol) as error:
        raise ArgumentError(f"{source.shown}: {error}") from None


def _may_be_read(url: str, asked: str) -> bool:
    """Whether an answer came as safely as it was requested."""
    return urlsplit(url).scheme == "https" or urlsplit(asked).scheme == "http"


def read_range(source: Source, start: int, length: int) -> bytes:
    """Return `length` bytes from `start`, fewer at the end."""
    from huggingface_hub.errors import HfHubHTTPError

    for attempt in range(_RANGE_ATTEMPTS):
        try:
            return _read_range(source, start, length)
        except (HfHubHTTPError, http_module().TransportError) as error:
            response = getattr(error, "response", None)
            is_final = response is not None and response.status_code not in _TRY_AGAIN
            if is_final or attempt == _RANGE_ATTEMPTS - 1:
                raise
        time.sleep(_PAUSES[attempt])
    raise AssertionError("the last attempt returns or raises")


def _read_range(source: Source, start: int, length: int) -> bytes:
    with answer(source, Range=f"bytes={start}-{start + length - 1}") as response:
        skipped = start if response.status_code == 200 else 0  # servers that ignore ranges send all
        data = bytearray()
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) >= skipped + length:
                break
        return bytes(data[skipped : skipped + length])


def download(source: Source, partial: Path, watch: Watch) -> None:
    """Write a file to `partial`, continuing where an earlier attempt ended; check what is there.

    Raises DownloadError; then `partial` stays and the next call continues from there, unless what
    came is not what was promised. So it is with Ctrl-C.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    done = _Received(source, partial, watch)
    http = http_module()
    failures = 0
    watch.begin(source.shown, source.size, done.size)
    try:
        while source.size is None or done.size < source.size:
            before = done.size
            try:
                _receive(source, done)
                if source.size is None:
                    break
                if done.size < source.size:
                    raise _BrokenError("the connection was closed early")
            except (_BrokenError, http.TransportError) as error:
                failures = 0 if done.size > before else failures + 1
                if failures >= _ATTEMPTS or isinstance(error, http.ProxyError):
                    raise DownloadError(
                        f"{source.shown}: {describe_transport(error, source.url)}"
                        + (_kept(done.size) if done.size else "")
                    ) from None
                time.sleep(_PAUSES[max(0, failures - 1)])
        done.check()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise DownloadError(
            f"{partial}: {error.strerror}: {size_text(done.missing)} more are needed; free some "
            f"space and try again; the part that arrived is kept"
        ) from None
    finally:
        done.close()
        watch.end()


class _Received:
    """The file that is being written, with the checksum of what it has."""

    def __init__(self, source: Source, partial: Path, watch: Watch) -> None:
        self._source = source
        self._path = partial
        self._watch = watch
        self._file = partial.open("ab")
        self.size = self._file.tell()
        if source.size is not None and self.size > source.size:
            self._file.truncate(0)  # of something else
            self.size = 0
        self._hash = self._new_hash()
        if self._hash is not None and self.size:
            with partial.open("rb") as before:
                while chunk := before.read(_READ_BYTES):
                    self._hash.update(chunk)

    @property
    def missing(self) -> int:
        return max(0, (self._source.size or 0) - self.size)

    def append(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self.size += len(chunk)
        if self._hash is not None:
            self._hash.update(chunk)
        self._watch.advance(len(chunk))

    def start_anew(self) -> None:
        if self.size:
            self._watch.advance(-self.size)
            self._file.truncate(0)
            self.size = 0
            self._hash = self._new_hash()

    def check(self) -> None:
        """Raise DownloadError, and take the file away, if it is not what was promised."""
        self._file.flush()
        os.fsync(self._file.fileno())
        source = self._source
        expected = source.sha256 or source.git_id
        if source.size is not None and self.size != source.size:
            found = f"{self.size} bytes arrived, {source.size} were expected"
        elif self._hash is not None and self._hash.hexdigest() != expected:
            found = f"its checksum is {self._hash.hexdigest()[:12]}..., not {expected[:12]}..."
        else:
            return
        self._path.unlink(missing_ok=True)
        raise DownloadError(
            f"{source.shown}: the download is not the file ({found}); it was deleted, try again"
        )

    def close(self) -> None:
        with suppress(OSError):  # the disk is full: what is in the buffer goes
            self._file.close()

    def _new_hash(self) -> Any:
        if self._source.sha256:
            return hashlib.sha256()
        if self._source.git_id and self._source.size is not None:
            begun = hashlib.sha1(usedforsecurity=False)
            begun.update(f"blob {self._source.size}\0".encode())
            return begun
        return None


def _receive(source: Source, done: _Received) -> None:
    """Append what the server has beyond what is here; _BrokenError where that may continue
    later."""
    from huggingface_hub.errors import HfHubHTTPError

    conditions = {}
    if done.size:
        conditions["Range"] = f"bytes={done.size}-"
        if source.validator:
            conditions["If-Range"] = source.validator
    try:
        with answer(source, **conditions) as response:
            if response.status_code != 206:
                done.start_anew()  # servers that ignore ranges, or have another file now, send all
            elif not response.headers.get("Content-Range", "").startswith(f"bytes {done.size}-"):
                raise DownloadError(
                    f"{source.shown}: the server sent another range than the requested one"
                )
            refuse_page(response, source.shown)
            encoded = response.headers.get("Content-Encoding", "identity") != "identity"
            for chunk in response.iter_bytes() if encoded else response.iter_raw():
                done.append(chunk)
                if source.size is not None and done.size > source.size:
                    return  # more than was promised, perhaps without end
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status == 416 and done.size:
            done.start_anew()
            raise _BrokenError("the server has a shorter file now") from None
        if status in _TRY_AGAIN:
            raise _BrokenError(f"the server answers {status}") from None
        raise


def refuse_page(response: Any, shown: str) -> None:
    """Raise DownloadError for a web page in the place of a file."""
    if response.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "text/html":
        raise DownloadError(
            f"{shown}: the server sends a web page, perhaps a login or an error, instead of a "
            f"model; open the address in a browser"
        )


def describe_transport(error: BaseException, url: str) -> str:
    """Return what a failed connection means and what to do about it."""
    http = http_module()
    host = urlsplit(url).netloc
    why = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, http.ProxyError):
        return f"the proxy refuses ({why}); see HTTPS_PROXY and NO_PROXY"
    if isinstance(error, http.TimeoutException):
        return f"{host} does not answer within {_TIMEOUT_SECONDS:.0f} s; try again later"
    if isinstance(error, http.ConnectError):
        if "CERTIFICATE" in why.upper():
            return f"{host} has no certificate that this machine trusts ({why}); see SSL_CERT_FILE"
        proxy = _proxy_for(url)
        if proxy:
            return f"no connection to {host} through the proxy {proxy} ({why}); see HTTPS_PROXY"
        return (
            f"no connection to {host} ({why}); check the network. `akunu list` shows the models "
            f"on this machine; ember needs no download"
        )
    return f"the connection to {host} broke ({why}); try again"


def _proxy_for(url: str) -> str:
    """Return the proxy that the user's variables name for an address, without its password."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.netloc):
        return ""
    return proxy.rpartition("@")[2].removeprefix("http://")


def refuse_without_space(folder: Path, needed: int, shown: str) -> None:
    """Raise DownloadError where a disk has no room for what is to come."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise DownloadError(
            f"{shown} needs {size_text(needed)} on disk, {size_text(free)} are free in {existing}; "
            "free some space, or set HF_HOME (for other addresses XDG_CACHE_HOME) to a folder on "
            "another disk"
        )


def _kept(size: int) -> str:
    return f"; {size_text(size)} are kept, and the next attempt continues from there"


def size_text(size: int) -> str:
    """Return a number of bytes as sentences have it.

    >>> size_text(3 << 29), size_text(5 << 20)
    ('1.5 GiB', '5.0 MiB')
    """
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
