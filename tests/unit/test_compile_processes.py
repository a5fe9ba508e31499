"""Processes that compile grammars end with what they were for, and nothing else ends them."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import pytest

from akunu.errors import ArgumentError, QueueFullError
from akunu.grammar import from_schema, separate_process
from akunu.grammar.costs import costliest
from akunu.grammar.separate_process import CompileBudget as Budget
from akunu.grammar.separate_process import Workers, compiling_apart
from lines import each_line

ENDLESS = {"type": "integer", "multipleOf": 399_989}


@pytest.fixture
def workers() -> Iterator[Workers]:
    found = Workers(Budget(seconds=20), most=1)
    yield found
    found.close()


def n_files() -> int:
    return len(os.listdir("/dev/fd"))


def test_who_is_cancelled_while_it_waits_for_its_turn_leaves_no_process(workers: Workers) -> None:
    """What goes on without one: 503 for who comes next, and files that are never closed."""
    waiting = threading.Semaphore(0)
    raised: list[BaseException] = []

    def wait(is_first: bool) -> None:
        with compiling_apart(workers) as attempt:
            attempts.append(attempt)
            waiting.release()
            try:
                from_schema(ENDLESS if is_first else {"enum": [1]})
            except ArgumentError as error:
                raised.append(error)

    attempts: list[separate_process.Attempt] = []
    before = n_files()
    threads = []
    for is_first in (True, False):
        threads.append(threading.Thread(target=wait, args=(is_first,)))
        threads[-1].start()
        waiting.acquire()
        time.sleep(0.5)  # so that it has its process, or waits
    attempts[1].cancel()
    attempts[0].cancel()
    for thread in threads:
        thread.join(10)
    assert [str(each) for each in raised] == ["compiling the grammar was cancelled"] * 2
    assert n_files() == before


def test_a_process_that_ends_since_nobody_asked_is_followed_by_another(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separate_process, "_IDLE_SECONDS", 0.3)
    with compiling_apart(workers):
        from_schema({"enum": [1]})
        (process,) = workers._idle
        assert process._process.wait(10) == 0
        # As where it was looked at before it had ended.
        monkeypatch.setattr(process, "is_alive", lambda: True)
        assert from_schema({"enum": [2]}).llguidance


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no files without a folder")
def test_no_folder_for_temporary_files_is_needed(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with compiling_apart(workers):
        assert from_schema({"enum": [1]}).llguidance


def test_where_the_system_allows_no_process_that_is_said(workers: Workers) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    from_schema({"enum": [1]})  # imports what it needs
    least = os.open("/dev/null", os.O_RDONLY)
    os.close(least)
    with compiling_apart(workers):
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
        try:
            with pytest.raises(QueueFullError, match="a process that compiles the grammar"):
                from_schema({"enum": [1]})
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert from_schema({"enum": [1]}).llguidance


@each_line("value", [10**400, -(10**400), float("inf"), float("nan")])
def test_values_may_be_larger_than_what_keywords_take(value: float) -> None:
    schema = {"examples": [{"multipleOf": value, "maxLength": value}], "multipleOf": 7919}
    assert costliest(schema) == "/multipleOf"
