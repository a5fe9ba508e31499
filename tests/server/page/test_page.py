"""The chat page with Ember: what happens when somebody types, stops, edits, comes back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
from page_support import ask, reply, set_field

MARKDOWN = """# Title

Some **bold** text and `code`.

```python
def f(): return 1
```

<script>window.harmed = 1</script>

<img src="https://example.org/x.png" onerror="window.harmed = 1">

![a picture](https://example.org/y.png) [bad](javascript:alert(1)) [good](https://example.org)
"""


# What a reply may have that a page must not do, one way to harm in each line.
HARMFUL = """
<svg onload="window.harmed = 1"><a xlink:href="javascript:window.harmed = 1">x</a></svg>

<details open ontoggle="window.harmed = 1"><summary>s</summary></details>

<iframe srcdoc="<script>parent.harmed = 1</script>"></iframe>

<form action="https://example.org/"><input autofocus onfocus="window.harmed = 1"></form>

<style>@import "https://example.org/a.css"; body { display: none }</style>

<a href="java	script:window.harmed = 1">tab</a> <base href="https://example.org/">

<math><mi xlink:href="data:text/html,<script>parent.harmed = 1</script>">m</mi></math>

[upper](JaVaScRiPt:window.harmed=1) [entity](&#106;avascript:window.harmed=1)
[data](data:text/html,<script>opener.harmed=1</script>) [vb](vbscript:x) [file](file:///etc/passwd)
[quote](https://example.org/"onmouseover="window.harmed=1) <javascript:window.harmed=1>

```html"><img src=x onerror="window.harmed = 1">
code
```

`</code><img src=x onerror="window.harmed = 1">` $\\href{javascript:window.harmed=1}{x}$
"""


def test_the_page_answers_with_what_the_model_says(opened: Any, client: httpx.Client) -> None:
    said = client.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "What is 12 + 7?"}]}
    ).json()["choices"][0]["message"]["content"]
    page = opened()
    ask(page, "What is 12 + 7?")
    assert reply(page) == said
    assert "tokens/s" in page.inner_text(".message.assistant.last .cost")
    context = client.get("/v1/models").json()["data"][0]["max_model_len"]
    page.wait_for_selector("progress.meter:not([hidden])")
    assert f"of {context:,} tokens used" in page.inner_text(".used")


def test_nothing_in_a_reply_runs_or_reaches_out(opened: Any) -> None:
    page = opened()
    outside: list[str] = []
    page.on("request", lambda sent: outside.append(sent.url))
    set_field(page, "more", json.dumps({"guided_choice": [HARMFUL]}))
    ask(page, "Show it.")
    reply(page)
    prose = page.locator(".message.assistant .body .prose")
    for link in prose.locator("a").all():
        if (link.get_attribute("href") or "").startswith("#"):
            continue
        link.hover()
    page.wait_for_timeout(300)
    assert page.evaluate("window.harmed") is None
    forbidden = "script, img, iframe, form, style, base, svg a, [onload], [onerror], [ontoggle]"
    assert prose.locator(forbidden).count() == 0
    schemes = prose.locator("a[href]").evaluate_all("all => all.map(each => each.protocol)")
    assert set(schemes) <= {"http:", "https:", "mailto:"}
    assert not [url for url in outside if "example.org" in url]
    assert page.locator("body").is_visible()


def test_markdown_is_shown_and_what_could_do_harm_is_text(
    opened: Any, client: httpx.Client
) -> None:
    page = opened()
    outside: list[str] = []
    page.on("request", lambda sent: outside.append(sent.url))
    set_field(page, "more", json.dumps({"guided_choice": [MARKDOWN]}))
    ask(page, "Show it.")
    reply(page)
    prose = page.locator(".message.assistant .body .prose")
    assert prose.locator("h3").inner_text() == "Title"
    assert prose.locator("strong").inner_text() == "bold"
    prose.locator("pre .hljs-keyword").first.wait_for()
    assert prose.locator("pre").inner_text() == "def f(): return 1\n"
    assert "<script>window.harmed = 1</script>" in prose.inner_text()
    assert prose.locator("script, img").count() == 0
    assert page.evaluate("window.harmed") is None
    links = prose.locator("a[href]").evaluate_all("all => all.map(each => each.href)")
    assert links == ["https://example.org/y.png", "https://example.org/"]
    assert {httpx.URL(each).host for each in outside} == {httpx.URL(str(client.base_url)).host}


def test_escape_stops_a_reply_and_what_was_written_is_kept(opened: Any) -> None:
    page = opened()
    set_field(page, "more", '{"ignore_eos": true}')
    ask(page, "Hello")
    page.wait_for_selector(".assistant .body .prose p")
    page.keyboard.press("Escape")
    text = reply(page)
    assert page.inner_text(".assistant .why") == "Stopped."
    cost = re.match(r"([\d,]+) tokens? · [\d.]+ tokens/s", page.inner_text(".assistant .cost"))
    assert cost is not None
    assert int(cost[1].replace(",", "")) > 0
    assert page.get_attribute("button.send", "aria-label") == "Send"
    page.reload()
    assert reply(page) == text


def test_an_edit_and_another_try_make_versions_and_none_is_lost(opened: Any) -> None:
    page = opened()
    ask(page, "What is 12 + 7?")
    first = reply(page)
    page.press("#prompt", "ArrowUp")
    page.fill("textarea.edit", "What is 3 + 4?")
    page.press("textarea.edit", "Control+Enter")
    page.wait_for_selector(".user .versions")
    assert reply(page) != first
    assert page.inner_text(".user .versions") == "2/2"
    page.click(".assistant [aria-label='Try again']")
    page.wait_for_selector(".assistant .versions")
    reply(page)
    page.hover(".user .versions")
    page.click(".user [aria-label='Earlier version']")
    assert reply(page) == first
    page.reload()
    assert reply(page) == first
    assert page.inner_text(".user .versions") == "1/2"


def test_a_draft_survives_a_reload(opened: Any) -> None:
    page = opened()
    page.fill("#prompt", "not yet sent")
    page.reload()
    assert page.input_value("#prompt") == "not yet sent"


def test_a_chat_is_found_renamed_deleted_and_brought_back(opened: Any) -> None:
    page = opened()
    for text in ("What is 12 + 7?", "Spell the word apple."):
        page.keyboard.press("Control+Shift+O")
        ask(page, text)
        reply(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("APPLE")
    titles = page.locator(".conversations .title")
    assert titles.all_inner_texts() == ["Spell the word apple."]
    page.click("[aria-label='Rename “Spell the word apple.”']")
    page.keyboard.type("Fruit")
    page.keyboard.press("Enter")
    page.fill(".search input", "")
    assert titles.all_inner_texts() == ["Fruit", "What is 12 + 7?"]
    page.click("[aria-label='Delete “Fruit”']")
    assert titles.all_inner_texts() == ["What is 12 + 7?"]
    page.click(".notice button >> text=Undo")
    assert titles.all_inner_texts() == ["Fruit", "What is 12 + 7?"]


def test_what_is_exported_can_be_imported_elsewhere(opened: Any, tmp_path: Path) -> None:
    page = opened()
    ask(page, "What is 12 + 7?")
    said = reply(page)
    page.click("[aria-label='Export and import']")
    with page.expect_download() as download:
        page.click("text=Export all (1)")
    file = tmp_path / "chats.json"
    download.value.save_as(file)
    other = opened()
    other.click("[aria-label='Export and import']")
    other.set_input_files("dialog input[type=file]", file)
    other.click(".conversations .open")
    assert reply(other) == said
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "akunu-conversations", "version": 1, "conversations": [{}]}')
    other.click("[aria-label='Export and import']")
    other.set_input_files("dialog input[type=file]", broken)
    other.wait_for_selector("dialog .mistake:not([hidden])")
    assert other.inner_text("dialog .mistake") == "Not imported: conversation 1 has no id"


def test_settings_are_sent_and_what_makes_no_sense_is_said(opened: Any) -> None:
    page = opened()
    set_field(page, "system", "Be brief.")
    set_field(page, "temperature", "0.5")
    set_field(page, "seed", "3")
    with page.expect_request("**/chat/completions") as sent:
        ask(page, "Hello")
    body = sent.value.post_data_json
    assert (body["temperature"], body["seed"]) == (0.5, 3)
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "top_p" not in body
    assert page.get_attribute(".settings-button", "aria-label") == (
        "Settings of this chat, 3 changed"
    )
    reply(page)
    page.click(".settings-button")
    page.fill("#set-temperature", "warm")
    page.locator("#set-temperature").blur()
    assert page.inner_text("#mistake-temperature") == (
        "This must be a number. The setting is unchanged."
    )


def test_the_theme_follows_the_system_until_one_is_chosen(opened: Any) -> None:
    page = opened(color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.click("[aria-label='Theme: system']")
    light = page.evaluate(paper)
    assert light != dark
    page.reload()
    assert page.evaluate(paper) == light
    page.click("[aria-label='Theme: light']")
    assert page.evaluate(paper) == dark


def test_keys_open_the_search_the_settings_and_the_help(opened: Any) -> None:
    page = opened()
    page.keyboard.press("Control+k")
    assert page.evaluate("document.activeElement.type") == "search"
    for keys, title in (("Control+.", "Settings of this chat"), ("Control+/", "Keyboard")):
        page.keyboard.press(keys)
        assert page.inner_text("dialog h2") == title
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
    page.keyboard.press("Control+b")
    assert not page.is_visible("nav.sidebar")
