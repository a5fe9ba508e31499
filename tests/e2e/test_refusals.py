"""What is given wrongly: an error that names it and says what would be right, never a surprise."""

from __future__ import annotations

import array
import copy
import errno
import math
import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu import AkunuError, ArgumentError, MisuseError, Tokenizer
from akunu.convert.importance import ImportanceMatrix
from akunu.templates.chat_template import ChatTemplate, encode_chat
from akunu.text.conversation import Conversation
from lines import each_line

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"

# --- where a model is ----------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a model in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m.gguf").symlink_to(EMBER)
    return tmp_path


@pytest.mark.parametrize("read", [akunu.load, akunu.load_whisper, Tokenizer.from_gguf])
def test_a_pipe_is_no_model_and_nobody_waits_for_it(
    read: Callable[..., Any], tmp_path: Path
) -> None:
    for name in ("pipe", "config.json"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(ArgumentError, match=r"pipe.*regular file"):
        read(tmp_path / "pipe")
    why = r"config\.json: is a pipe; a regular file is needed"
    if read == Tokenizer.from_gguf:  # which takes no directory, whatever is in it
        why = "there is a config.json"
    with pytest.raises(AkunuError, match=why):
        read(tmp_path)


def test_a_pipe_is_no_session_and_no_importance_matrix(ember: akunu.Model, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(AkunuError, match="pipe cannot be read: it is not a regular file"):
        ember.load_session(pipe)
    with pytest.raises(ArgumentError, match="pipe: it is not a regular file"):
        ImportanceMatrix.read(pipe)


READERS: list[Callable[..., Any]] = [akunu.load, Tokenizer.from_gguf]
both = pytest.mark.parametrize("read", READERS, ids=["load", "from_gguf"])


@both
def test_a_file_that_is_no_model_is_said_once(read: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "noise.gguf"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(akunu.ModelFormatError) as caught:
        read(path)
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1


@both
def test_a_tilde_is_the_home(read: Callable[..., Any], home: Path) -> None:
    for given in ("~/m.gguf", Path("~/m.gguf"), home / "m.gguf"):
        assert "akunu" in repr(read(given))


@both
def test_a_file_whose_name_begins_with_a_tilde_is_found(
    read: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~m.gguf").symlink_to(EMBER)
    assert "akunu" in repr(read("~m.gguf"))


@both
def test_the_model_inside_the_package_has_a_name(read: Callable[..., Any]) -> None:
    assert "akunu" in repr(read("ember"))


@both
def test_paths_may_be_of_bytes_where_they_come_from_a_folder(
    read: Callable[..., Any], home: Path
) -> None:
    (entry,) = os.scandir(os.fsencode(home))
    assert "akunu" in repr(read(entry))


@both
@each_line(
    "wrong", ["", "~", "~nobody-of-that-name/m", "a\0b", "x" * 5000, "no/such/file", 7, None, b"em"]
)
def test_what_is_no_file_is_refused_alike(read: Callable[..., Any], wrong: Any, home: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(wrong)
    assert len(str(caught.value)) < 250


@both
def test_a_file_that_may_not_be_read_is_refused_with_the_reason(
    read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: Any) -> None:  # who runs tests as root may read everything
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(ArgumentError, match=r"^/locked/m\.gguf: cannot be opened: Permission den"):
        read("/locked/m.gguf")


# --- prompts -------------------------------------------------------------------------------------

NO_PROMPT: list[Any] = [
    *(None, True, 3, math.nan, 1j, object()),
    *(b"The sea", bytearray(b"The sea"), memoryview(b"The sea")),
    *({1, 2}, {1: 2}, (n for n in (1, 2)), iter([1]), {1: 2}.keys()),
    *([1.0], [None], [b"a"], ["a", None], [[1], 1], [math.nan], [True, False], [1, [2]], "\ud800"),
    *(np.array(["a"]), np.array([0.5]), np.array(5), np.array([True]), np.array([None])),
    np.zeros((1, 2), int),
]


@each_line("wrong", NO_PROMPT, ids=lambda value: type(value).__name__)
def test_what_is_no_prompt_is_refused(ember: akunu.Model, wrong: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        ember.generate(wrong, max_tokens=1)
    message = str(caught.value)
    assert message.startswith(("prompt ", "prompt[", "text "))
    assert len(message) < 250
    if not isinstance(wrong, str):  # that one is a text, but none that can be
        assert "it must be a text (str) or token ids" in message


def test_bytes_are_refused_with_the_way_to_a_text(ember: akunu.Model) -> None:
    for wrong in (b"The sea", bytearray(b"The sea"), memoryview(b"The sea")):
        with pytest.raises(ArgumentError, match=r"decode bytes with \.decode\(\)"):
            ember.generate(wrong)  # type: ignore[call-overload]


def test_every_kind_of_integers_is_taken(ember: akunu.Model) -> None:
    ids = [5, 6, 7]
    expected = ember.logits(ids)
    for same in (
        tuple(ids),
        range(5, 8),
        deque(ids),
        array.array("H", ids),
        np.array(ids, np.uint8),
        [np.uint64(5), 6, np.int8(7)],
    ):
        assert (ember.logits(same) == expected).all()  # type: ignore[arg-type]


def test_an_id_beyond_every_integer_is_named(ember: akunu.Model) -> None:
    with pytest.raises(ArgumentError, match=r"prompt\[1\] is 1180591620717411303424; token ids of"):
        ember.generate([1, 2**70])


def test_a_misspelt_option_is_answered_by_the_method_that_was_called(ember: akunu.Model) -> None:
    with pytest.raises(MisuseError, match=r"^generate\(\) has no option 'temprature'; did you m"):
        ember.generate("a", temprature=1)  # type: ignore[call-overload]
    with pytest.raises(MisuseError, match=r"^chat\(\) has no option 'tool'; did you mean 'tools'"):
        ember.chat([{"role": "user", "content": "a"}], tool=[])  # type: ignore[call-overload]
    with pytest.raises(MisuseError, match=r"'max_new_tokens'; did you mean 'max_tokens'"):
        ember.generate("a", max_new_tokens=1)  # type: ignore[call-overload]


# --- everything else -----------------------------------------------------------------------------

JUNK: list[Any] = [
    *(b"x", bytearray(b"x"), math.nan, 2**70, "\ud800", 1j, object(), object, len),
    *({"a", 1}, {1: 2}, {"a": "b"}, [None], [[1]], [b"a"], [{}], ["a", None]),
    *(np.array([0.5]), np.array([["a"]]), np.datetime64("2020-01-01")),
    [{"role": "user", "content": ["a"]}],
    [{"role": b"user", "content": "a"}],
    [{"role": "user", "content": "a", "x": {(1,): 2}}],
    [{"role": "user", "content": "a", "x": object()}],
    [{"role": "user", "content": "a", "tool_calls": {}}],
]
USER = [{"role": "user", "content": "Hi"}]
CALLS: dict[str, Callable[[akunu.Model, Any], Any]] = {
    "options": lambda model, junk: model.generate("a", junk),
    "stream": lambda model, junk: model.generate("a", stream=junk),
    "messages": lambda model, junk: model.chat(junk),
    "tools": lambda model, junk: model.chat(USER, tools=[junk]),
    "last": lambda model, junk: model.logits([1], last=junk),
    "text": lambda model, junk: model.tokenizer.encode(junk),
    "add_special": lambda model, junk: model.tokenizer.encode("a", junk),
    "pieces": lambda model, junk: model.tokenizer.encode_pieces(junk),
    "ids": lambda model, junk: model.tokenizer.decode(junk),
    "ids of bytes": lambda model, junk: model.tokenizer.decode_bytes(junk),
    "token": lambda model, junk: model.tokenizer.token_text(junk),
    "token by text": lambda model, junk: model.tokenizer.token_id(junk),
    "prompt of a stream": lambda model, junk: model.tokenizer.stream(prompt=junk),
    "token of a stream": lambda model, junk: model.tokenizer.stream().push(junk),
    "metadata": lambda model, junk: Tokenizer.from_metadata(junk),
    "template": lambda model, junk: encode_chat(model.tokenizer, junk, USER),
    "source of a template": lambda model, junk: ChatTemplate(junk).render(USER),
    "tokenizer of a conversation": lambda model, junk: Conversation(junk),
    "system": lambda model, junk: Conversation(model.tokenizer, system=junk),
    "question": lambda model, junk: Conversation(model.tokenizer).prompt(junk),
    "device": lambda model, junk: akunu.load(device=junk),
    "kv_type": lambda model, junk: akunu.load(kv_type=junk),
    "prefix_cache": lambda model, junk: akunu.load(prefix_cache=junk),
    "priority": lambda model, junk: model.generate("Hello", max_tokens=1, priority=junk),
}
# A str is a template, and of two tokens all may be the last.
MAY_TAKE = {"source of a template": str, "last": int, "priority": int}


@each_line("name", CALLS)
def test_junk_is_refused_in_one_line(ember: akunu.Model, name: str) -> None:
    for junk in JUNK:
        try:
            CALLS[name](ember, junk)
        except AkunuError as error:
            message = str(error)
            assert message
            assert "\n" not in message
            assert len(message) < 300
        else:
            assert isinstance(junk, MAY_TAKE.get(name, ())), junk


# --- copies --------------------------------------------------------------------------------------

COPIES: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickle.dumps]


@pytest.fixture
def stream(ember: akunu.Model) -> Iterator[akunu.TextStream]:
    with ember.generate("Hello", max_tokens=3, stream=True) as stream:
        yield stream


@pytest.mark.parametrize("make_copy", COPIES)
def test_models_and_streams_refuse_to_be_copied(
    ember: akunu.Model, stream: akunu.TextStream, make_copy: Callable[[Any], Any]
) -> None:
    with pytest.raises(MisuseError, match=r"akunu\.load\(model\.path\)"):
        make_copy(ember)
    for pieces in (stream, ember.tokenizer.stream()):
        with pytest.raises(MisuseError, match="cannot be copied or pickled"):
            make_copy(pieces)
    assert ember.generate("Hello", max_tokens=1)
    assert issubclass(MisuseError, AkunuError)
    assert issubclass(MisuseError, TypeError)
