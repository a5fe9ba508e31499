"""A model in Ray's own workers: a task, and an actor with an event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import akunu

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def workers() -> Iterator[None]:
    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False)
    yield
    ray.shutdown()


def test_blocking_and_awaited_calls_work_in_rays_workers(workers: None) -> None:
    question = [{"role": "user", "content": "What colour is the sky?"}]

    # Functions within a function: Ray sends those by value, workers cannot import this file.
    def reply() -> str:
        with akunu.load("ember", context=512, threads=1) as model:
            return str(model.chat(question, max_tokens=4))

    class Actor:
        async def replies(self) -> tuple[str, str]:
            with akunu.load("ember", context=512, threads=1) as model:
                blocking = str(model.chat(question, max_tokens=4))
                return blocking, str(await model.chat_async(question, max_tokens=4))

    expected = reply()
    assert ray.get(ray.remote(reply).remote(), timeout=300) == expected
    actor = ray.remote(Actor).remote()
    assert ray.get(actor.replies.remote(), timeout=300) == (expected, expected)
