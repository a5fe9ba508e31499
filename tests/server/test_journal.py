"""Answers that are journalled: asked for again they have the same bytes, wherever they were cut."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from journal_requests import CHATS, REQUESTS, STORY, TEXTS, request_of, without_times
from running_server import Serving, running
from test_metrics import until

from akunu.errors import ArgumentError
from akunu.server import ServerSettings, create_app
from akunu.server.journal import generation
from akunu.server.journal.journal import SUFFIX, Journal
from lines import each_line

STREAM: dict[str, Any] = {**STORY, "stream": True, "temperature": 1.0}
ENDLESS: dict[str, Any] = {**STREAM, "max_tokens": 800}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal")


@pytest.fixture(scope="module")
def keeping(folder: Path) -> Iterator[httpx.Client]:
    """A client of a server with a journal in `folder`."""
    with running(journal=folder) as client:
        yield client


def keyed(key: str, **more: str) -> dict[str, str]:
    return {"idempotency-key": key, **{name.replace("_", "-"): more[name] for name in more}}


def file_of(folder: Path, route: str, key: str) -> Path:
    """The file of an answer of a server that asks for no key."""
    name = "\0".join(("", route.removeprefix("/v1"), key)).encode()
    return folder / (hashlib.blake2b(name, digest_size=20).hexdigest() + SUFFIX)


def lines_of(folder: Path, route: str, key: str) -> list[bytes]:
    return file_of(folder, route, key).read_bytes().splitlines(keepends=True)


@each_line("is_stream", [True, False], ids=["stream", "whole"])
@each_line("name", REQUESTS)
def test_an_answer_that_is_asked_for_again_is_the_same(
    name: str, is_stream: bool, keeping: httpx.Client
) -> None:
    route, body = request_of(name, is_stream=is_stream)
    headers = keyed(f"again,{name},{is_stream}".replace(" ", "-"))
    first = keeping.post(route, json=body, headers=headers)
    assert first.status_code == 200, first.text
    assert "idempotent-replayed" not in first.headers
    again = keeping.post(route, json=body, headers=headers)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"]


@each_line("is_stream", [True, False], ids=["stream", "whole"])
@each_line("name", REQUESTS)
def test_an_answer_goes_on_from_wherever_its_journal_ends(
    name: str, is_stream: bool, keeping: httpx.Client, folder: Path
) -> None:
    route, body = request_of(name, is_stream=is_stream)
    key = f"cut,{name},{is_stream}".replace(" ", "-")
    whole = keeping.post(route, json=body, headers=keyed(key)).text
    lines = lines_of(folder, route, key)
    for n in sorted({1, 2, 3, len(lines) // 2, len(lines) - 1}):  # the head is always on the disk
        for torn in (b"", lines[n][: len(lines[n]) // 2]):
            cut = f"{key},{n},{len(torn)}"
            file_of(folder, route, cut).write_bytes(b"".join(lines[:n]) + torn)
            answer = keeping.post(route, json=body, headers=keyed(cut)).text
            assert without_times(answer) == without_times(whole)
            again = keeping.post(route, json=body, headers=keyed(cut)).text
            assert again == answer


def test_every_place_of_a_journal_may_be_its_end(keeping: httpx.Client, folder: Path) -> None:
    body = {**STREAM, "n": 2}
    whole = keeping.post(CHATS, json=body, headers=keyed("every")).text
    lines = lines_of(folder, CHATS, "every")
    for n in range(1, len(lines)):
        file_of(folder, CHATS, f"every-{n}").write_bytes(b"".join(lines[:n]))
        assert keeping.post(CHATS, json=body, headers=keyed(f"every-{n}")).text == whole


def test_the_text_is_the_one_without_a_journal(keeping: httpx.Client, client: httpx.Client) -> None:
    body = {**STORY, "temperature": 1.0, "seed": 3, "n": 2}
    kept = keeping.post(CHATS, json=body, headers=keyed("text")).json()
    assert kept["choices"] == client.post(CHATS, json=body).json()["choices"]


def test_events_have_ids_and_a_stream_goes_on_behind_one(keeping: httpx.Client) -> None:
    whole = keeping.post(CHATS, json=STREAM, headers=keyed("events")).text
    events = whole.split("\n\n")[:-1]
    ids = re.findall(r"^id: (\d+)$", whole, re.MULTILINE)
    assert ids == [str(i + 1) for i in range(len(events))]
    for n in (0, 1, 5, len(ids) - 1, len(ids)):
        rest = keeping.post(CHATS, json=STREAM, headers=keyed("events", last_event_id=str(n))).text
        assert rest == "".join(each + "\n\n" for each in events[n:])


def test_unseeded_answers_of_two_keys_differ(keeping: httpx.Client) -> None:
    body = {**STORY, "temperature": 2.0}
    answers = [keeping.post(CHATS, json=body, headers=keyed(f"u{i}")).json() for i in range(3)]
    assert len({each["choices"][0]["message"]["content"] for each in answers}) == 3
    assert len({each["id"] for each in answers}) == 3


@pytest.mark.parametrize(
    ("headers", "body", "status", "param"),
    [
        (keyed("taken"), {**STREAM, "max_tokens": 5}, 422, "Idempotency-Key"),
        (keyed("a b"), STREAM, 400, "Idempotency-Key"),
        (keyed("a" * 256), STREAM, 400, "Idempotency-Key"),
        (keyed("taken", last_event_id="x"), STREAM, 400, "Last-Event-ID"),
        (keyed("taken", last_event_id="99"), STREAM, 400, "Last-Event-ID"),
        (keyed("other", last_event_id="1"), STORY, 400, "Last-Event-ID"),
        ({"last-event-id": "1"}, STREAM, 400, "Last-Event-ID"),
    ],
)
def test_headers_that_make_no_sense_are_refused(
    headers: dict[str, str], body: dict[str, Any], status: int, param: str, keeping: httpx.Client
) -> None:
    keeping.post(CHATS, json=STREAM, headers=keyed("taken"))
    answer = keeping.post(CHATS, json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)


def test_a_request_that_is_refused_leaves_its_key_free(keeping: httpx.Client, folder: Path) -> None:
    long = {**STORY, "messages": [{"role": "user", "content": "a " * 3000}]}
    for body in ({**STORY, "temperature": -1}, long):
        assert keeping.post(CHATS, json=body, headers=keyed("free")).status_code == 400
        assert not file_of(folder, CHATS, "free").exists()
    assert keeping.post(CHATS, json=STORY, headers=keyed("free")).status_code == 200


def test_requests_with_one_key_at_a_time_share_one_answer(tmp_path: Path, serving: Serving) -> None:
    answers: list[bytes] = []
    with serving(journal=tmp_path) as client:

        def ask() -> None:
            answers.append(client.post(CHATS, json=STREAM, headers=keyed("shared")).content)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        counted = client.get("/v1/metrics").json()["models"]["ember"]
    assert len(answers) == 6
    assert len(set(answers)) == 1
    assert counted["completion_tokens"] == STREAM["max_tokens"]


def _read_some(client: httpx.Client, key: str, n_events: int) -> str:
    """Read a stream up to so many events, and hang up."""
    found = ""
    with client.stream("POST", CHATS, json=ENDLESS, headers=keyed(key)) as answer:
        for piece in answer.iter_text():
            found += piece
            if found.count("\n\n") >= n_events:
                break
    return "".join(each + "\n\n" for each in found.split("\n\n")[:n_events])


def test_a_client_that_lost_its_connection_gets_the_rest(keeping: httpx.Client) -> None:
    first = _read_some(keeping, "lost", 3)
    rest = keeping.post(CHATS, json=ENDLESS, headers=keyed("lost", last_event_id="3")).text
    assert first + rest == keeping.post(CHATS, json=ENDLESS, headers=keyed("lost")).text


def test_an_answer_that_nobody_reads_stops_and_goes_on_when_it_is_asked_for(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "LINGER_SECONDS", 0.0)
    with serving(journal=tmp_path) as client:
        first = _read_some(client, "alone", 3)
        until(lambda: client.get("/v1/metrics").json()["models"]["ember"]["running"] == 0)
        assert '"over":true' not in file_of(tmp_path, CHATS, "alone").read_text()
        rest = client.post(CHATS, json=ENDLESS, headers=keyed("alone", last_event_id="3")).text
        assert first + rest == client.post(CHATS, json=ENDLESS, headers=keyed("alone")).text
    assert '"over":true' in file_of(tmp_path, CHATS, "alone").read_text()


def test_a_server_that_is_ended_leaves_answers_that_the_next_one_goes_on_with(
    tmp_path: Path, serving: Serving
) -> None:
    with serving(journal=tmp_path) as client:
        first = _read_some(client, "ended", 3)
    with serving(journal=tmp_path) as client:
        rest = client.post(CHATS, json=ENDLESS, headers=keyed("ended", last_event_id="3")).text
        assert first + rest == client.post(CHATS, json=ENDLESS, headers=keyed("ended")).text


def test_an_event_that_is_yet_to_come_is_waited_for(keeping: httpx.Client, folder: Path) -> None:
    whole = keeping.post(CHATS, json=STREAM, headers=keyed("power")).text
    lines = lines_of(folder, CHATS, "power")
    file_of(folder, CHATS, "power2").write_bytes(b"".join(lines[:6]))  # a machine lost the others
    rest = keeping.post(CHATS, json=STREAM, headers=keyed("power2", last_event_id="12")).text
    assert rest == "".join(each + "\n\n" for each in whole.split("\n\n")[12:-1])


def _rewritten(path: Path, to: Path, change: Callable[[list[Any]], None]) -> None:
    records = [json.loads(line[9:]) for line in path.read_bytes().splitlines()]
    change(records)
    texts = [json.dumps(each).encode() for each in records]
    to.write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts))


def _other_device(records: list[Any]) -> None:
    records[1]["computed_by"]["level"] = "none"  # which no machine has


def _other_prompt(records: list[Any]) -> None:
    records[1]["prompts"][0].append(5)


def _other_version(records: list[Any]) -> None:
    records[0]["journal"] = 2


def _other_token(records: list[Any]) -> None:
    records[4]["tokens"] = [records[4]["tokens"][0] ^ 1]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (_other_device, 409, "started with another device, version or context"),
        (_other_prompt, 409, "started with another prompt"),
        (_other_version, 500, "format version 2; this akunu reads 1"),
        (_other_token, 500, "differs at step 2"),
    ],
)
def test_an_answer_that_cannot_go_on_says_so(
    change: Callable[[list[Any]], None],
    status: int,
    message: str,
    keeping: httpx.Client,
    folder: Path,
) -> None:
    whole = {**STREAM, "stream": False}
    keeping.post(CHATS, json=whole, headers=keyed("changed"))
    path, changed = (file_of(folder, CHATS, key) for key in ("changed", change.__name__))

    def cut_and_changed(records: list[Any]) -> None:
        del records[10:]
        change(records)

    _rewritten(path, changed, cut_and_changed)
    answer = keeping.post(CHATS, json=whole, headers=keyed(change.__name__))
    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"


def test_a_file_that_is_no_journal_is_begun_anew(keeping: httpx.Client, folder: Path) -> None:
    file_of(folder, CHATS, "noise").write_bytes(os.urandom(300))
    assert keeping.post(CHATS, json=STREAM, headers=keyed("noise")).text.endswith("[DONE]\n\n")


def test_a_key_is_of_one_route_and_of_one_owner(tmp_path: Path, serving: Serving) -> None:
    with serving(journal=tmp_path, api_keys=["a", "b"]) as client:
        ids = set()
        for owner in ("a", "b"):
            headers = {**keyed("mine"), "authorization": f"Bearer {owner}"}
            for _ in range(2):
                ids.add(client.post(CHATS, json=STORY, headers=headers).json()["id"])
        assert len(ids) == 2
        text = client.post(TEXTS, json={"prompt": "a", "max_tokens": 1}, headers=headers)
        assert text.json()["object"] == "text_completion"
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_old_answers_are_deleted_and_the_oldest_where_there_are_too_many(tmp_path: Path) -> None:
    async def names(journal: Journal, *keys: str) -> None:
        for key in keys:
            kept = await journal.find(("", "/chat/completions", key), b"{}", is_stream=False)
            await journal.let_go(kept)

    def left() -> set[str]:
        known = {file_of(tmp_path, CHATS, key).name: key for key in "abcd"}
        return {known[path.name] for path in tmp_path.glob("*" + SUFFIX)}

    async def look() -> None:
        journal = Journal(tmp_path, 1 << 20, 100.0)
        await names(journal, "a", "b")
        os.utime(file_of(tmp_path, CHATS, "a"), (time.time() - 101,) * 2)
        await journal.close()
        journal = Journal(tmp_path, 1 << 20, 100.0)
        await names(journal, "c")
        assert left() == {"b", "c"}
        await journal.close()
        for i, key in enumerate("bc"):
            os.utime(file_of(tmp_path, CHATS, key), (time.time() - 50 + i,) * 2)
        size = file_of(tmp_path, CHATS, "b").stat().st_size
        journal = Journal(tmp_path, int(1.5 * size), 100.0)
        await names(journal, "d")
        assert left() == {"c", "d"}
        await journal.close()

    asyncio.run(look())


def test_a_folder_is_one_servers(tmp_path: Path) -> None:
    first = Journal(tmp_path / "new", 1, 1.0)
    with pytest.raises(ArgumentError, match="is in use by another server"):
        create_app(ServerSettings(journal=tmp_path / "new"))
    asyncio.run(first.close())
    asyncio.run(Journal(tmp_path / "new", 1, 1.0).close())
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match=r"journal .*file: "):
        Journal(tmp_path / "file", 1, 1.0)


def test_old_answers_go_also_where_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, 1 << 20, 60.0)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 400 * 86400)
    journal._delete_old()
    monkeypatch.undo()
    old = tmp_path / f"old{SUFFIX}"
    old.touch()
    os.utime(old, (real() - 1000, real() - 1000))
    journal._looked -= 61  # a minute later
    journal._delete_old()
    assert not old.exists()
    asyncio.run(journal.close())


def test_a_full_disk_is_said(
    keeping: httpx.Client,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """To the client plainly; where the file is, the log has."""

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    answer = keeping.post(CHATS, json=STREAM, headers=keyed("full"))
    assert answer.status_code == 500
    told = answer.json()["error"]["message"]
    assert told == "the journal of answers cannot be written: No space left on device"
    assert f"{folder}/" in caplog.text
    monkeypatch.undo()
    assert keeping.post(CHATS, json=STREAM, headers=keyed("full")).status_code == 200


def test_without_a_journal_the_headers_are_named_as_ignored(client: httpx.Client) -> None:
    answer = client.post(CHATS, json=STORY, headers=keyed("none", last_event_id="1"))
    assert answer.headers["x-akunu-ignored"] == "idempotency-key, last-event-id"


def test_routes_without_a_journal_name_them_too(keeping: httpx.Client) -> None:
    body = {"messages": STORY["messages"], "max_tokens": 1}
    answer = keeping.post("/v1/messages", json=body, headers=keyed("other-route"))
    assert answer.headers["x-akunu-ignored"] == "idempotency-key"
