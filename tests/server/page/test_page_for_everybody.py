"""The chat page on small screens, for screen readers and in both themes, judged by axe-core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_support import answer_with, ask, events, reply

AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
TEXT = (
    "# Title\n\n- [x] done\n\n```python\nx = 'a'  # note\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
)


def findings(page: Any) -> list[str]:
    """What axe-core finds, but for what it calls minor."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run().then(result => result.violations)")
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] != "minor"
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing(opened: Any, scheme: str, width: int) -> None:
    page = opened(width=width, height=740, color_scheme=scheme, reduced_motion="reduce")
    assert findings(page) == []
    answer_with(page, events({"reasoning_content": "Hm."}, {"content": TEXT}))
    for _ in range(2):
        ask(page, "Write")
        reply(page)
    page.locator(".hljs-string").first.wait_for()
    if width < 900:
        page.click("[aria-controls=sidebar]")
    page.locator(".message.user").first.hover(force=True)
    assert findings(page) == []
    if width < 900:
        page.keyboard.press("Escape")
    page.click(".settings-button")
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+/")
    assert findings(page) == []


@pytest.mark.parametrize("width", [320, 360, 768, 1920])
def test_nothing_is_wider_than_the_screen(opened: Any, width: int) -> None:
    page = opened(width=width)
    long = "x" * 300
    answer_with(page, events({"content": f"{TEXT}\n\n{long}\n\n```\n{long}\n```\n"}))
    ask(page, long)
    reply(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    frame = "document.querySelector('.scroller')"
    assert page.evaluate(f"{frame}.scrollWidth - {frame}.clientWidth") == 0
    page.click(".settings-button")
    box = page.locator("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_on_a_phone_enter_makes_a_line_and_the_list_closes(opened: Any) -> None:
    page = opened(width=360, has_touch=True, is_mobile=True)
    answer_with(page, events({"content": "Yes."}))
    page.fill("#prompt", "one")
    page.press("#prompt", "Enter")
    page.keyboard.type("two")
    assert page.input_value("#prompt") == "one\ntwo"
    page.tap("button.send")
    assert reply(page) == "Yes."
    assert not page.is_visible("nav.sidebar")
    page.tap("[aria-controls=sidebar]")
    page.tap(".conversations .open")
    assert not page.is_visible("nav.sidebar")


def test_a_screen_reader_is_told_of_the_answer_once_it_is_complete(opened: Any) -> None:
    page = opened()
    answer_with(page, events({"content": "Forty"}, {"content": "-two."}))
    ask(page, "What is it?")
    reply(page)
    assert page.inner_text("#status") == "Reply complete. Forty-two."
    headings = page.locator(".message h2").all_inner_texts()
    assert [each.strip() for each in headings] == ["You", "Reply of m"]
