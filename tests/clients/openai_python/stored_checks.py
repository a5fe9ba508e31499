"""What openai-python stores: responses in the background, conversations, files, batches."""

from __future__ import annotations

import json
import time

import openai
import pytest
from openai import OpenAI


def test_a_response_in_the_background_is_polled_and_its_events_are_read(client: OpenAI) -> None:
    response = client.responses.create(model="ember", input="What is 12 + 7?", background=True)
    assert response.status == "queued"
    name = response.id
    while response.status in ("queued", "in_progress"):
        time.sleep(0.05)
        response = client.responses.retrieve(name)
    assert (response.status, response.output_text) == ("completed", "12 + 7 = 19")
    events = list(client.responses.retrieve(name, stream=True, starting_after=1))
    assert [each.sequence_number for each in events] == list(range(2, len(events) + 2))
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response == response


def test_a_response_in_the_background_is_cancelled(client: OpenAI) -> None:
    response = client.responses.create(
        model="ember", input="Count.", background=True, extra_body={"ignore_eos": True}
    )
    assert client.responses.cancel(response.id).status == "cancelled"
    assert client.responses.retrieve(response.id).status == "cancelled"


def test_a_stream_in_the_background(client: OpenAI) -> None:
    stream = client.responses.create(
        model="ember", input="What is 12 + 7?", background=True, stream=True
    )
    *_, last = stream
    assert last.type == "response.completed"
    assert client.responses.retrieve(last.response.id) == last.response


def test_a_conversation_is_continued_by_responses(client: OpenAI) -> None:
    conversation = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": "What is 12 + 7?"}],
        metadata={"of": "me"},
    )
    response = client.responses.create(
        model="ember", input="And 3 + 4?", conversation=conversation.id
    )
    assert response.conversation is not None
    assert response.conversation.id == conversation.id
    items = list(client.conversations.items.list(conversation.id, limit=2, order="asc"))
    assert [each.type for each in items] == ["message"] * 3
    first = items[0]
    assert first.type == "message"
    assert client.conversations.items.retrieve(first.id or "", conversation_id=conversation.id)
    client.conversations.items.delete(first.id or "", conversation_id=conversation.id)
    added = client.conversations.items.create(
        conversation.id, items=[{"role": "user", "content": "a", "type": "message"}]
    )
    assert len(added.data) == 1
    changed = client.conversations.update(conversation.id, metadata={"of": "you"})
    assert changed.metadata == {"of": "you"}
    assert client.conversations.retrieve(conversation.id) == changed
    assert client.conversations.delete(conversation.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(conversation.id)


def test_a_file_is_uploaded_listed_read_and_deleted(client: OpenAI) -> None:
    file = client.files.create(
        file=("a.jsonl", b"{}\n"),
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (file.filename, file.bytes, file.status) == ("a.jsonl", 3, "processed")
    assert client.files.retrieve(file.id) == file
    assert file.id in [each.id for each in client.files.list(purpose="batch")]
    assert client.files.content(file.id).read() == b"{}\n"
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.content(file.id)


def test_a_batch_answers_the_requests_of_a_file(client: OpenAI) -> None:
    url = "/v1/chat/completions"
    questions = [f"What is {number} + 7?" for number in range(20)]
    lines = [
        json.dumps(
            {
                "custom_id": question,
                "method": "POST",
                "url": url,
                "body": {"model": "ember", "messages": [{"role": "user", "content": question}]},
            }
        )
        for question in questions
    ]
    file = client.files.create(file=("a.jsonl", "\n".join(lines).encode()), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    while batch.status not in ("completed", "failed"):
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert (batch.request_counts.total, batch.request_counts.completed) == (20, 20)
    assert batch.output_file_id is not None
    told = [
        json.loads(each)
        for each in client.files.content(batch.output_file_id).text.split("\n")
        if each
    ]
    assert sorted(each["custom_id"] for each in told) == sorted(questions)
    assert all(each["response"]["body"]["choices"] for each in told)
    assert batch.id in [each.id for each in client.batches.list(limit=1)]
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)
