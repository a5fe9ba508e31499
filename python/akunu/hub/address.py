"""Model files at any https address, kept in akunu's own cache.

    $XDG_CACHE_HOME/akunu/models/<hash of the address>/
        model.gguf               the file, or model.gguf.incomplete while it comes
        source.json              where it came from

Without the variable it is ~/.cache. A file that is here is not asked for again: to get
the newest one, remove it first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from akunu.errors import ArgumentError, DownloadError, OutOfMemoryError
from akunu.hub import transfer
from akunu.hub.choice import part_names
from akunu.hub.load_check import LoadCheck, headers_only
from akunu.hub.names import Address
from akunu.hub.watch import Watch
from akunu.options.text_options import LoadOptions

Result = TypeVar("Result")
_SOURCE = "source.json"


@dataclass(frozen=True, slots=True)
class Part:
    """A file at an address, as its server describes it."""

    source: transfer.Source
    path: Path
    """Where it is, or will be."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.source.size or 0


def cache_folder() -> Path:
    """Return the folder of akunu's own cache of models."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "akunu" / "models"


def folder_of(address: Address) -> Path:
    """Return the folder in which the files of an address are."""
    return cache_folder() / hashlib.sha256(_whole(address.url).encode()).hexdigest()[:16]


def cached(address: Address) -> Path | None:
    """Return the file of an address if all of its parts are here."""
    paths = [folder_of(address) / name for name in part_names(_file_name(address.url))]
    return paths[0] if all(path.is_file() for path in paths) else None


def look_up(address: Address) -> list[Part]:
    """Ask for the size of a file, of all parts if it is split; raises DownloadError."""
    return [
        _ask(_with_name(address.url, name), folder_of(address) / name)
        for name in part_names(_file_name(address.url))
    ]


def readers(parts: list[Part]) -> list[tuple[str, int, Callable[[int, int], bytes]]]:
    """Return parts as `headers_only` wants them."""

    def reader(part: Part) -> Callable[[int, int], bytes]:
        return lambda start, length: explained(
            lambda: transfer.read_range(part.source, start, length), part.source.url
        )

    return [(part.path.name, part.size, reader(part)) for part in parts]


def pull(
    address: Address, watch: Watch, options: LoadOptions, check: LoadCheck, *, must_fit: bool
) -> Path:
    """Bring the file of an address here and return it; refuse before what akunu cannot load."""
    found = cached(address)
    if found:
        return found
    parts = look_up(address)
    shown = parts[0].path.name
    try:
        with headers_only(readers(parts), shown) as path:
            watch.say(check(path, shown, options))
    except OutOfMemoryError as error:
        if must_fit:
            raise
        watch.say(f"it will not load on this machine: {error}")
    missing = [part for part in parts if not part.path.is_file()]
    folder = folder_of(address)
    transfer.refuse_without_space(folder, sum(part.size for part in missing), shown)
    folder.mkdir(parents=True, exist_ok=True)
    note = {"url": address.url, "file": shown}
    (folder / _SOURCE).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    for part in missing:
        partial = part.path.with_name(f"{part.path.name}.incomplete")
        _forget_if_changed(partial, part.source)
        explained(lambda: transfer.download(part.source, partial, watch), part.source.url)  # noqa: B023
        os.replace(partial, part.path)
        _validator_of(partial).unlink(missing_ok=True)
    return parts[0].path


def source_of(folder: Path) -> str:
    """Return the address that a folder of the cache came from, "" if no one knows."""
    try:
        note = json.loads((folder / _SOURCE).read_text(encoding="utf-8"))
        return str(note["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def explained(run: Callable[[], Result], url: str) -> Result:
    """Return what `run` returns; errors of the transfer become a DownloadError."""
    from huggingface_hub import errors

    http = transfer.http_module()
    shown = _without_secrets(url)
    try:
        return run()
    except errors.OfflineModeIsEnabled:
        raise DownloadError(
            f"{shown} is not on this machine, and HF_HUB_OFFLINE forbids the network"
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        advice = {
            401: "it asks for a login, which akunu does not have: download the file by other means",
            403: "it refuses access: download the file by other means",
            404: "check the spelling",
            410: "the file is gone",
        }.get(status, "try again later")
        reason = f"{status} {error.response.reason_phrase}".strip()
        raise DownloadError(f"{shown}: the server answers {reason}; {advice}") from None
    except http.TransportError as error:
        raise DownloadError(f"{shown}: {transfer.describe_transport(error, url)}") from None
    except http.HTTPError as error:
        raise DownloadError(f"{shown}: the answer cannot be understood ({error})") from None


def _ask(url: str, path: Path) -> Part:
    """Ask for the first bytes of a file: that tells its size, and whether it can be resumed."""
    source = transfer.Source(url=url, shown=path.name)

    def ask() -> tuple[int | None, str]:
        with transfer.answer(source, Range="bytes=0-0") as response:
            transfer.refuse_page(response, _without_secrets(url))
            if response.status_code == 206:
                total = response.headers.get("Content-Range", "").rpartition("/")[2]
            else:
                total = response.headers.get("Content-Length", "")
            etag = response.headers.get("ETag", "")
            # Only a strong ETag, or else the time of the last change, may go with If-Range.
            known = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
            return int(total) if total.isdigit() else None, known

    size, validator = explained(ask, url)
    if not size:
        raise DownloadError(
            f"{_without_secrets(url)}: the server does not say how large the file is; download it "
            "by other means"
        )
    return Part(transfer.Source(url=url, shown=path.name, size=size, validator=validator), path)


def _forget_if_changed(partial: Path, source: transfer.Source) -> None:
    """Drop the beginning of a file that has changed since; without a validator, of any."""
    note = _validator_of(partial)
    known = note.read_text(encoding="utf-8") if note.is_file() else ""
    if not source.validator or known != source.validator:
        partial.unlink(missing_ok=True)
    note.write_text(source.validator, encoding="utf-8")


def _validator_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.etag")


def _file_name(url: str) -> str:
    """Return the name that a file of an address gets here."""
    name = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^\w.+-]", "_", name).lstrip(".")
    if not name:
        raise ArgumentError(f"{url} names no file")
    return name


def _with_name(url: str, name: str) -> str:
    """Return the address of another part of a split model."""
    parts = urlsplit(url)
    folder, _, own = parts.path.rpartition("/")
    return urlunsplit(parts._replace(path=f"{folder}/{name if part_names(own)[1:] else own}"))


def _whole(url: str) -> str:
    """Return the address of a split model's first part, for whichever was named."""
    return _with_name(url, part_names(_file_name(url))[0])


def _without_secrets(url: str) -> str:
    """Return an address without its query and user, in which signatures and passwords are."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="", fragment="", netloc=parts.netloc.rpartition("@")[2]))
