"""How much of the package a chat passes through: what a reader follows, and what it costs."""

from __future__ import annotations

from request_trace import trace_of_chat

MOST_FILES = 43
MOST_CALLS = 500


def test_a_chat_passes_few_files_and_few_calls() -> None:
    trace = trace_of_chat()
    print(*sorted(trace.files), sep="\n")  # for who has one more
    assert len(trace.files) <= MOST_FILES
    assert trace.files.total() <= MOST_CALLS


def test_a_stream_costs_few_calls_a_token() -> None:
    short, long = (
        trace_of_chat(stream=True, max_tokens=n, ignore_eos=True, temperature=1, seed=1)
        for n in (10, 110)
    )
    # Tokens that have come by the time that the event loop looks are one piece: how many do depends
    # on the machine.
    pieces = long.calls_of("from_piece") - short.calls_of("from_piece")
    assert long.files.total() - short.files.total() <= 5 * 100 + 25 * pieces
