"""What tests of the chat page do again and again; and answers as the server would stream them."""

from __future__ import annotations

import base64
import json
from typing import Any

ROUTE = "**/v1/chat/completions"
DONE = ".message.assistant.last:not(.writing)"
ITEMS = ".attached li"


def ask(page: Any, text: str) -> None:
    page.fill("#prompt", text)
    page.press("#prompt", "Enter")


def reply(page: Any) -> str:
    """The last reply, once it is complete."""
    page.wait_for_selector(f"{DONE} .actions button")
    return str(page.inner_text(f"{DONE} .body"))


def set_field(page: Any, name: str, text: str) -> None:
    """Write a setting of this chat, as a person would."""
    page.click(".settings-button")
    field = page.locator(f"#set-{name}")
    group = page.locator("details.group", has=field)
    if group.count() and not field.is_visible():
        group.locator("summary").click()
    field.fill(text)
    field.blur()
    page.keyboard.press("Escape")


def events(*deltas: dict[str, Any], finish: str = "stop") -> str:
    """A stream of OpenAI's API with these deltas, for replies that Ember cannot write."""
    chunks = [_chunk(each, None) for each in deltas] + [_chunk({}, finish)]
    usage = {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}
    chunks.append({"choices": [], "usage": usage, "timings": {"predicted_per_second": 50.0}})
    lines = [json.dumps(each) for each in chunks] + ["[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines)


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer_with(page: Any, *streams: str) -> list[dict[str, Any]]:
    """Answer requests with these streams in turn; the list gets the requests' bodies."""
    asked: list[dict[str, Any]] = []

    def handle(route: Any) -> None:
        asked.append(route.request.post_data_json)
        body = streams[min(len(asked), len(streams)) - 1]
        route.fulfill(body=body, content_type="text/event-stream")

    page.route(ROUTE, handle)
    return asked


def file(name: str, data: bytes, kind: str = "image/png") -> dict[str, Any]:
    """A file as Playwright takes it."""
    return {"name": name, "mimeType": kind, "buffer": data}


def attach(page: Any, *files: dict[str, Any]) -> None:
    """Choose files, as the button does."""
    n = page.locator(ITEMS).count()
    with page.expect_file_chooser() as chooser:
        page.click("[aria-label='Attach files']")
    chooser.value.set_files(list(files))
    page.locator(ITEMS).nth(n + len(files) - 1).wait_for()


def hand_over(page: Any, kind: str, place: str, *files: dict[str, Any], text: str = "") -> None:
    """Drop or paste files, as a browser tells a page of it."""
    given = [
        [each["name"], each["mimeType"], base64.b64encode(each["buffer"]).decode()]
        for each in files
    ]
    page.evaluate(
        """([kind, place, files, text]) => {
          const data = new DataTransfer();
          for (const [name, type, base64] of files) {
            const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
            data.items.add(new File([bytes], name, { type }));
          }
          if (text) data.setData("text/plain", text);
          const about = { bubbles: true, cancelable: true };
          const event = kind === "paste"
            ? new ClipboardEvent(kind, { ...about, clipboardData: data })
            : new DragEvent(kind, { ...about, dataTransfer: data });
          document.querySelector(place).dispatchEvent(event);
        }""",
        [kind, place, given, text],
    )
