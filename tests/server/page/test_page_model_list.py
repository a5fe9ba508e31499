"""The dialog of models: their state, loading, unloading, downloads and deletion."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from page_support import ask, reply, set_field
from running_server import EMBER
from test_page_for_everybody import findings

from akunu.server import ServedModels

SHEET = "dialog.models-sheet"


def lines(*found: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in found)


def test_models_are_loaded_and_unloaded(opened: Any, serving: Callable[..., Any]) -> None:
    models = ServedModels({"ember": "ember", "org/other<b>": str(EMBER)})
    with serving(models=models) as client:
        page = opened(str(client.base_url))
        page.wait_for_selector("option >> text=org/other<b> (not loaded)", state="attached")
        page.click("[aria-label=Models]")
        page.click("[aria-label='Load org/other<b>']")
        page.wait_for_selector("[aria-label='Unload org/other<b>']")
        assert "million parameters" in page.inner_text(f"{SHEET} li >> nth=1")
        assert client.get("/v1/models/org/other<b>").json()["loaded"]
        client.post("/v1/models/unload", json={"model": "org/other<b>"})
        page.wait_for_selector("[aria-label='Load org/other<b>']")  # another client unloaded it
        page.click("[aria-label='Load org/other<b>']")
        page.click("[aria-label='Unload org/other<b>']")
        page.wait_for_selector("[aria-label='Load org/other<b>']")
        assert findings(page) == []
        page.wait_for_selector(f"{SHEET} >> text=start it with --allow-pull")
        assert not page.is_visible("#pull-name")
        assert page.locator(f"{SHEET} >> text=Delete…").count() == 0
        page.keyboard.press("Escape")
        ask(page, "What is 12 + 7?")  # loads it again
        assert "19" in reply(page)


def test_a_model_that_is_in_use_is_not_unloaded_and_why(
    opened: Any, serving: Callable[..., Any]
) -> None:
    with serving(context_overflow="shift") as client:
        page = opened(str(client.base_url))
        set_field(page, "more", '{"ignore_eos": true, "max_tokens": 20000}')
        ask(page, "Hello")
        page.wait_for_selector(".assistant .body .prose p")
        page.click("[aria-label=Models]")
        page.click("[aria-label='Unload ember']")
        page.wait_for_selector(f"{SHEET} .mistake >> text=ember")


def test_a_model_is_downloaded_and_deleted(opened: Any, serving: Callable[..., Any]) -> None:
    models = ServedModels({"org/there": "ember"})
    with serving(models=models, allow_pull=True) as client:
        page = opened(str(client.base_url), width=360, has_touch=True)
        page.tap("[aria-label=Models]")
        page.fill("#pull-name", "no slash")
        page.press("#pull-name", "Enter")
        page.wait_for_selector(f"{SHEET} .mistake >> text=Not downloaded: model is")
        page.tap(f"{SHEET} >> text=Remove from the list")
        step = {"status": "pulling a.gguf", "digest": "a.gguf", "total": 100, "completed": 40}
        bodies = [lines(step), lines(step, {"error": "the disk is full"}), lines(step)]
        bodies[2] += lines({"status": "success"})

        def pull(route: Any) -> None:
            if route.request.post_data_json:
                route.fulfill(body=bodies.pop(0), content_type="application/x-ndjson")
            else:
                route.continue_()

        page.route("**/api/pull", pull)
        page.fill("#pull-name", "org/new")
        page.press("#pull-name", "Enter")
        page.wait_for_selector(f"{SHEET} .mistake >> text=before the download was complete")
        page.tap(f"{SHEET} >> text=Try again")
        page.wait_for_selector(f"{SHEET} .mistake >> text=Not downloaded: the disk is full")
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.tap(f"{SHEET} >> text=Try again")
        page.wait_for_selector(".notice >> text=org/new is downloaded.")
        page.tap("[aria-label='Delete… org/there']")
        page.tap(f"{SHEET} >> text=Delete it")
        page.wait_for_selector(f"{SHEET} .mistake >> text=cannot be deleted")
