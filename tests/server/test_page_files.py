"""`GET /` and the files of the chat page: who may have them, and what their headers promise."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import akunu.server
from lines import each_line

FOLDER = Path(akunu.server.__file__).parent / "page"
FILES = sorted(
    each.relative_to(FOLDER).as_posix()
    for each in FOLDER.rglob("*")
    if each.suffix in {".js", ".css", ".svg", ".woff2"}
)


# As Chromium asks for a page.
BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_the_policy_of_the_page_allows_no_inline_script_and_nothing_from_elsewhere(
    client: httpx.Client,
) -> None:
    answer = client.get("/", headers=BROWSER)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    rules = dict(
        each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; ")
    )
    assert rules["default-src"] == "'none'"
    assert {rules[f"{kind}-src"] for kind in ("script", "style", "font", "connect")} == {"'self'"}
    assert rules["img-src"] == "'self' blob:"  # blob: what somebody attached
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"


@each_line("name", FILES)
def test_a_file_comes_with_its_type_and_is_not_sent_again(client: httpx.Client, name: str) -> None:
    first = client.get(f"/page/{name}")
    assert first.content == (FOLDER / name).read_bytes()
    kinds = {
        "js": "text/javascript; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "svg": "image/svg+xml",
        "woff2": "font/woff2",
    }
    assert first.headers["content-type"] == kinds[name.rpartition(".")[2]]
    assert first.headers["cache-control"] == "no-cache"
    again = client.get(f"/page/{name}", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head(f"/page/{name}").headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    "path", ["/page/", "/page/nothing.js", "/page/../app.py", "/page/%2e%2e/app.py", "/page/vendor"]
)
def test_what_is_no_file_of_the_page_is_not_found(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_url"


def test_the_page_comes_without_a_key_and_the_models_do_not(serving: Callable[..., Any]) -> None:
    with serving(api_keys=["secret"]) as client:
        assert client.get("/").status_code == 200
        assert client.get("/page/app.js").status_code == 200
        assert client.get("/v1/models").status_code == 401


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_who_takes_no_html_reads_what_clients_of_ollama_look_for(
    client: httpx.Client, accept: str
) -> None:
    answer = client.get("/", headers={"accept": accept})
    assert (answer.status_code, answer.text) == (200, "Ollama is running")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["vary"] == "accept"
    answer = client.head("/", headers={"accept": accept})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == str(len("Ollama is running"))


def test_the_page_can_be_turned_off(serving: Callable[..., Any]) -> None:
    with serving(page=False) as client:
        assert client.get("/", headers=BROWSER).text == "Ollama is running"
        answer = client.get("/page/app.js")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_url")


def test_every_file_that_the_page_names_is_there(client: httpx.Client) -> None:
    named = re.findall(r'(?:src|href)="(page/[^"]+)"', client.get("/", headers=BROWSER).text)
    assert {"page/app.js", "page/base.css"} <= set(named)
    for name in FILES:
        if name.endswith(".js") and not name.startswith("vendor/"):
            text = (FOLDER / name).read_text(encoding="utf-8")
            named += [
                f"page/{each}" for each in re.findall(r'(?:from|import\(?) ?"\./(.+?)"', text)
            ]
    assert [each for each in named if client.get(f"/{each}").status_code != 200] == []


def test_libraries_of_the_page_are_named_with_version_and_licence() -> None:
    listed = (FOLDER / "vendor" / "README.md").read_text(encoding="utf-8")
    for each in (FOLDER / "vendor").glob("*.js"):
        line = re.search(rf"^\| `{re.escape(each.name)}` .*? \| (\d+\.\d+\.\d+) \|", listed, re.M)
        assert line is not None, each.name
        assert line[1] in each.read_text(encoding="utf-8"), each.name


def test_fonts_that_a_style_names_are_there() -> None:
    style = FOLDER / "vendor" / "katex.min.css"
    named = re.findall(r"url\((.+?)\)", style.read_text(encoding="utf-8"))
    there = [f"fonts/{each.name}" for each in (FOLDER / "vendor" / "fonts").iterdir()]
    assert sorted(named) == sorted(there)
