"""Where a conversation goes among replicas; without Ray."""

from __future__ import annotations

from collections import Counter
from typing import Any

from akunu.ray.conversations import conversation_key, key_of_body
from akunu.ray.placement import by_preference
from lines import each_line

ASKED = {"role": "user", "content": "Hello"}
SAID = {"role": "assistant", "content": "Hi!"}
NEXT = {"role": "user", "content": "And now?"}
IDLE = {"a": 0, "b": 0, "c": 0}


@each_line(
    ("first", "later"),
    [
        ({"messages": [ASKED]}, {"messages": [ASKED, SAID, NEXT]}),
        (
            {"system": "Monday", "messages": [{"role": "system", "content": "1"}, ASKED]},
            {"system": "Tuesday", "messages": [{"role": "system", "content": "2"}, ASKED, SAID]},
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "Hello", "cache_control": {}}],
                    }
                ]
            },
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}, SAID]},
        ),
        ({"input": "Hello"}, {"input": "Hello"}),
        ({"input": [ASKED]}, {"input": [ASKED, {"type": "reasoning"}, SAID, NEXT]}),
        ({"prompt": "a" * 300}, {"prompt": "a" * 300 + "b"}),
        ({"prompt": [7] * 300}, {"prompt": [7] * 400}),
        ({"messages": [{"role": "system", "content": "x"}]},) * 2,
    ],
)
def test_all_turns_of_a_conversation_have_one_key(
    first: dict[str, Any], later: dict[str, Any]
) -> None:
    assert conversation_key(first) == conversation_key(later) != ""


def test_other_questions_and_other_models_have_other_keys() -> None:
    asked: list[dict[str, Any]] = [
        {"messages": [ASKED]},
        {"messages": [NEXT]},
        {"messages": [ASKED], "model": "big"},
        {"prompt": "Hello, you"},
        {"prompt": [1, 2]},
    ]
    assert len(set(map(conversation_key, asked))) == len(asked)


@each_line(
    "body",
    [b"", b"{", b"[]", b"[" * 100_000, b"\xff", b'{"messages": 3}', b"{}"],
)
def test_what_is_no_conversation_has_no_key(body: bytes) -> None:
    assert key_of_body(body) == ""


def test_conversations_are_spread_and_stay_where_they_are_when_a_replica_leaves() -> None:
    keys = [conversation_key({"prompt": str(number)}) for number in range(600)]
    homes = {key: by_preference(key, IDLE)[0] for key in keys}
    assert all(150 < count < 250 for count in Counter(homes.values()).values())
    left = {"a": 0, "b": 0}
    for key, home in homes.items():
        if home != "c":
            assert by_preference(key, left)[0] == home


def test_a_home_with_more_than_its_share_is_passed_over() -> None:
    home, second, third = by_preference("x", IDLE)
    # 3 requests run on 3 replicas and a fourth comes: a replica may have 1.5 * 4 / 3 = 2 of them.
    assert by_preference("x", {home: 1, second: 1, third: 1})[0] == home
    assert by_preference("x", {home: 2, second: 1, third: 0})[0] == second
    assert by_preference("x", {home: 2, second: 0, third: 1})[0] == second


def test_without_a_conversation_the_least_loaded_is_best() -> None:
    assert by_preference("", {"a": 2, "b": 0, "c": 1}) == ["b", "c", "a"]
    assert by_preference("", {}) == by_preference("x", {}) == []
