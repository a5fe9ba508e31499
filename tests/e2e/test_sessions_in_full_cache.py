"""Sessions that are loaded where the cache has little room: they share, take the place of prefixes
of texts that ended, or come back in part; the text is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import akunu

PAGE = 256  # positions
BASE = [20 + i * 7 % 200 for i in range(600)]


@pytest.fixture
def branches(tmp_path: Path) -> list[Path]:
    """Files of three sessions that begin alike for 600 tokens, and end differently."""
    with akunu.load("ember", context=1024) as model:
        base = model.session()
        base.append(BASE)
        for i in range(3):
            branch = base.fork()
            branch.append([300 + i] * 20)
            branch.save(tmp_path / f"{i}.session")
    return [tmp_path / f"{i}.session" for i in range(3)]


@contextmanager
def with_pages(n: int) -> Iterator[akunu.Model]:
    """Ember with a cache of so many pages, a text of 1,024 tokens at a time."""
    with akunu.load("ember", context=512) as model:
        page = model.memory["cache"] // 2
    with akunu.load("ember", context=min(n, 4) * PAGE, kv_memory=n * page) as model:
        assert sum(each.free for each in model.occupancy.cache) == n
        yield model


def expected_of(path: Path) -> akunu.Completion:
    with akunu.load("ember", context=1024, prefix_cache=False) as model:
        return model.load_session(path).generate(max_tokens=8, temperature=1.0, seed=3)


def test_branches_that_are_loaded_lie_in_the_cache_once(branches: list[Path]) -> None:
    with with_pages(5) as model:  # two that all share, and one for each
        sessions = [model.load_session(path) for path in branches]
        assert [each.restored_tokens for each in sessions] == [620] * 3
        begun = time.monotonic()  # the engine says how full it is a moment after it answered
        while free := sum(each.free for each in model.occupancy.cache):
            assert time.monotonic() - begun < 30, free
            time.sleep(0.01)
        for session, path in zip(sessions, branches, strict=True):
            reply = session.generate(max_tokens=8, temperature=1.0, seed=3)
            assert reply == expected_of(path)


def test_a_session_that_is_loaded_takes_the_place_of_prefixes(branches: list[Path]) -> None:
    with with_pages(4) as model:
        model.generate([7] * 900, max_tokens=1)
        assert sum(each.free for each in model.occupancy.cache) == 0
        session = model.load_session(branches[0])
        assert (session.restored_tokens, session.notes) == (620, ())
        reply = session.generate(max_tokens=8, temperature=1.0, seed=3)
        assert (reply, reply.cached_tokens) == (expected_of(branches[0]), 619)


def test_where_a_text_under_way_needs_pages_a_beginning_comes_back(branches: list[Path]) -> None:
    for _ in range(20):  # a text may end before the session is there
        with with_pages(4) as model:
            stream = model.generate([7] * 300, stream=True, max_tokens=200, ignore_eos=True)
            next(stream)  # it has two pages
            session = model.load_session(branches[0])
            stream.close()
            if session.restored_tokens == 620:
                continue
            assert session.restored_tokens == 2 * PAGE
            assert "room for 512 of the 620 tokens" in session.notes[0]
            reply = session.generate(max_tokens=8, temperature=1.0, seed=3)
            assert (reply, reply.cached_tokens) == (expected_of(branches[0]), 2 * PAGE)
            return
    pytest.fail("no text was under way when the session was loaded")


def test_without_a_cache_of_prefixes_a_session_says_why_it_is_read_again(tmp_path: Path) -> None:
    with akunu.load("ember", context=PAGE, prefix_cache=False) as model:
        session = model.session()
        session.append("Hello there!")
        session.generate(max_tokens=5)
        session.append(" And")
        session.save(tmp_path / "session")
        loaded = model.load_session(tmp_path / "session")
        assert loaded.restored_tokens == 0
        assert "there is none with prefix_cache=False" in loaded.notes[0]
        assert loaded.generate(max_tokens=5) == session.generate(max_tokens=5)
    with akunu.load("ember", context=PAGE) as model:
        assert model.load_session(tmp_path / "session").notes == ()
