"""Replies on the chat page that are cut, continued, or under way in a page or server that ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_support import DONE, ROUTE, answer_with, ask, events, reply, set_field

LONG = '{"ignore_eos": true, "max_tokens": 12000}'
ENDLESS = {"context_overflow": "shift"}
"""With both, Ember writes longer than a test looks at the middle of it."""


def text_of(page: Any) -> str:
    return str(page.inner_text(".message.assistant.last .body"))


def wait_for_text(page: Any, n: int) -> None:
    page.wait_for_function(
        "n => document.querySelector('.assistant.last .body .prose')?.innerText.length > n", arg=n
    )


def test_a_cut_reply_goes_on_where_it_ended(opened: Any) -> None:
    page = opened()
    set_field(page, "max_tokens", "3")
    ask(page, "What is 12 + 7?")
    first = reply(page)
    assert "reached the limit" in page.inner_text(f"{DONE} .end")
    set_field(page, "max_tokens", "40")
    with page.expect_request(ROUTE) as sent:
        page.click(f"{DONE} >> text=Continue")
    body = sent.value.post_data_json
    assert body["continue_final_message"] is True
    assert body["messages"][-1] == {"role": "assistant", "content": first}
    wait_for_text(page, len(first))
    assert reply(page).startswith(first)
    assert page.locator(".message").count() == 2
    n_tokens = int(page.inner_text(f"{DONE} .cost").split(" ")[0])
    assert n_tokens > 3
    page.reload()
    assert reply(page).startswith(first)


def test_a_cut_thought_goes_on_too(opened: Any) -> None:
    page = opened()
    asked = answer_with(
        page,
        events({"reasoning_content": "Let me"}, finish="length"),
        events({"reasoning_content": " see."}, {"content": "Yes."}),
    )
    ask(page, "Is it?")
    page.wait_for_selector(".end >> text=Continue")
    page.keyboard.press("Control+Shift+Period")
    page.wait_for_selector("text=Yes.")
    assert asked[1]["messages"][-1] == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "Let me",
    }
    page.click(".assistant .thinking summary")
    assert page.inner_text(".assistant .thinking .prose") == "Let me see."


def test_a_reply_that_breaks_off_can_be_continued(opened: Any) -> None:
    page = opened()
    cut = events({"content": "Half a"}).split("data: [DONE]")[0]
    asked = answer_with(page, cut, events({"content": " word."}))
    ask(page, "Say it")
    page.click(".failure >> text=Continue")
    page.wait_for_selector(f"{DONE} >> text=Half a word.")
    assert asked[1]["continue_final_message"] is True
    assert page.locator(".failure").count() == 0


def test_a_reload_without_a_journal_says_so_and_offers_to_continue(
    opened: Any, serving: Callable[..., Any]
) -> None:
    with serving(**ENDLESS) as client:
        page = opened(str(client.base_url))
        set_field(page, "more", LONG)
        ask(page, "Hello")
        wait_for_text(page, 0)
        page.wait_for_timeout(1200)  # it is saved every second
        page.reload()
        page.wait_for_selector(f"{DONE} >> text=The page was closed")
        assert text_of(page)
        assert page.is_visible(f"{DONE} >> text=Continue")


def test_a_reload_goes_on_with_a_reply_of_a_journal(
    opened: Any, serving: Callable[..., Any], tmp_path: Path
) -> None:
    with serving(journal=tmp_path / "journal", **ENDLESS) as client:
        page = opened(str(client.base_url))
        set_field(page, "more", LONG)
        ask(page, "Hello")
        wait_for_text(page, 0)
        page.keyboard.press("Escape")
        reply(page)
        with page.expect_request(ROUTE) as first:
            ask(page, "And again")
        wait_for_text(page, 0)
        page.wait_for_timeout(1200)
        with page.expect_request(ROUTE) as second:
            page.reload()
        again, before = second.value, first.value
        assert again.post_data == before.post_data
        assert again.headers["idempotency-key"] == before.headers["idempotency-key"]
        assert int(again.headers["last-event-id"]) > 1
        page.wait_for_selector(f"{DONE} >> text=reached the limit", timeout=180_000)
        whole = text_of(page)
        answer = client.post(
            "/v1/chat/completions",
            content=before.post_data,
            headers={"idempotency-key": before.headers["idempotency-key"]},
        )
        assert answer.headers["idempotent-replayed"] == "true"
        assert "Idempotency" not in page.inner_text(".end >> nth=-1")
    assert len(whole) > 100


def test_a_reply_outlives_its_server_where_there_is_a_journal(
    opened: Any, serving: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    with serving(journal=folder, drain_seconds=0, **ENDLESS) as client:
        address = str(client.base_url)
        page = opened(address)
        set_field(page, "more", LONG)
        ask(page, "Hello")
        wait_for_text(page, 0)
    page.wait_for_selector(".gone:not([hidden])")
    before = text_of(page)
    assert page.locator(".failure").count() == 0
    port = int(address.rpartition(":")[2].strip("/"))
    with serving(journal=folder, port=port, **ENDLESS):
        page.wait_for_selector(f"{DONE} >> text=reached the limit", timeout=180_000)
        assert text_of(page).startswith(before.rstrip())
        page.wait_for_selector(".gone", state="hidden")


def test_two_tabs_lose_nothing_of_one_conversation(opened: Any) -> None:
    page = opened()
    answer_with(page, events({"content": "First."}))
    ask(page, "One")
    reply(page)
    other = page.context.new_page()
    other.goto(page.url)
    assert reply(other) == "First."
    held: list[Any] = []
    page.unroute(ROUTE)
    page.route(ROUTE, lambda route: held.append(route))
    ask(page, "Two")  # under way here, while the other tab asks too
    page.wait_for_timeout(300)
    other.wait_for_selector(".user >> text=Two")
    assert other.locator("text=The page was closed").count() == 0
    answer_with(other, events({"content": "Fourth."}))
    ask(other, "Four")
    other.wait_for_selector("text=Fourth.")
    held[0].fulfill(body=events({"content": "Third."}), content_type="text/event-stream")
    page.wait_for_selector(".assistant >> text=Third.")
    page.wait_for_timeout(500)
    for each in (page, other):
        each.reload()
        each.wait_for_selector(".message")
    stored = page.evaluate(
        """() => new Promise((resolve) => {
          indexedDB.open("akunu").onsuccess = ({ target }) => {
            const store = target.result.transaction("conversations").objectStore("conversations");
            store.getAll().onsuccess = (event) => resolve(event.target.result);
          };
        })"""
    )
    said = {each["content"] for each in stored[0]["messages"].values()}
    assert said == {"One", "First.", "Two", "Third.", "Four", "Fourth."}
    unfinished = [
        each
        for each in stored[0]["messages"].values()
        if each["role"] == "assistant" and each.get("finish") != "stop"
    ]
    assert unfinished == []
