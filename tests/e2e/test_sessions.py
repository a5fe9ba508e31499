"""Sessions: the texts that a model gives without them, forked, rewound, saved and loaded."""

from __future__ import annotations

import copy
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_model import edited

import akunu
from akunu import AkunuError, ArgumentError, ContextOverflowError, SessionFileError
from akunu.storage.session_file import read_session, write_session
from lines import each_line

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


@pytest.fixture(scope="module")
def ember() -> Iterator[Any]:
    """Ember with a context of two pages."""
    with akunu.load("ember", context=512, threads=1) as model:
        yield model


# --- texts ----------------------------------------------------------------------------------------


def test_a_session_writes_what_generate_writes(ember: Any) -> None:
    session = ember.session()
    session.append("The quick brown")
    assert session.token_ids == tuple(ember.tokenizer.encode("The quick brown"))
    for seed in range(3):
        before = session.token_ids
        expected = ember.generate(list(before), max_tokens=12, temperature=1.0, seed=seed)
        reply = session.generate(max_tokens=12, temperature=1.0, seed=seed)
        assert reply == expected
        assert reply.token_ids == expected.token_ids
        assert session.token_ids == (*before, *reply.token_ids)
        session.append(", and then")
        session.append([7, 8])
        assert session.token_ids[-2:] == (7, 8)
    assert session.n_tokens == len(session) == len(session.token_ids)
    assert session.tokens_left == 512 - session.n_tokens
    n_read = session.n_tokens
    assert ember._native.wait_until_idle(timeout_ms=60_000)
    assert session.generate(max_tokens=1).cached_tokens >= n_read - 8  # what was appended last


def test_an_empty_session_is_an_empty_prompt(ember: Any) -> None:
    """Ember has no BOS token to begin one with."""
    with pytest.raises(ArgumentError) as expected:
        ember.generate("")
    with pytest.raises(ArgumentError) as caught:
        ember.session().generate()
    assert str(caught.value) == str(expected.value)


def test_a_stream_is_appended_when_it_ends(ember: Any) -> None:
    session = ember.session()
    session.append("Hello")
    stream = session.generate(max_tokens=10, temperature=50, seed=1, stream=True)
    first = next(stream)
    for use in (
        lambda: session.n_tokens,
        lambda: session.append("x"),
        lambda: session.generate(max_tokens=1),
        session.fork,
        lambda: session.rewind(0),
    ):
        with pytest.raises(AkunuError, match="a reply of this session is being written"):
            use()
    assert first + "".join(stream) == str(stream.completion)
    n = len(ember.tokenizer.encode("Hello"))
    assert session.token_ids[n:] == stream.completion.token_ids


@pytest.mark.parametrize("how", ["closed", "lost"])
def test_of_a_stream_that_is_left_what_came_stays(ember: Any, how: str) -> None:
    session = ember.session()
    session.append("Hello")
    n = session.n_tokens
    stream = session.generate(max_tokens=400, temperature=50, seed=1, stream=True)
    for _ in range(3):
        next(stream)
    shown = stream.token_ids
    if how == "closed":
        stream.close()
    del stream
    assert session.token_ids[n:] == shown
    assert len(shown) >= 3


def test_what_fails_leaves_the_session_as_it_was(ember: Any) -> None:
    session = ember.session()
    session.append("Hello")
    before = session.token_ids
    for wrong in (
        lambda: session.append([ember.config.vocab_size]),
        lambda: session.append(1.5),
        lambda: session.append({"role": "user", "content": "x"}),
        lambda: session.generate(temperature=-1),
        lambda: session.rewind(len(before) + 1),
        lambda: session.rewind(-1),
    ):
        with pytest.raises(ArgumentError):
            wrong()
    with pytest.raises(ContextOverflowError, match="would have 601 tokens, the context holds 512"):
        session.append([1] * (601 - len(before)))
    only = ember.tokenizer.encode("z", add_special=False)
    with pytest.raises(akunu.DeadEndError):
        session.generate(regex="z", logit_bias=dict.fromkeys(only, -math.inf))
    assert session.token_ids == before


