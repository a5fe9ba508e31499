"""The chat page with a small Gemma 3: images are attached, shown, kept, sent, and refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from image_models import drawn, encoded, url_of, write
from page_support import ROUTE, answer_with, ask, attach, events, file, hand_over, reply, set_field
from running_server import running
from test_page_for_everybody import findings

import akunu
from akunu import LoadOptions
from akunu.images.reader import open_image
from akunu.server import ServedModels

FIRST, SECOND = drawn(1), drawn(2)

ATTACHED = ".attached img"
LOOK = f"{ROUTE}/input_tokens"
SHORT = '{"max_tokens": 4, "temperature": 0, "ignore_eos": true}'


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server whose model reads images."""
    folder = write(tmp_path_factory.mktemp("images") / "model")
    models = ServedModels({"gemma": str(folder)}, LoadOptions(device="cpu", context=512))
    with running(models, max_body=1 << 20) as client:
        client.post("/v1/models/load", json={"model": "gemma"})
        yield client


PICTURE = file("cat.png", encoded(FIRST))
OTHER = file("dog.png", encoded(SECOND))


def in_store(page: Any, database: str, name: str) -> list[dict[str, Any]]:
    """What the browser has in a store of a database."""
    found: list[dict[str, Any]] = page.evaluate(
        """([database, name]) => new Promise((done) => {
          indexedDB.open(database).onsuccess = ({ target }) => {
            const all = target.result.transaction(name).objectStore(name).getAll();
            all.onsuccess = () => done(JSON.parse(JSON.stringify(all.result)));
          };
        })""",
        [database, name],
    )
    return found


def is_drawn(page: Any, image: Any) -> bool:
    """Whether the browser decoded an image, which its policy might forbid."""
    image.wait_for()
    page.wait_for_function(
        "each => each.complete && each.naturalWidth > 0", arg=image.element_handle()
    )
    return bool(image.evaluate("each => each.naturalWidth") == FIRST.width)


def test_an_image_is_attached_shown_and_answered_as_the_server_answers_it(
    opened: Any, reader: httpx.Client
) -> None:
    content = [
        {"type": "image_url", "image_url": {"url": url_of(FIRST)}},
        {"type": "text", "text": "What is this?"},
    ]
    body = {"messages": [{"role": "user", "content": content}], **json.loads(SHORT)}
    said = reader.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    page = opened(str(reader.base_url))
    set_field(page, "more", SHORT)
    attach(page, PICTURE)
    assert is_drawn(page, page.locator(ATTACHED))
    assert page.locator(ATTACHED).get_attribute("alt") == "cat.png"
    with page.expect_request(ROUTE) as sent:
        ask(page, "What is this?")
    assert sent.value.post_data_json["messages"] == body["messages"]
    page.wait_for_selector(".message.assistant.last:not(.writing) .cost")
    (kept,) = in_store(page, "akunu", "conversations")
    assert [each["content"] for each in kept["messages"].values()] == ["What is this?", said]
    assert is_drawn(page, page.locator(".message.user img"))
    assert page.locator(ATTACHED).count() == 0


def test_images_are_dropped_pasted_taken_out_and_sent_without_a_text(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    page.wait_for_selector("[aria-label='Attach files']")
    asked = answer_with(page, events({"content": "Yes."}))
    hand_over(page, "dragover", "main", PICTURE)
    page.wait_for_selector(".composer.drop")
    hand_over(page, "drop", "main", PICTURE)
    page.locator(ATTACHED).nth(0).wait_for()
    assert page.locator(".composer.drop").count() == 0
    hand_over(page, "paste", "#prompt", OTHER)
    page.locator(ATTACHED).nth(1).wait_for()
    hand_over(page, "paste", "#prompt", OTHER, text="a table")  # and a picture of it
    page.focus("[aria-label='Remove cat.png']")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.ariaLabel") == "Remove dog.png"
    assert page.inner_text("#status") == "cat.png removed"
    assert page.locator(ATTACHED).count() == 1
    page.click("button.send")
    assert reply(page) == "Yes."
    assert asked[0]["messages"] == [
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": url_of(SECOND)}}],
        }
    ]
    assert page.inner_text("header.top h1") == "dog.png"


