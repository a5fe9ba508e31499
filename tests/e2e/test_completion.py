"""What `generate` and `chat` return, and how stop strings end a text."""

from __future__ import annotations

import copy
import pickle
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import akunu
from akunu import AkunuError, ArgumentError, Completion, SamplingOptions
from akunu.text.stop_strings import StopFinder
from akunu.tools import ToolCall
from lines import each_line

# So hot that the next token is nearly any: such a text goes on until the context is full.
HOT: dict[str, Any] = {"temperature": 50, "seed": 3}
HELLO = [{"role": "user", "content": "Hello! Who are you?"}]

CALL = ToolCall("call_1", "now", "{}")
MADE = Completion(
    "some text",
    token_ids=[3, 4],
    finish_reason="stop",
    stop="END",
    reasoning="Hm.",
    tool_calls=[CALL],
    reasoning_tokens=2,
    prompt_tokens=10,
    completion_tokens=5,
    cached_tokens=2,
    prefix_end="differs",
    drafted_tokens=4,
    accepted_tokens=3,
    prompt_seconds=0.5,
    completion_seconds=2.0,
)


def facts(completion: Completion) -> dict[str, Any]:
    names = [name for name in dir(Completion) if isinstance(getattr(Completion, name), property)]
    return {name: getattr(completion, name) for name in names}


# --- the object ----------------------------------------------------------------------------------


def test_a_completion_is_its_text() -> None:
    assert MADE == "some text"
    assert hash(MADE) == hash("some text")
    assert repr(MADE) == "'some text'"
    assert f"{MADE}!" == "some text!"
    assert type(MADE.text) is type(str(MADE)) is type(MADE.strip()) is str


def test_its_facts_are_what_it_was_made_with() -> None:
    assert facts(MADE) == {
        "text": "some text",
        "token_ids": (3, 4),
        "finish_reason": "stop",
        "stop": "END",
        "parsed": None,
        "mistakes": (),
        "weakened": (),
        "reasoning": "Hm.",
        "tool_calls": (CALL,),
        "reasoning_tokens": 2,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "cached_tokens": 2,
        "prefix_end": "differs",
        "drafted_tokens": 4,
        "accepted_tokens": 3,
        "prompt_seconds": 0.5,
        "completion_seconds": 2.0,
        "prompt_tokens_per_second": 16.0,  # 8 of the 10 in half a second
        "completion_tokens_per_second": 2.0,  # 4 after the first in two seconds
        "logprobs": None,
        "answer_logprobs": None,
        "prompt_logprobs": None,
    }
    assert set(facts(Completion()).values()) == {"", (), "stop", None, 0}


def test_every_fact_is_documented_and_read_only() -> None:
    for name in facts(MADE):
        assert getattr(Completion, name).__doc__
        with pytest.raises(AttributeError, match=f"'{name}'"):
            setattr(MADE, name, 1)
        with pytest.raises(AttributeError, match=f"'{name}'"):
            delattr(MADE, name)
    with pytest.raises(AttributeError):
        MADE.other = 1  # type: ignore[attr-defined]


def test_copies_and_pickles_keep_the_facts() -> None:
    copies = [copy.copy(MADE), copy.deepcopy(MADE)]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copies.append(pickle.loads(pickle.dumps(MADE, protocol)))
    for other in copies:
        assert type(other) is Completion
        assert facts(other) == facts(MADE)


# --- what a model gives --------------------------------------------------------------------------


def test_a_completion_counts_and_times(ember: akunu.Model) -> None:
    prompt = "Once upon a time"
    text = ember.generate(prompt, **HOT, max_tokens=12)
    assert isinstance(text, Completion)
    assert (text.finish_reason, text.stop) == ("length", None)
    assert text.prompt_tokens == len(ember.tokenizer.encode(prompt))
    assert text.completion_tokens == len(text.token_ids) == 12
    assert 0 <= text.cached_tokens < text.prompt_tokens
    assert text.prompt_seconds > 0
    assert text.completion_seconds > 0
    assert text.completion_tokens_per_second == 11 / text.completion_seconds


def test_the_stop_token_is_not_among_the_ids(ember: akunu.Model) -> None:
    reply = ember.chat(HELLO, max_tokens=200)
    assert (reply.finish_reason, reply.stop) == ("stop", None)
    assert not ember.tokenizer.stop_ids & set(reply.token_ids)
    assert reply.completion_tokens == len(reply.token_ids)
    assert ember.tokenizer.decode(reply.token_ids, skip_special=True).strip() == reply.strip()