def test_forks_in_company_are_the_texts_alone(ember: Any) -> None:
    session = ember.session()
    session.append("It was a dark night. " * 12)
    session.generate(max_tokens=20)
    options = [{"max_tokens": 25, "temperature": 20, "seed": seed} for seed in range(6)]
    expected = [ember.generate(list(session.token_ids), **each) for each in options]
    forks = [session.fork() for _ in options]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda fork, each: fork.generate(**each), forks, options))
    assert found == expected
    assert len({each.token_ids for each in forks}) > 1
    assert session.token_ids == forks[0].token_ids[: session.n_tokens]


def test_a_text_rewinds_to_any_count(ember: Any) -> None:
    session = ember.session()
    session.append("One two three four")
    whole = session.generate(max_tokens=20, temperature=1.0, seed=2)
    n = session.n_tokens
    ids = session.token_ids
    for count in (n - 1, n - 7, 3):
        session.rewind(count)
        assert session.token_ids == ids[:count]
        expected = ember.generate(list(ids[:count]), max_tokens=6)
        assert session.fork().generate(max_tokens=6) == expected
    assert whole.token_ids == ids[n - 20 :]


def test_a_closed_session_and_a_closed_model_say_so() -> None:
    with akunu.load("ember", context=256) as model:
        with model.session() as session:
            session.append("Hello")
            stream = session.generate(max_tokens=200, temperature=50, stream=True)
        assert stream.finish_reason == "cancelled"
        with pytest.raises(AkunuError, match="the session is closed"):
            session.append("x")
        session.close()
        other = model.session()
    with pytest.raises(AkunuError, match="the model is closed"):
        other.append("x")
    with pytest.raises(akunu.MisuseError, match="fork"):
        copy.copy(other)


# --- conversations --------------------------------------------------------------------------------


def talk(session: Any, *questions: str) -> list[Any]:
    replies = []
    for question in questions:
        session.append({"role": "user", "content": question})
        replies.append(session.generate(max_tokens=12, temperature=0.8, seed=len(replies)))
    return replies


def test_a_conversation_says_what_chat_says(ember: Any) -> None:
    session = ember.session()
    session.append([{"role": "system", "content": "Be brief."}])
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    for seed, question in enumerate(["Hello!", "Who are you?", "Spell apple."]):
        messages.append({"role": "user", "content": question})
        expected = ember.chat(messages, max_tokens=12, temperature=0.8, seed=seed)
        session.append(messages[-1])
        assert session.generate(max_tokens=12, temperature=0.8, seed=seed) == expected
        messages.append({"role": "assistant", "content": str(expected)})
        assert session.messages == messages
    with pytest.raises(ArgumentError, match="is the model's; append the next one"):
        session.generate()
    with pytest.raises(ArgumentError, match="this session is a conversation"):
        session.append("text")


def test_a_conversation_rewinds_to_its_marks(ember: Any) -> None:
    session = ember.session()
    talk(session, "Hello!", "Who are you?")
    marks, ids, messages = session.marks, session.token_ids, session.messages
    assert len(marks) == 4
    with pytest.raises(ArgumentError, match=f"n_tokens is {marks[1] - 1}; this conversation can"):
        session.rewind(marks[1] - 1)
    session.rewind(marks[2])
    assert session.messages == messages[:3]
    assert session.generate(max_tokens=12, temperature=0.8, seed=1) == messages[3]["content"]
    assert session.token_ids == ids
    session.rewind(marks[1])
    assert session.messages == messages[:2]
    session.rewind(0)
    assert (session.n_tokens, session.messages) == (0, None)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kv_type", ["f16", "f32", "q8_0", "q4_0"])
