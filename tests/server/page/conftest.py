"""A browser for the tests of the chat page: the system's Chromium, steered by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

CHROMIUM = os.environ.get("AKUNU_CHROMIUM") or shutil.which("chromium")
Opening = Callable[..., Any]


@pytest.fixture(scope="module")  # while it is there, no other test of this process can asyncio.run
def browser() -> Iterator[Any]:
    """One Chromium for a module's tests; they are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium, or name one with AKUNU_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install '.[browser]'")
    with playwright.sync_playwright() as tool:
        started = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, client: httpx.Client) -> Iterator[Opening]:
    """`opened(width=360)`: the page in a browser that knows nothing yet; its errors fail."""
    contexts = []
    wrong: list[str] = []

    def open_page(address: str | None = None, ready: bool = True, **options: Any) -> Any:
        size = {"width": options.pop("width", 1280), "height": options.pop("height", 800)}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: _look_at(said, wrong))
        page.goto(address or str(client.base_url))
        if ready:
            page.wait_for_selector("select.model option", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _look_at(said: Any, wrong: list[str]) -> None:
    """A page that violates its own policy says so; answers of 4xx and 5xx are meant."""
    if said.type == "error" and "Failed to load resource" not in said.text:
        wrong.append(said.text)
