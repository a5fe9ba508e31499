"""Files and batches: each request is answered once, as it is over HTTP, also after a restart."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from batch_requests import answers_in, batch_file, begin, state_of, until_over, upload
from journal_requests import CHATS, RESPONSES, STORY, SUM, TEXTS, without_times
from running_server import Serving, running

from akunu.server import ServedModels
from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

SPEC = em.EncoderSpec(positions=64)
BODIES: dict[str, dict[str, Any]] = {
    CHATS: {**STORY, "temperature": 1.0, "seed": 5, "n": 2},
    TEXTS: {"prompt": ["One", "Two"], "max_tokens": 5},
    "/v1/embeddings": {"model": "bert", "input": ["One", "Two"]},
    RESPONSES: {"input": "What is 12 + 7?"},
}


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with a journal."""
    folder = tmp_path_factory.mktemp("journal")
    bert = em.write_gguf(folder / "bert.gguf", SPEC, em.random_tensors(SPEC))
    models = ServedModels({"ember": "ember", "bert": str(bert)})
    with running(models, journal=folder / "journal") as client:
        yield client


def refusal(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["param"]


def without_ids(value: Any) -> Any:
    """An answer without what is another for each request."""
    if isinstance(value, dict):
        unlike = ("id", "created", "created_at")
        return {key: without_ids(each) for key, each in value.items() if key not in unlike}
    return [without_ids(each) for each in value] if isinstance(value, list) else value


@each_line("url", BODIES)
def test_requests_are_answered_as_over_http(keeping: httpx.Client, url: str) -> None:
    good, bad = BODIES[url], {**BODIES[url], "model": "nobody"}
    metadata = {"of": "me"}
    begun = begin(keeping, url, batch_file(url, [good, bad, good]), metadata=metadata)
    assert begun["status"] == "validating"
    batch = until_over(keeping, begun["id"])
    assert (batch["status"], batch["metadata"]) == ("completed", metadata)
    assert batch["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
    told = answers_in(keeping, batch["output_file_id"])
    assert set(told) == {"0", "2"}
    over_http = without_ids(json.loads(without_times(keeping.post(url, json=good).text)))
    for each in told.values():
        assert each["status_code"] == 200
        body = json.loads(without_times(json.dumps(each["body"], separators=(",", ":"))))
        assert without_ids(body) == over_http
    failed = answers_in(keeping, batch["error_file_id"])
    assert failed["1"]["status_code"] == 404
    assert failed["1"]["body"]["error"]["code"] == "model_not_found"
    assert failed["1"]["request_id"].startswith("req_")


def test_files_are_uploaded_listed_read_and_deleted(keeping: httpx.Client) -> None:
    content = bytes(range(256)) * 9000  # more than is held in memory
    files = [upload(keeping, content), upload(keeping, b"x")]
    first = files[0]
    assert (first["object"], first["bytes"], first["filename"]) == (
        *("file", len(content)),
        "requests.jsonl",
    )
    assert keeping.get(f"/v1/files/{first['id']}").json() == first
    assert keeping.get(f"/v1/files/{first['id']}/content").content == content
    listed = keeping.get("/v1/files", params={"purpose": "batch", "limit": 10_000}).json()["data"]
    assert {each["id"] for each in files} <= {each["id"] for each in listed}
    assert keeping.get("/v1/files", params={"purpose": "other"}).json()["data"] == []
    for each in files:
        told = keeping.delete(f"/v1/files/{each['id']}").json()
        assert told == {"id": each["id"], "object": "file", "deleted": True}
        for path in (f"/v1/files/{each['id']}", f"/v1/files/{each['id']}/content"):
            assert keeping.get(path).status_code == 404


def test_a_file_is_deleted_when_its_time_has_come(
    keeping: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {"purpose": "batch", "expires_after[anchor]": "created_at"}
    file = {"file": ("a", b"x")}
    for seconds in ("3599", "soon"):
        answer = keeping.post(
            "/v1/files", data={**form, "expires_after[seconds]": seconds}, files=file
        )
        assert refusal(answer) == (400, "expires_after")
    answer = keeping.post("/v1/files", data={**form, "expires_after[seconds]": "3600"}, files=file)
    told = answer.json()
    assert told["expires_at"] == told["created_at"] + 3600
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3601)
    assert keeping.get(f"/v1/files/{told['id']}").status_code == 404


def test_what_makes_no_sense_is_refused_by_name(keeping: httpx.Client) -> None:
    file = {"file": ("a", b"x")}
    assert refusal(keeping.post("/v1/files", files=file)) == (400, "purpose")
    answer = keeping.post("/v1/files", data={"purpose": "fine-tune"}, files=file)
    assert refusal(answer) == (400, "purpose")
    assert refusal(keeping.post("/v1/files", json={"purpose": "batch"})) == (400, None)
    good = {
        "input_file_id": upload(keeping, b"x")["id"],
        "endpoint": CHATS,
        "completion_window": "24h",
    }
    for field, value, status in (
        ("input_file_id", None, 400),
        ("input_file_id", "file-" + "0" * 32, 404),
        ("endpoint", "/v1/rerank", 400),
        ("completion_window", "1h", 400),
        ("metadata", 3, 400),
    ):
        answer = keeping.post("/v1/batches", json={**good, field: value})
        assert refusal(answer) == (status, field)


def test_a_file_that_is_no_batch_says_where(keeping: httpx.Client) -> None:
    line = json.loads(batch_file(CHATS, [SUM]))
    wrong = [
        "not JSON",
        "[]",
        json.dumps({**line, "custom_id": 3}),
        json.dumps(line),
        json.dumps(line),
        json.dumps({**line, "custom_id": "a", "url": TEXTS}),
        json.dumps({**line, "custom_id": "b", "method": "GET"}),
        json.dumps({**line, "custom_id": "c", "body": {**SUM, "stream": True}}),
    ]
    begun = begin(keeping, CHATS, "\n".join(wrong).encode())
    batch = until_over(keeping, begun["id"])
    assert batch["status"] == "failed"
    assert [(each["line"], each["param"]) for each in batch["errors"]["data"]] == [
        *[(1, None), (2, None), (3, "custom_id"), (5, "custom_id")],
        *[(6, "url"), (7, "method"), (8, "body.stream")],
    ]
    empty = until_over(keeping, begin(keeping, CHATS, b"\n")["id"])
    assert empty["errors"]["data"][0]["code"] == "empty_file"
    assert keeping.post(f"/v1/batches/{batch['id']}/cancel").status_code == 409


def _until_some(client: httpx.Client, name: str, n: int) -> None:
    while state_of(client, name)["request_counts"]["completed"] < n:
        time.sleep(0.01)


def test_a_cancelled_batch_keeps_its_answers(keeping: httpx.Client) -> None:
    endless = {**STORY, "max_tokens": 900}
    content = batch_file(CHATS, [STORY, STORY, *[endless] * 20])
    name = begin(keeping, CHATS, content)["id"]
    _until_some(keeping, name, 2)
    told = keeping.post(f"/v1/batches/{name}/cancel").json()
    assert told["status"] == "cancelling"
    batch = until_over(keeping, name)
    assert batch["status"] == "cancelled"
    answers = answers_in(keeping, batch["output_file_id"])
    assert 2 <= len(answers) == batch["request_counts"]["completed"] < 22


def test_batches_are_listed_in_pages(keeping: httpx.Client) -> None:
    names = [begin(keeping, CHATS, b"x")["id"] for _ in range(3)]
    first = keeping.get("/v1/batches", params={"limit": 2}).json()
    assert len(first["data"]) == 2
    assert first["has_more"]
    rest = keeping.get("/v1/batches", params={"limit": 100, "after": first["last_id"]}).json()
    listed = [each["id"] for each in [*first["data"], *rest["data"]]]
    assert set(names) <= set(listed)
    assert len(listed) == len(set(listed))


def test_a_batch_goes_on_in_the_next_server(tmp_path: Path, serving: Serving) -> None:
    bodies = [{**STORY, "max_tokens": 2 + 30 * (number % 3)} for number in range(60)]
    with serving(journal=tmp_path) as client:
        name = begin(client, CHATS, batch_file(CHATS, bodies))["id"]
        _until_some(client, name, 5)
    with serving(journal=tmp_path) as client:
        batch = until_over(client, name)
        answers = answers_in(client, batch["output_file_id"])
    assert batch["request_counts"] == {"total": 60, "completed": 60, "failed": 0}
    assert set(answers) == set(map(str, range(60)))


def test_no_key_sees_the_objects_of_another(tmp_path: Path, serving: Serving) -> None:
    settings: dict[str, Any] = {"api_keys": ["a", "b"], "rate_limit": 40}
    with serving(journal=tmp_path, **settings) as client:
        client.headers["authorization"] = "Bearer a"
        # More requests than a minute has for a key: they count as the one that begins the batch.
        name = begin(client, TEXTS, batch_file(TEXTS, [{"prompt": "a", "max_tokens": 1}] * 50))[
            "id"
        ]
        while (batch := state_of(client, name))["status"] != "completed":
            assert batch["status"] != "failed"
            time.sleep(1)
        assert batch["request_counts"]["completed"] == 50
        paths = [
            f"/v1/batches/{name}",
            f"/v1/files/{batch['input_file_id']}",
            f"/v1/files/{batch['output_file_id']}/content",
        ]
        for each in paths:
            assert client.get(each).status_code == 200
            other = {"authorization": "Bearer b"}
            assert client.get(each, headers=other).status_code == 404
            assert client.get(each, headers={"authorization": ""}).status_code == 401
        assert client.get("/v1/files", headers=other).json()["data"] == []
        assert client.get("/v1/batches", headers=other).json()["data"] == []
        assert client.post(f"{paths[0]}/cancel", headers=other).status_code == 404
        assert client.delete(paths[1], headers=other).status_code == 404
        body = {"endpoint": TEXTS, "completion_window": "24h", "input_file_id": paths[1][10:]}
        assert client.post("/v1/batches", json=body, headers=other).status_code == 404


def test_limits_are_said(tmp_path: Path, serving: Serving) -> None:
    with serving(journal=tmp_path, max_body=2000, journal_size=3000) as client:
        file = {"file": ("a", b"x" * 3000)}
        answer = client.post("/v1/files", data={"purpose": "batch"}, files=file)
        assert answer.status_code == 413
        upload(client, b"x" * 1500)
        file = {"file": ("a", b"x" * 1600)}
        answer = client.post("/v1/files", data={"purpose": "batch"}, files=file)
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage_full")


def test_a_full_disk_is_said(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with serving(journal=tmp_path) as client:
        name = begin(client, CHATS, batch_file(CHATS, [{**STORY, "max_tokens": 60}] * 100))["id"]
        _until_some(client, name, 2)
        with monkeypatch.context() as patch:
            patch.setattr("os.pwrite", full)
            file = {"file": ("a", b"x")}
            answer = client.post("/v1/files", data={"purpose": "batch"}, files=file)
            assert answer.status_code in (500, 507)
            assert "No space left on device" in answer.json()["error"]["message"]
            time.sleep(0.5)
        assert len(list(tmp_path.glob("objects/*/contents/*"))) <= 2  # not what was refused
    with serving(journal=tmp_path) as client:  # it could not even be noted
        batch = until_over(client, name)
        assert batch["request_counts"] == {"total": 100, "completed": 100, "failed": 0}
        assert len(answers_in(client, batch["output_file_id"])) == 100


def test_without_a_journal_the_option_is_named(client: httpx.Client) -> None:
    file = {"file": ("a", b"x")}
    for answer in (
        client.post("/v1/files", data={"purpose": "batch"}, files=file),
        client.get("/v1/files"),
        client.post("/v1/batches", json={}),
        client.get("/v1/batches"),
    ):
        assert answer.status_code == 400
        assert "--journal FOLDER" in answer.json()["error"]["message"]