def test_a_loaded_session_goes_on_with_the_same_bits(tmp_path: Path, kv_type: str) -> None:
    path = tmp_path / "story.session"
    with akunu.load("ember", context=512, threads=1, kv_type=kv_type) as model:
        session = model.session()
        session.append("Once upon a time, " * 20)
        session.generate(max_tokens=30, temperature=1.0, seed=1)
        session.save(path)
        ids = session.token_ids
        logits = model.logits(list(ids), last=1)
        expected = session.generate(max_tokens=30, temperature=1.0, seed=2, logprobs=3)
    with akunu.load("ember", context=512, threads=2, kv_type=kv_type) as model:
        session = model.load_session(path)
        assert session.token_ids == ids
        assert (session.restored_tokens, session.notes) == (len(ids), ())
        np.testing.assert_array_equal(model.logits(list(ids), last=1), logits)
        reply = session.generate(max_tokens=30, temperature=1.0, seed=2, logprobs=3)
        assert (reply, reply.logprobs) == (expected, expected.logprobs)
        assert reply.cached_tokens == len(ids) - 1


def test_a_loaded_conversation_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "talk.session"
    with akunu.load("ember", context=512) as model:
        session = model.session()
        talk(session, "Hello!", "Who are you?")
        session.save(path)
        marks, messages = session.marks, session.messages
        expected = talk(session, "Spell apple.")
    with akunu.load("ember", context=512) as model:
        session = model.load_session(path)
        assert (session.marks, session.messages) == (marks, messages)
        assert talk(session.fork(), "Spell apple.") == expected
        session.rewind(marks[2])
        assert session.generate(max_tokens=12, temperature=0.8, seed=1) == messages[3]["content"]


def test_an_empty_session_can_be_saved(tmp_path: Path, ember: Any) -> None:
    ember.session().save(tmp_path / "empty")
    assert ember.load_session(tmp_path / "empty").n_tokens == 0


def test_a_session_that_is_full_can_be_saved_and_rewound(tmp_path: Path, ember: Any) -> None:
    """The last token of a full context was chosen and never read: it is one more than fit."""
    session = ember.session()
    session.append("Hello")
    session.generate(ignore_eos=True)
    assert (session.n_tokens, session.tokens_left) == (513, 0)
    session.save(tmp_path / "full")
    loaded = ember.load_session(tmp_path / "full")
    assert loaded.token_ids == session.token_ids
    assert (loaded.restored_tokens, loaded.notes) == (512, ())
    with pytest.raises(ContextOverflowError):
        loaded.generate()
    loaded.rewind(500)
    assert loaded.generate(max_tokens=1).cached_tokens == 499


def saved(ember: Any, path: Path) -> bytes:
    session = ember.session()
    session.append("Hello there, this is a text.")
    session.save(path)
    return path.read_bytes()


@each_line("n", [0, 7, 15, 16, 400, -1])
def test_a_file_that_is_cut_off_says_so(tmp_path: Path, ember: Any, n: int) -> None:
    path = tmp_path / "cut"
    whole = saved(ember, path)
    path.write_bytes(whole[:n])
    message = "is not a saved session" if 0 <= n < 16 else r"is cut off: it has \d+ of \d+ bytes"
    with pytest.raises(SessionFileError, match=message):
        ember.load_session(path)


