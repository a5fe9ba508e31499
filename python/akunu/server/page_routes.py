"""GET / and /page/...: the chat page, files of the package. They hold no secret and ask for no key.

A client that requests / without HTML gets a line of text that says that the server runs.

The page is HTML, CSS and JavaScript as they are written: nothing is built, and it loads nothing
from elsewhere. A browser keeps the files and asks, by their etags, whether they are still right.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from akunu.server.state import state_of

router = APIRouter(include_in_schema=False)

FOLDER: Final = "/page/"
RUNNING: Final = "Ollama is running"
"""What clients of Ollama want to read; akunu answers them as it does."""
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
_FOLDERS: Final = ("", "vendor/", "vendor/fonts/")
# What a model writes is shown on this page. Were the sanitiser to miss something, a browser would
# still run no script and load no picture of it, and tell no one.
_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",  # those that someone attached
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types dompurify",
    ]
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "vary": "accept",
    "cache-control": "no-cache",  # kept, but asked about by its etag: a new version is seen at once
}


def is_page(path: str) -> bool:
    """Return whether a path is the page's or one of its files'."""
    return path == "/" or path.startswith(FOLDER)


@router.api_route("/", methods=["GET", "HEAD"], response_model=None)
async def page(request: Request) -> Response:
    """Return the page to a client that accepts HTML; Ollama's clients only test the server here."""
    takes_html = "text/html" in request.headers.get("accept", "")
    if takes_html and state_of(request).settings.page:
        return _answer(request, "index.html")
    return PlainTextResponse(RUNNING, headers={"vary": "accept"})


@router.api_route(FOLDER + "{name:path}", methods=["GET", "HEAD"], response_model=None)
async def page_file(request: Request, name: str) -> Response:
    """Return a file of the page."""
    if not state_of(request).settings.page:
        raise HTTPException(404)
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    found = _assets().get(name)
    if found is None:
        raise HTTPException(404)
    body, etag = found
    headers = {**_HEADERS, "etag": etag}
    known = request.headers.get("if-none-match", "")
    if etag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(body, headers={**headers, "content-type": kind})


@cache
def _assets() -> dict[str, tuple[bytes, str]]:
    """Return the files with their etags by their names: no path from outside is ever opened."""
    found = {}
    for folder in _FOLDERS:
        for each in (files("akunu.server") / "page").joinpath(*folder.split("/")).iterdir():
            if each.is_file() and each.name.rpartition(".")[2] in _TYPES:
                body = each.read_bytes()
                found[folder + each.name] = (body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found