def test_a_stream_ends_in_the_same_completion(ember: akunu.Model) -> None:
    whole = ember.generate("The sea", **HOT, max_tokens=20)
    stream = ember.generate("The sea", **HOT, max_tokens=20, stream=True)
    with pytest.raises(AkunuError, match="not complete"):
        _ = stream.completion
    pieces = [next(stream)]
    with pytest.raises(AkunuError, match="not complete"):
        _ = stream.completion
    pieces += stream
    assert stream.completion is stream.completion
    assert "".join(pieces) == stream.completion == whole
    for name in ("token_ids", "finish_reason", "stop", "prompt_tokens", "completion_tokens"):
        assert getattr(stream.completion, name) == getattr(whole, name)
    assert stream.prompt_tokens_done == stream.prompt_tokens == whole.prompt_tokens


def test_a_closed_stream_has_the_completion_of_what_was_taken(ember: akunu.Model) -> None:
    with ember.generate("The sea", **HOT, stream=True) as stream:
        pieces = [next(stream), next(stream)]
    text = stream.completion
    assert (text, text.finish_reason) == ("".join(pieces), "cancelled")
    assert ember.tokenizer.decode(text.token_ids) == text or len(text.token_ids) < len(pieces)
    never = ember.generate("The sea", stream=True)
    never.close()
    assert (never.completion, never.completion.token_ids) == ("", ())


# --- options -------------------------------------------------------------------------------------


def test_options_are_an_object_or_arguments_or_both(ember: akunu.Model) -> None:
    expected = ember.generate("The", max_tokens=9, temperature=3.0, seed=5)
    options = SamplingOptions(max_tokens=9, temperature=3.0, seed=5)
    assert ember.generate("The", options) == expected
    assert ember.generate("The", SamplingOptions(temperature=3.0, seed=5), max_tokens=9) == expected
    assert "".join(ember.generate("The", options, stream=True)) == expected
    assert ember.chat(HELLO, options) == ember.chat(HELLO, max_tokens=9, temperature=3.0, seed=5)


def test_an_option_given_twice_is_refused(ember: akunu.Model) -> None:
    with pytest.raises(
        ArgumentError, match=r"^seed is set twice: 5 in options and 5 as an argument"
    ):
        ember.generate("The", SamplingOptions(seed=5), seed=5)
    with pytest.raises(ArgumentError, match=r"^options is 20; it must be a SamplingOptions"):
        ember.generate("The", 20)  # type: ignore[call-overload]
    for method in (ember.generate, ember.chat):
        with pytest.raises(TypeError, match="temprature"):
            method("The", temprature=1)  # type: ignore[call-overload]


# --- stop strings --------------------------------------------------------------------------------


