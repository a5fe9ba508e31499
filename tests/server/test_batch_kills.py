"""A server that is killed while no client waits: batches and responses in the background."""

from __future__ import annotations

import random
import time
from pathlib import Path

import httpx
import pytest
from batch_requests import OVER, answers_in, batch_file, begin
from journal_requests import CHATS, RESPONSES, STORY
from running_server import running
from test_journal_kills import KilledServer


@pytest.mark.parametrize("n_kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_server_loses_and_doubles_no_line(n_kills: int, tmp_path: Path) -> None:
    bodies = [
        {**STORY, "temperature": 1.0, "seed": number, "max_tokens": 5 + number % 30}
        for number in range(40 * n_kills)
    ]
    server = KilledServer(tmp_path / "journal")
    moments = random.Random(n_kills)
    n_answered = []
    try:
        server.start()
        server.wait_until_ready()
        with httpx.Client(base_url=server.address, timeout=60) as client:
            batch = begin(client, CHATS, batch_file(CHATS, bodies))
            while len(n_answered) < n_kills and batch["status"] not in OVER:
                time.sleep(moments.uniform(0.0, 0.6))
                server.kill()
                server.start()
                if moments.random() < 0.2:  # while it starts
                    server.kill()
                    server.start()
                server.wait_until_ready()
                batch = client.get(f"/v1/batches/{batch['id']}").json()
                n_answered.append(batch["request_counts"]["completed"])
            while batch["status"] not in OVER:
                time.sleep(0.05)
                batch = client.get(f"/v1/batches/{batch['id']}").json()
            assert batch["status"] == "completed", batch
            answers = answers_in(client, batch["output_file_id"])
    finally:
        server.kill()
    print(f"{n_kills} kills, {len(set(n_answered))} of them between answers")
    assert n_answered[0] < len(bodies)
    assert set(answers) == {str(number) for number in range(len(bodies))}
    counts = {"total": len(bodies), "completed": len(bodies), "failed": 0}
    assert batch["request_counts"] == counts
    with running() as client:
        for number in moments.sample(range(len(bodies)), 10):
            undisturbed = client.post(CHATS, json=bodies[number]).json()
            assert answers[str(number)]["body"]["choices"] == undisturbed["choices"]


@pytest.mark.parametrize("n_kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_server_writes_responses_on(n_kills: int, tmp_path: Path) -> None:
    body = {
        **{"input": "Tell me a story.", "ignore_eos": True, "temperature": 1.0, "seed": 1},
        **{"max_output_tokens": 600, "background": True},
    }
    server = KilledServer(tmp_path / "journal")
    moments = random.Random(n_kills)
    try:
        server.start()
        server.wait_until_ready()
        with httpx.Client(base_url=server.address, timeout=60) as client:
            names = [client.post(RESPONSES, json=body).json()["id"] for _ in range(4)]
            for _ in range(n_kills):
                time.sleep(moments.uniform(0.0, 0.4))
                server.kill()
                server.start()
                server.wait_until_ready()
            found = []
            for name in names:
                while (response := client.get(f"{RESPONSES}/{name}").json())["status"] in (
                    *("queued", "in_progress"),
                ):
                    time.sleep(0.05)
                found.append(response)
    finally:
        server.kill()
    with running() as client:
        whole = client.post(RESPONSES, json={**body, "background": False}).json()
    for each in found:
        assert each["status"] == "incomplete", each
        assert each["output"][0]["content"] == whole["output"][0]["content"]