def test_a_file_with_other_bytes_says_so(tmp_path: Path, ember: Any) -> None:
    path = tmp_path / "damaged"
    whole = saved(ember, path)
    for place, message in [
        (0, "does not begin like one"),
        (8, "in format version 0"),
        (20, "header"),
        (len(whole) - 5, "is damaged"),
    ]:
        wrong = bytearray(whole)
        wrong[place] ^= 1
        path.write_bytes(wrong)
        with pytest.raises(SessionFileError, match=message):
            ember.load_session(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(SessionFileError, match="has 1 bytes more than its header says"):
        ember.load_session(path)
    with pytest.raises(SessionFileError, match="cannot be read: No such file"):
        ember.load_session(tmp_path / "nowhere")
    for nothing in (None, 5, ""):
        for act in (ember.load_session, ember.session().save):
            with pytest.raises(ArgumentError, match=r"path is .*; it must be the path of a file"):
                act(nothing)


def test_a_path_may_begin_with_the_home(
    tmp_path: Path, ember: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    session = ember.session()
    session.append("Hello")
    session.save("~/kept.session")
    assert ember.load_session("~/kept.session").n_tokens == session.n_tokens


def test_a_header_of_nonsense_is_refused_by_name(tmp_path: Path, ember: Any) -> None:
    """Whatever an entry of the header becomes, a named error comes of it or a sound session."""
    path = tmp_path / "nonsense"
    saved(ember, path)
    found = read_session(path)
    for name in found.header:
        for value in (None, -1, [], {}, "x", [[1, 2]], {"digest": 1}):
            header = {**found.header, name: value}
            write_session(path, header, found.tokens, found.positions)
            try:
                session = ember.load_session(path)
            except SessionFileError:
                continue
            assert session.n_tokens == len(found.tokens), name


def test_of_another_model_or_cache_is_refused_by_name(tmp_path: Path, ember: Any) -> None:
    path = tmp_path / "ember.session"
    saved(ember, path)
    wrong_type = r"in f16, the cache of this model has f32: load it with kv_type='f16'"
    with (
        akunu.load("ember", context=512, kv_type="f32") as model,
        pytest.raises(SessionFileError, match=wrong_type),
    ):
        model.load_session(path)
    other = edited(EMBER, tmp_path / "other.gguf", {"general.name": "other"})
    with (
        akunu.load(other, context=512) as model,
        pytest.raises(SessionFileError, match=r"to another model: 'Ember'.*; this one is 'other'"),
    ):
        model.load_session(path)
    with akunu.load("ember", context=256) as model:
        long = ember.session()
        long.append([1] * 300)
        long.save(path)
        with pytest.raises(ContextOverflowError, match="has 300 tokens, the context holds 256"):
            model.load_session(path)


def test_what_another_version_computed_is_read_again(
    tmp_path: Path, ember: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.session"
    monkeypatch.setattr(akunu, "__version__", "0.0.1")
    saved(ember, path)
    monkeypatch.undo()
    session = ember.load_session(path)
    assert session.restored_tokens == 0
    assert "computed by akunu 0.0.1 on cpu" in session.notes[0]
    assert "are read again" in session.notes[0]


def test_a_model_whose_file_changed_is_not_saved_under_its_name(tmp_path: Path) -> None:
    model_file = tmp_path / "model.gguf"
    model_file.write_bytes(EMBER.read_bytes())
    with akunu.load(model_file, context=256) as model:
        session = model.session()
        session.append("Hello")
        os.utime(model_file, ns=(1, 1))
        with pytest.raises(AkunuError, match="has changed since the model was loaded"):
            session.save(tmp_path / "session")


def test_paths_that_cannot_be_written_are_refused(tmp_path: Path, ember: Any) -> None:
    session = ember.session()
    for path in (tmp_path, tmp_path / "no" / "folder", Path("/dev/null")):
        with pytest.raises(ArgumentError):
            session.save(path)


_SAVES = """
import sys
import akunu
with akunu.load("ember", context=512, threads=1) as model:
    sessions = []
    for text in ("The first story. ", "Another one. "):
        session = model.session()
        session.append(text * 10)
        sessions.append(session)
    while True:
        for session in sessions:
            session.save(sys.argv[1])
            print("saved", flush=True)
"""


def test_whatever_kills_it_leaves_the_old_file_or_the_new_one(tmp_path: Path, ember: Any) -> None:
    path = tmp_path / "story.session"
    texts = [ember.tokenizer.encode(text * 10) for text in ("The first story. ", "Another one. ")]
    session = ember.session()
    session.append(texts[0])
    session.save(path)
    chance = random.Random(5)
    seen = set()
    for i in range(60):
        if i >= 12 and len(seen) == 2:
            break
        child = subprocess.Popen(
            [sys.executable, "-c", _SAVES, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(1 + i % 2):  # either text is the last one where saving takes long
            assert child.stdout.readline() == "saved\n"
        time.sleep(chance.random() * 0.1)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        loaded = ember.load_session(path)
        assert list(loaded.token_ids) in texts
        assert loaded.restored_tokens == loaded.n_tokens
        seen.add(loaded.token_ids)
    assert len(seen) == 2
