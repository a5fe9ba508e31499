"""The chat page on small screens, for screen readers and in both themes, judged by axe-core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_support import answer_with, ask, attach, events, file, reply

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


SMALL = """selector => [...document.querySelectorAll(selector)]
  .filter(each => each.checkVisibility() && !each.closest(".prose li, .visually-hidden"))
  .map(each => [each.outerHTML.slice(0, 150), each.getBoundingClientRect()])
  .filter(([, box]) => Math.min(box.width, box.height) < 44)
  .map(([html, { width, height }]) => `${html}: ${width} x ${height}`)"""


@pytest.mark.parametrize("width", [320, 390])
def test_what_a_finger_taps_on_a_phone_is_44_pixels_large(opened: Any, width: int) -> None:
    page = opened(width=width, height=740, has_touch=True, is_mobile=True)
    targets = "button, select, textarea, summary, input:not([type=checkbox], [type=file])"

    def small() -> list[str]:
        found: list[str] = page.evaluate(SMALL, targets)
        return found

    assert small() == []
    call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"}}
    answer_with(
        page,
        events({"reasoning_content": "Hm."}, {"content": TEXT}, finish="length"),
        events({"content": "Yes."}, {"tool_calls": [call]}, finish="tool_calls"),
    )
    attach(page, file("notes.md", b"# Notes", "text/markdown"))
    assert small() == []
    for _ in range(2):
        page.fill("#prompt", "Write")
        page.tap("button.send")
        reply(page)
        assert small() == []
    page.tap(".message.user.last [aria-label='Edit'], .message.user [aria-label='Edit'] >> nth=0")
    assert small() == []
    page.tap("text=Cancel")
    page.tap("[aria-controls=sidebar]")
    assert small() == []
    page.tap("[aria-label^='Rename']")
    assert small() == []
    page.keyboard.press("Escape")
    for opening in ("Export and import", "Keyboard and help"):
        page.tap(f"[aria-label='{opening}']")
        assert small() == []
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
    page.tap("[aria-label='Close the list']")
    for opening in (".settings-button", "[aria-label='Models']", ".message.user .chip"):
        page.tap(opening)
        assert small() == []
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_screen_reader_is_told_of_the_answer_once_it_is_complete(opened: Any) -> None:
    page = opened()
    answer_with(page, events({"content": "Forty"}, {"content": "-two."}))
    ask(page, "What is it?")
    reply(page)
    assert page.inner_text("#status") == "Reply complete. Forty-two."
    headings = page.locator(".message h2").all_inner_texts()
    assert [each.strip() for each in headings] == ["You", "Reply of m"]