def test_what_the_server_refuses_is_not_attached(
    opened: Any, reader: httpx.Client, tmp_path: Path
) -> None:
    page = opened(str(reader.base_url))
    page.wait_for_selector("[aria-label='Attach files']")
    with pytest.raises(akunu.ArgumentError) as unread:
        open_image(b"no image")
    cases = [
        (
            file("a.pdf", b"%PDF-1.7 \xff", "application/pdf"),
            "a.pdf: this is neither text nor an image",
        ),
        (file("b.png", b"no image"), f"b.png: {unread.value}"),
        (file("c.png", encoded(FIRST)[:-60]), "c.png: the image is damaged: "),
        (
            file("d.png", encoded(FIRST) + bytes(1 << 20)),
            "d.png: the body of the request is larger",
        ),
    ]
    for given, why in cases:
        page.set_input_files(".composer input[type=file]", [given])
        page.wait_for_selector(f".notice >> text={given['name']}")
        assert page.inner_text(".notice > span").startswith(why)
    large = tmp_path / "large.png"
    with large.open("wb") as whole:
        whole.truncate((32 << 20) + 1)
    with pytest.raises(akunu.ArgumentError) as too_large:
        open_image(large)
    asked: list[Any] = []
    page.route(LOOK, lambda route: asked.append(route))
    page.set_input_files(".composer input[type=file]", large)
    page.wait_for_selector(f".notice >> text=large.png: {too_large.value}")
    assert asked == []  # that much is known without the server
    page.unroute(LOOK)
    assert page.locator(ATTACHED).count() == 0
    page.set_input_files(".composer input[type=file]", [cases[0][0], PICTURE, cases[1][0]])
    page.wait_for_selector(ATTACHED)
    page.wait_for_selector(".notice >> text=b.png")
    assert page.inner_text(".notice > span").split("\n") == [
        cases[0][1],
        cases[1][1],
        "Text files in UTF-8 (.txt, .md, .csv, .json, code) and images (PNG, JPEG, WebP, GIF, BMP) "
        "can be attached.",
    ]


def test_a_model_that_reads_no_images_takes_none(opened: Any) -> None:
    page = opened()
    ask(page, "What is 12 + 7?")  # so that it is loaded
    reply(page)
    hand_over(page, "drop", "main", PICTURE)
    page.wait_for_selector(".notice >> text=does not read images")
    assert page.locator(ATTACHED).count() == 0


