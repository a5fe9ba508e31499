"""The chat page with replies of models that think and call tools, which Ember does not."""

from __future__ import annotations

from typing import Any

from page_support import ROUTE, answer_with, ask, events, reply


def test_thoughts_are_folded_until_one_opens_them(opened: Any) -> None:
    page = opened()
    answer_with(page, events({"reasoning_content": "Let me see."}, {"content": "Yes."}))
    ask(page, "Is it?")
    assert reply(page) == "Yes."
    assert page.inner_text(".assistant .thinking summary") == "Thinking (3 words)"
    assert not page.is_visible(".assistant .thinking .prose")
    page.click(".assistant .thinking summary")
    assert page.inner_text(".assistant .thinking .prose") == "Let me see."


def test_a_call_is_shown_and_its_result_goes_back_to_the_model(opened: Any) -> None:
    page = opened()
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather"}}
    rest = {"index": 0, "function": {"arguments": '{"city": "Rome"}'}}
    call = events({"tool_calls": [first]}, {"tool_calls": [rest]}, finish="tool_calls")
    asked = answer_with(page, call, events({"content": "It is warm."}))
    ask(page, "How is the weather in Rome?")
    page.fill("[aria-label='Result of weather']", "24 degrees")
    page.click("text=Send the result")
    page.wait_for_selector("text=It is warm.")
    assert asked[1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "24 degrees"},
    ]
    assert not page.is_visible(".call pre")  # what was done is folded
    page.click(".call summary")
    assert '"city": "Rome"' in page.inner_text(".call")
    assert "24 degrees" in page.inner_text(".call")


def test_a_chat_goes_on_in_the_background_while_another_is_shown(opened: Any) -> None:
    page = opened()
    held: list[Any] = []
    page.route(ROUTE, lambda route: held.append(route))
    ask(page, "Take your time")
    page.wait_for_selector(".conversations .busy")
    page.keyboard.press("Control+Shift+O")
    assert page.locator(".message").count() == 0
    held[0].fulfill(body=events({"content": "Done."}), content_type="text/event-stream")
    page.wait_for_selector(".conversations .busy", state="detached")
    page.click(".conversations .open")
    assert reply(page) == "Done."
