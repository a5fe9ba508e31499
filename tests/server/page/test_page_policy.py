"""The chat page under its Content-Security-Policy: nothing violates it or leaves the origin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from image_models import drawn, encoded, write
from page_support import answer_with, ask, attach, events, file, reply
from running_server import running

from akunu import LoadOptions
from akunu.server import ServedModels

LISTEN = """addEventListener("securitypolicyviolation", (event) => {
  (globalThis.violations ??= []).push(`${event.violatedDirective} ${event.blockedURI}`);
});"""
TEXT = (
    "# Title\n\n```python\nx = 'a'\n```\n\n$$\\int_0^1 \\frac{x}{2} dx$$\n\n"
    "![picture](https://example.org/x.png) <img src='https://example.org/y.png'>\n"
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with two models, one of which reads images."""
    folder = write(tmp_path_factory.mktemp("images") / "model")
    paths = {"gemma": str(folder), "ember": "ember"}
    with running(ServedModels(paths, LoadOptions(device="cpu", context=512))) as client:
        client.post("/v1/models/load", json={"model": "gemma"})
        yield client


def test_all_that_one_does_violates_no_policy_and_asks_no_other_origin(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    asked: list[str] = []
    said: list[str] = []
    page.context.on("request", lambda sent: asked.append(sent.url))
    page.on("console", lambda line: said.append(f"{line.type}: {line.text}"))
    page.add_init_script(LISTEN)
    page.reload()  # from the first byte on, with the listeners
    page.wait_for_selector("select.model option", state="attached")
    answer_with(page, events({"reasoning_content": "Hm."}, {"content": TEXT}))
    attach(page, file("cat.png", encoded(drawn(1))))
    attach(page, file("notes.md", b"# Notes\n", "text/markdown"))
    ask(page, "What is this?")
    reply(page)
    page.locator(".hljs-string").first.wait_for()
    page.locator(".katex").first.wait_for()
    page.wait_for_function("document.querySelector('.message img').naturalWidth > 0")
    page.click(".message.user .chip")
    page.keyboard.press("Escape")
    page.press("#prompt", "ArrowUp")
    page.fill("textarea.edit", "And this?")
    page.press("textarea.edit", "Control+Enter")
    page.wait_for_selector(".user .versions")
    reply(page)
    page.unroute_all()
    page.keyboard.press("Control+Shift+O")
    page.select_option("select.model", "ember")
    ask(page, "What is 12 + 7?")  # the server itself
    reply(page)
    page.click("[aria-label='Models']")
    page.click("[aria-label='Unload ember']")
    page.wait_for_selector("[aria-label='Load ember']")
    page.keyboard.press("Escape")
    page.click(".settings-button")
    page.fill("#set-temperature", "0.5")
    page.keyboard.press("Escape")
    page.fill(".search input", "notes")
    page.click(".conversations .open")
    page.click("[aria-label^='Theme']")
    page.click("[aria-label='Export and import']")
    with page.expect_download() as download:
        page.click("text=Export this chat")
    assert json.loads(download.value.path().read_text())["images"]
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_function("document.querySelector('.message img')?.naturalWidth > 0")

    origin = str(reader.base_url).rstrip("/")
    others = [url for url in asked if not url.startswith((f"{origin}/", f"blob:{origin}/"))]
    assert others == []
    assert {f"{origin}/page/app.js", f"{origin}/v1/chat/completions"} <= set(asked)
    # Whether models may be downloaded is found by trying, which a browser writes down.
    refused = (
        "error: Failed to load resource: the server responded with a status of 403 (Forbidden)"
    )
    assert {line for line in said if line.startswith("error")} == {refused}
    assert page.evaluate("globalThis.violations") is None


@pytest.mark.parametrize(
    ("what", "directive"),
    [
        ("fetch('https://example.org/').catch(() => 0)", "connect-src"),
        ("document.body.append(Object.assign(new Image(), {src: 'https://example.org/x'}))", "img"),
        ("document.body.innerHTML = '<b>x</b>'", "require-trusted-types-for"),
        ("document.body.setAttribute('style', 'color: red')", "style-src-attr"),
    ],
)
def test_what_the_policy_forbids_is_reported(
    browser: Any, client: httpx.Client, what: str, directive: str
) -> None:
    page = browser.new_page()
    page.add_init_script(LISTEN)
    page.goto(str(client.base_url))
    page.wait_for_selector("select.model option", state="attached")
    page.evaluate(f"() => {{ try {{ {what} }} catch {{}} }}")
    page.wait_for_function("globalThis.violations?.length > 0")
    assert page.evaluate("globalThis.violations[0]").startswith(directive)
    page.close()