def test_images_survive_a_reload_outside_of_the_conversation(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    asked = answer_with(page, events({"content": "Yes."}))
    attach(page, PICTURE)
    page.reload()
    assert is_drawn(page, page.locator(ATTACHED))  # of a draft
    ask(page, "What?")
    reply(page)
    page.reload()
    assert is_drawn(page, page.locator(".message.user img"))
    attach(page, OTHER)
    ask(page, "And?")
    page.wait_for_selector(".message.user >> nth=1")
    reply(page)
    urls = [
        part["image_url"]["url"]
        for message in asked[1]["messages"]
        for part in message["content"]
        if message["role"] == "user" and part["type"] == "image_url"
    ]
    assert urls == [url_of(FIRST), url_of(SECOND)]
    page.click("[aria-label='Export and import']")
    with page.expect_download() as download:
        page.click("text=Export this chat")
    archive = json.loads(Path(download.value.path()).read_text())
    assert "base64" not in json.dumps(archive["conversations"])
    assert list(archive["images"].values()) == [url_of(FIRST), url_of(SECOND)]
    other = opened(str(reader.base_url))
    other.click("[aria-label='Export and import']")
    other.set_input_files("dialog input[type=file]", download.value.path())
    other.wait_for_selector(".notice >> text=1 imported")
    other.click(".conversations .open")
    assert is_drawn(other, other.locator(".message.user img").nth(1))


def test_an_image_is_taken_out_by_an_edit_and_back_with_the_earlier_version(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    asked = answer_with(page, events({"content": "Yes."}))
    attach(page, PICTURE, OTHER)
    ask(page, "What?")
    reply(page)
    page.press("#prompt", "ArrowUp")
    page.click(".message.user [aria-label='Remove cat.png']")
    page.press("textarea.edit", "Escape")
    assert page.locator(".message.user img").count() == 2
    page.press("#prompt", "ArrowUp")
    page.click(".message.user [aria-label='Remove cat.png']")
    page.press("textarea.edit", "Control+Enter")
    page.wait_for_selector(".user .versions")
    reply(page)
    assert [len(each["messages"][0]["content"]) for each in asked] == [3, 2]
    page.hover(".user .versions")
    page.click(".user [aria-label='Earlier version']")
    page.locator(".message.user img").nth(1).wait_for()


def test_a_deleted_chat_takes_its_images_along_and_brings_them_back(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    answer_with(page, events({"content": "Yes."}))
    attach(page, PICTURE)
    ask(page, "What?")
    reply(page)
    page.click("[aria-label='Delete “What?”']")
    page.wait_for_selector(".notice >> text=is deleted")
    assert len(in_store(page, "akunu.images", "images")) == 0
    page.click(".notice button >> text=Undo")
    assert is_drawn(page, page.locator(".message.user img"))
    assert len(in_store(page, "akunu.images", "images")) == 1


def test_a_browser_without_room_keeps_the_conversation_and_says_that_the_image_is_lost(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    asked = answer_with(page, events({"content": "Yes."}))
    large = file("large.png", encoded(FIRST) + bytes(740_000))
    page.context.new_cdp_session(page).send(
        "Storage.overrideQuotaForOrigin",
        {"origin": str(reader.base_url).rstrip("/"), "quotaSize": 700_000},
    )
    attach(page, large)
    page.wait_for_selector(".notice >> text=could not store large.png")
    ask(page, "What?")
    assert reply(page) == "Yes."
    assert len(asked[0]["messages"][0]["content"]) == 2
    page.reload()
    assert reply(page) == "Yes."
    assert "this browser has it no longer" in page.inner_text(".message.user .lost")
    ask(page, "And?")
    page.wait_for_selector(".message.user >> nth=1")
    reply(page)
    assert [each["content"] for each in asked[1]["messages"]] == ["What?", "Yes.", "And?"]


def test_an_image_that_another_tab_has_sent_is_not_taken_out_with_its_draft(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    answer_with(page, events({"content": "Yes."}))
    attach(page, PICTURE)
    other = page.context.new_page()
    other.goto(str(reader.base_url))
    other.locator(ATTACHED).wait_for()
    ask(page, "What?")
    reply(page)
    other.wait_for_selector(".conversations .open")
    other.click("[aria-label='Remove cat.png']")
    other.locator(ATTACHED).wait_for(state="detached")
    assert len(in_store(page, "akunu.images", "images")) == 1


def test_images_without_room_come_with_the_same_file_once_there_is_room(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    answer_with(page, events({"content": "Yes."}))
    attach(page, file("large.png", encoded(FIRST) + bytes(740_000)))
    ask(page, "What?")
    reply(page)
    page.click("[aria-label='Export and import']")
    with page.expect_download() as download:
        page.click("text=Export this chat")
    other = opened(str(reader.base_url))
    room = {"origin": str(reader.base_url).rstrip("/"), "quotaSize": 700_000}
    session = other.context.new_cdp_session(other)

    def bring(said: str) -> None:
        other.click("[aria-label='Export and import']")
        other.set_input_files("dialog input[type=file]", download.value.path())
        other.wait_for_selector(f".notice >> text={said}")

    session.send("Storage.overrideQuotaForOrigin", room)
    bring("1 imported. The browser could not store the images")
    session.send("Storage.overrideQuotaForOrigin", {"origin": room["origin"]})
    other.reload()
    bring("1 were here already")
    other.reload()
    other.click(".conversations .open")
    assert is_drawn(other, other.locator(".message.user img"))


def test_images_are_left_where_the_conversations_cannot_be_read(
    opened: Any, reader: httpx.Client
) -> None:
    page = opened(str(reader.base_url))
    answer_with(page, events({"content": "Yes."}))
    attach(page, PICTURE)
    ask(page, "What?")
    reply(page)
    page.evaluate(
        """() => new Promise((done) => {
          indexedDB.open("akunu.images").onsuccess = ({ target }) => {
            const store = target.result.transaction("images", "readwrite").objectStore("images");
            store.getAll().onsuccess = ({ target: { result: [image] } }) => {
              store.put({ ...image, created: 0 }).onsuccess = done;
            };
          };
        })"""
    )
    page.add_init_script(
        """const open = indexedDB.open.bind(indexedDB);
        indexedDB.open = (name, ...more) => {
          if (name === "akunu") throw new Error("closed");
          return open(name, ...more);
        };"""
    )
    page.reload()
    page.wait_for_selector("select.model option", state="attached")
    page.wait_for_timeout(500)  # what is swept is swept by then
    assert len(in_store(page, "akunu.images", "images")) == 1


@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_about_images_and_nothing_is_too_wide(
    opened: Any, reader: httpx.Client, width: int
) -> None:
    page = opened(str(reader.base_url), width=width, reduced_motion="reduce")
    answer_with(page, events({"content": "Yes."}))
    wide = file("wide.png", encoded(FIRST.resize((4000, 90))))
    attach(page, wide, PICTURE, OTHER)
    assert findings(page) == []
    ask(page, "What?")
    reply(page)
    attach(page, wide)
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