def expected_cut(text: str, stops: list[str]) -> tuple[str, str | None]:
    """The definition: the stop string that is complete first, the longest of several."""
    for end in range(len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return text[: end - len(longest)], longest
    return text, None


def run_finder(pieces: list[str], stops: list[str]) -> tuple[str, str | None]:
    finder = StopFinder(stops)
    shown = ""
    for piece in pieces:
        shown += finder.push(piece)
        # Nothing that could still turn out to be a stop string was shown, and nothing else is kept.
        seen = "".join(pieces)[: len(shown) + 100]
        assert seen.startswith(shown)
    return shown + finder.finish(), finder.found


LETTERS = st.text(alphabet="abé", max_size=40)
STOPS = st.lists(st.text(alphabet="abé", min_size=1, max_size=6), max_size=4)


@given(pieces=st.lists(LETTERS, max_size=8), stops=STOPS)
def test_stop_strings_are_found_however_the_text_is_cut(
    pieces: list[str], stops: list[str]
) -> None:
    text = "".join(pieces)
    expected = expected_cut(text, stops)
    assert run_finder(pieces, stops) == expected
    assert run_finder(list(text), stops) == expected
    assert run_finder([text], stops) == expected


@given(pieces=st.lists(LETTERS, max_size=8), stops=STOPS)
def test_only_what_may_begin_a_stop_string_is_held_back(
    pieces: list[str], stops: list[str]
) -> None:
    finder = StopFinder(stops)
    seen = shown = ""
    for piece in pieces:
        seen += piece
        shown += finder.push(piece)
        if finder.found is not None:
            break
        held = [
            length
            for stop in stops
            for length in range(1, len(stop))
            if seen.endswith(stop[:length])
        ]
        assert shown == seen[: len(seen) - max(held, default=0)]


def test_a_long_stop_string_costs_linear_time() -> None:
    finder = StopFinder(["a" * 20_000 + "b"])
    assert sum(len(finder.push("a" * 1000)) for _ in range(100)) == 80_000
    assert finder.push("b") == ""
    assert finder.found


def pieces_of(text: str) -> list[str]:
    """Stop strings from the middle of a text: whole words, parts of them, and what spans words."""
    middle = len(text) // 2
    return [text[middle : middle + n] for n in (1, 2, 3, 5, 9)]


def test_a_stop_string_ends_the_text_right_before_it(ember: akunu.Model) -> None:
    whole = ember.generate("Once upon a time", **HOT, max_tokens=60)
    for stop in pieces_of(whole):
        expected, found = expected_cut(whole, [stop])
        text = ember.generate("Once upon a time", **HOT, max_tokens=60, stop=stop)
        assert (text, text.stop, text.finish_reason) == (expected, found, "stop")
        assert text.token_ids == whole.token_ids[: len(text.token_ids)]
        assert text.startswith(ember.tokenizer.decode(text.token_ids))
        # The token after the last one kept has characters that are not part of the text.
        one_more = whole.token_ids[: len(text.token_ids) + 1]
        assert len(ember.tokenizer.decode(one_more)) > len(text)
        assert len(text.token_ids) < text.completion_tokens <= 60
        stream = ember.generate(
            "Once upon a time", **HOT, max_tokens=60, stop=["\0", stop], stream=True
        )
        assert "".join(stream) == stream.completion == expected
        assert stream.completion.completion_tokens == text.completion_tokens


def test_what_a_stop_string_cut_off_is_not_in_the_cache() -> None:
    with akunu.load(context=256) as model:
        prompt = model.tokenizer.encode("Once upon a time")
        whole = model.generate(prompt, **HOT, max_tokens=60)
        for stop in pieces_of(whole):
            with akunu.load(context=256) as other:
                text = other.generate(prompt, **HOT, max_tokens=60, stop=stop)
                assert other._open().wait_until_idle(timeout_ms=60_000)  # it is read
                again = other.generate([*prompt, *whole.token_ids], max_tokens=1)
                assert again.cached_tokens == len(prompt) + len(text.token_ids)
        # Also where the engine was at the end before anybody looked. (The cache is one page: the
        # whole text from above is not there any more.)
        stream = model.generate(prompt, **HOT, max_tokens=60, stop=stop, stream=True)
        generation = stream._decoder.generation
        while generation.completion_seconds(60) == generation.completion_seconds(59):
            time.sleep(0.001)
        cut = "".join(stream)
        assert cut == text
        assert model._open().wait_until_idle(timeout_ms=60_000)
        again = model.generate([*prompt, *whole.token_ids], max_tokens=1)
        assert again.cached_tokens == len(prompt) + len(text.token_ids)


def test_a_stop_string_that_never_comes_changes_nothing(ember: akunu.Model) -> None:
    whole = ember.generate("Once upon a time", **HOT, max_tokens=40)
    text = ember.generate("Once upon a time", **HOT, max_tokens=40, stop=whole[-3:] + "\0")
    assert (text, text.stop, text.token_ids) == (whole, None, whole.token_ids)


def test_a_stop_string_in_a_reply(ember: akunu.Model) -> None:
    reply = ember.chat(HELLO, max_tokens=200)
    stop = reply.split()[1]
    cut = ember.chat(HELLO, max_tokens=200, stop=(stop,))
    assert (cut, cut.stop) == (reply[: reply.index(stop)], stop)


WRONG_STOPS = ["", [""], ["a", ""], 3, b"x", [b"x"], [3], {"a": 1}, {""}, "\ud800"]


@each_line("wrong", WRONG_STOPS, ids=ascii)
def test_what_is_no_stop_string_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^stop is .*must be a str or several"):
        SamplingOptions(stop=wrong)


def test_one_stop_string_needs_no_tuple() -> None:
    assert SamplingOptions(stop="ab").stop == ("ab",)  # type: ignore[arg-type]
    assert SamplingOptions(stop=["ab", "c"]).stop == ("ab", "c")  # type: ignore[arg-type]
    assert SamplingOptions().stop == SamplingOptions(stop=()).stop == ()
    assert SamplingOptions(stop=None).stop == ()  # type: ignore[arg-type]
    assert SamplingOptions(stop={"a"}).stop == ("a",)  # type: ignore[arg-type]
