"""The chat page where something is missing: a key, room, the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from page_support import ROUTE, ask, events, reply


def test_the_page_asks_for_a_key_and_forgets_it_with_the_tab(
    opened: Any, serving: Callable[..., Any]
) -> None:
    with serving(api_keys=["secret"]) as client:
        page = opened(str(client.base_url), ready=False)
        page.fill("#key", "wrong")
        page.press("#key", "Enter")
        page.wait_for_selector("dialog >> text=The server refused the key")
        page.fill("#key", "secret")
        page.press("#key", "Enter")
        page.wait_for_selector("select.model option", state="attached")
        ask(page, "What is 12 + 7?")
        assert "19" in reply(page)
        assert page.evaluate("JSON.stringify(localStorage)").count("secret") == 0
        assert page.evaluate("sessionStorage.getItem('akunu.key')") == "secret"


def test_a_full_context_says_how_much_too_long_it_is(
    opened: Any, serving: Callable[..., Any]
) -> None:
    with serving(context=64) as client:
        page = opened(str(client.base_url))
        ask(page, "apple pear " * 100)
        page.wait_for_selector(".failure")
        said = page.inner_text(".failure")
    assert "The context is full" in said
    assert "the context of the model has 64" in said


def test_a_server_that_is_gone_is_said_and_found_again(
    opened: Any, serving: Callable[..., Any]
) -> None:
    with serving() as client:
        address = str(client.base_url)
        page = opened(address)
    ask(page, "Hello?")
    page.wait_for_selector(".failure >> text=No answer")
    page.wait_for_selector(".gone:not([hidden])")
    with serving(port=int(address.rpartition(":")[2].strip("/"))):
        page.wait_for_selector(".gone", state="hidden")
        page.click(".failure >> text=Try again")
        assert reply(page)
        assert page.locator(".message").count() == 2  # what failed is gone


def test_a_busy_server_is_told_from_a_broken_one(opened: Any) -> None:
    page = opened()
    error = {"message": "256 texts wait already", "type": "server_error", "code": "queue_full"}

    def busy(route: Any) -> None:
        route.fulfill(status=503, headers={"retry-after": "2"}, body=json.dumps({"error": error}))

    page.route(ROUTE, busy)
    ask(page, "Hello")
    page.wait_for_selector(".failure")
    said = page.inner_text(".failure")
    assert "The server is busy" in said
    assert "256 texts wait already" in said
    assert "wait 2 s" in said
    page.unroute(ROUTE)
    cut = events({"content": "Half a"}).split("data: [DONE]")[0]
    page.route(ROUTE, lambda route: route.fulfill(body=cut, content_type="text/event-stream"))
    page.click(".failure >> text=Try again")
    page.wait_for_selector(".failure >> text=Connection lost")
    assert page.inner_text(".message.assistant .body .prose") == "Half a"
