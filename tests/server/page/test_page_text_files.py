"""The chat page: text files are attached, shown, kept, sent in a fence, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from page_support import ITEMS, answer_with, ask, attach, events, file, hand_over, reply
from test_page_for_everybody import findings

NOTES = (
    "# Notes\n\n```python\nx = 1\n```\n\nGrüße, 世界 ```` and <script>window.harmed = 1</script>"
)
TABLE = "a,b\n1,2\n"
MARKDOWN = file("notes.md", NOTES.encode(), "text/markdown")
DATA = file("data.csv", TABLE.encode(), "text/csv")
CODE = file("Makefile", b"all:\n\techo hi\n", "")  # a name without an ending has no type either
CHIPS = f"{ITEMS} .chip .name"


def fences(text: str) -> list[tuple[str, str]]:
    """Language and content of the blocks of code, as another reader of Markdown finds them."""
    found = MarkdownIt("commonmark").parse(text)
    return [(each.info, each.content) for each in found if each.type == "fence"]


def test_files_are_sent_as_text_in_fences_with_their_names(opened: Any) -> None:
    page = opened()
    asked = answer_with(page, events({"content": "Yes."}))
    attach(page, MARKDOWN, CODE)
    hand_over(page, "dragover", "main", DATA)
    page.wait_for_selector(".composer.drop")
    hand_over(page, "drop", "main", DATA)
    page.locator(ITEMS).nth(2).wait_for()
    ask(page, "What is this?")
    assert reply(page) == "Yes."
    ((message,),) = [each["messages"] for each in asked]
    assert fences(message["content"]) == [
        ("md", f"{NOTES}\n"),
        ("", "all:\n\techo hi\n"),
        ("csv", TABLE),
    ]
    names = [line for line in message["content"].split("\n") if line.endswith(":")]
    assert names == ["notes.md:", "Makefile:", "all:", "data.csv:"]
    assert message["content"].endswith("\n\nWhat is this?")
    assert page.locator(".message.user .chip .name").all_inner_texts() == [
        "notes.md",
        "Makefile",
        "data.csv",
    ]
    assert page.inner_text(".message.user .said") == "What is this?"
    page.click(".message.user .chip >> nth=0")
    assert page.inner_text("dialog pre") == NOTES
    assert page.evaluate("window.harmed") is None


def test_a_file_is_pasted_taken_out_and_sent_without_a_text(opened: Any) -> None:
    page = opened()
    asked = answer_with(page, events({"content": "Yes."}))
    hand_over(page, "paste", "#prompt", MARKDOWN, text="notes.md")  # as some file managers copy it
    page.locator(ITEMS).nth(0).wait_for()
    hand_over(page, "paste", "#prompt", DATA)
    page.locator(ITEMS).nth(1).wait_for()
    page.focus("[aria-label='Remove notes.md']")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.ariaLabel") == "Remove data.csv"
    assert page.inner_text("#status") == "notes.md removed"
    page.click("button.send")
    assert reply(page) == "Yes."
    assert asked[0]["messages"] == [{"role": "user", "content": "data.csv:\n```csv\na,b\n1,2\n```"}]
    assert page.inner_text("header.top h1") == "data.csv"


def test_a_model_answers_what_is_in_a_file(opened: Any) -> None:
    page = opened()
    attach(page, DATA)
    ask(page, "What is 12 + 7?")
    assert reply(page)
    assert page.locator(".failure").count() == 0


def test_files_survive_a_reload_an_export_and_an_edit(opened: Any, tmp_path: Path) -> None:
    page = opened()
    asked = answer_with(page, events({"content": "Yes."}))
    attach(page, MARKDOWN, DATA)
    page.reload()
    assert page.locator(CHIPS).all_inner_texts() == ["notes.md", "data.csv"]  # of a draft
    ask(page, "What?")
    reply(page)
    page.press("#prompt", "ArrowUp")
    page.click(".message.user [aria-label='Remove notes.md']")
    page.press("textarea.edit", "Control+Enter")
    page.wait_for_selector(".user .versions")
    reply(page)
    page.reload()
    ask(page, "And?")
    page.wait_for_selector(".message.user >> nth=1")
    reply(page)
    sent = [fences(each["messages"][0]["content"]) for each in asked]
    assert [[language for language, _ in each] for each in sent] == [
        ["md", "csv"],
        ["csv"],
        ["csv"],
    ]
    page.fill(".search input", "世界")  # what is said in a file is found
    assert page.locator(".conversations .title").all_inner_texts() == ["What?"]
    page.click("[aria-label='Export and import']")
    with page.expect_download() as download:
        page.click("text=Export this chat")
    other = opened()
    asked = answer_with(other, events({"content": "No."}))
    other.click("[aria-label='Export and import']")
    other.set_input_files("dialog input[type=file]", download.value.path())
    other.wait_for_selector(".notice >> text=1 imported")
    other.click(".conversations .open")
    ask(other, "Still?")
    other.wait_for_selector(".message.user >> nth=2")
    assert reply(other) == "No."
    assert fences(asked[0]["messages"][0]["content"]) == [("csv", TABLE)]
    other.hover(".user .versions")
    other.click(".user [aria-label='Earlier version']")
    other.locator(".message.user .chip").nth(1).wait_for()
    archive = json.loads(Path(download.value.path()).read_text())
    for message in archive["conversations"][0]["messages"].values():
        for each in message.get("files", []):
            each["text"] = 1
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(archive))
    other.click("[aria-label='Export and import']")
    other.set_input_files("dialog input[type=file]", broken)
    other.wait_for_selector("dialog .mistake:not([hidden])")
    assert other.inner_text("dialog .mistake").endswith("its files are not valid")


def test_what_is_no_text_is_refused_with_what_can_be_attached(opened: Any) -> None:
    page = opened()
    ask(page, "What is 12 + 7?")  # so that it is known that the model reads no images
    reply(page)
    neither = "this is neither text nor an image"
    limit = 512 << 10
    cases = [
        (file("a.pdf", b"%PDF-1.4\n% all of it is ASCII", "application/pdf"), neither),
        (file("b.zip", b"PK\x03\x04\x14\0", "application/zip"), neither),
        (file("c.txt", "Grüße".encode("latin-1"), "text/plain"), neither),
        (file("d.txt", "hi".encode("utf-16"), "text/plain"), neither),
        (file("e", b"\0\1\2", ""), neither),
        (file("f.txt", b"\n", "text/plain"), "the file is empty"),
        (file("g.log", b"x" * (limit + 1), "text/plain"), "the text has more than 512 KiB"),
        # Its first part ends inside of a character.
        (file("h.log", "ü".encode() * limit + b"x", ""), "the text has more than 512 KiB"),
        (file("i.bin", b"x" * limit + b"\0", ""), "the text has more than 512 KiB"),
    ]
    page.set_input_files(".composer input[type=file]", [each for each, _ in cases])
    page.wait_for_selector(".notice >> text=i.bin")
    assert page.inner_text(".notice > span").split("\n") == [
        *(f"{given['name']}: {why}" for given, why in cases),
        "Text files in UTF-8 (.txt, .md, .csv, .json, code) can be attached.",
    ]
    assert page.locator(ITEMS).count() == 0
    attach(page, file("most.log", b"x" * limit, "text/plain"))
    attach(page, file("icon.svg", b"<svg/>", "image/svg+xml"))
    assert page.locator(CHIPS).all_inner_texts() == ["most.log", "icon.svg"]


def test_a_draft_that_the_browser_has_no_room_for_lasts_as_long_as_the_page(opened: Any) -> None:
    page = opened()
    asked = answer_with(page, events({"content": "Yes."}))
    ask(page, "One")
    reply(page)
    # Six million characters: more than local storage takes.
    attach(page, *[file(f"{n}.txt", b"x" * (512 << 10), "text/plain") for n in range(12)])
    page.keyboard.press("Control+Shift+O")
    assert page.locator(ITEMS).count() == 0
    page.click(".conversations .open")
    assert page.locator(ITEMS).count() == 12
    page.click("button.send")
    page.wait_for_selector(".message.user >> nth=1")
    reply(page)
    assert len(fences(asked[1]["messages"][2]["content"])) == 12


@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_about_files_and_nothing_is_too_wide(opened: Any, width: int) -> None:
    page = opened(width=width, reduced_motion="reduce")
    answer_with(page, events({"content": "Yes."}))
    long = file(f"{'long' * 40}.txt", b"x" * 5000, "text/plain")
    attach(page, long, MARKDOWN, DATA)
    assert findings(page) == []
    ask(page, "What?")
    reply(page)
    attach(page, long)
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click(".message.user .chip >> nth=0")
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
