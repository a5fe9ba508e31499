"""Sessions, adapters, speculation and profiles in C beside the Python package."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from c_library import (
    ARGUMENT,
    BUSY,
    CONTEXT,
    HANDLE,
    Adapter,
    AdapterWeight,
    CError,
    GenerateOptions,
    Handle,
    Library,
    LoadOptions,
    ProfileOptions,
    Stats,
    as_callback,
)

import akunu
from akunu import _core

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
CONTEXT_SIZE = 512


@pytest.fixture(scope="module")
def known() -> Iterator[akunu.Model]:
    with akunu.load("ember", device="cpu", context=CONTEXT_SIZE, threads=1) as model:
        yield model


@pytest.fixture
def model(library: Library) -> Iterator[Handle]:
    options = LoadOptions(device=b"cpu", context=CONTEXT_SIZE, threads=1)
    handle = library.new("load_model", str(EMBER).encode(), ctypes.byref(options))
    yield handle
    library.call("close_model", handle)


def append(library: Library, session: Handle, ids: list[int]) -> None:
    tokens = (ctypes.c_uint32 * len(ids))(*ids)
    library.call("append", session, tokens, ctypes.c_size_t(len(ids)))


def tokens_of(library: Library, session: Handle) -> list[int]:
    tokens = (ctypes.c_uint32 * CONTEXT_SIZE)()
    length = ctypes.c_size_t()
    room = ctypes.c_size_t(CONTEXT_SIZE)
    library.call("get_session_tokens", session, tokens, room, ctypes.byref(length))
    return tokens[: length.value]


def go_on(library: Library, session: Handle, callback: Any = None, **fields: Any) -> Stats:
    stats = Stats()
    options = ctypes.byref(GenerateOptions(**fields))
    library.call("continue", session, options, callback, None, ctypes.byref(stats))
    return stats


def test_a_session_is_the_one_of_the_package(
    library: Library, model: Handle, known: akunu.Model
) -> None:
    session, theirs = library.new("open_session", model), known.session()
    for text in ("The sea is", " deep, and"):
        append(library, session, known.tokenizer.encode(text, add_special=False))
        theirs.append(text)
        before = theirs.n_tokens
        stats = go_on(library, session, max_tokens=12)
        theirs.generate(max_tokens=12, temperature=0.0)
        assert tokens_of(library, session) == list(theirs.token_ids)
        assert stats.prompt_tokens == before
    assert stats.cached_tokens > 0

    fork, their_fork = library.new("fork_session", session), theirs.fork()
    library.call("rewind", session, ctypes.c_size_t(5))
    theirs.rewind(5)
    for ours, other in ((session, theirs), (fork, their_fork)):
        go_on(library, ours, max_tokens=8)
        other.generate(max_tokens=8, temperature=0.0)
        assert tokens_of(library, ours) == list(other.token_ids)
    library.call("rewind", session, ctypes.c_size_t(0))
    assert tokens_of(library, session) == []
    for handle in (session, fork):
        library.call("close_session", handle)


def test_a_callback_ends_a_turn(library: Library, model: Handle, known: akunu.Model) -> None:
    session = library.new("open_session", model)
    prompt = known.tokenizer.encode("The sea is", add_special=False)
    append(library, session, prompt)
    heard: list[int] = []
    refused: list[int] = []

    def callback(token: int, _text: bytes) -> bool:
        heard.append(token)
        room = ctypes.c_size_t(0)
        refused.append(library.c.akunu_rewind(session, room))
        return len(heard) < 3

    go_on(library, session, as_callback(callback), max_tokens=20)
    assert len(heard) == 3
    assert tokens_of(library, session) == [*prompt, *heard]
    assert refused == [BUSY] * 3
    library.call("close_session", session)


def test_what_a_session_cannot_do_is_refused(
    library: Library, model: Handle, known: akunu.Model
) -> None:
    session = library.new("open_session", model)
    with pytest.raises(CError, match="has no tokens"):
        go_on(library, session)
    append(library, session, [1, 2, 3])
    for call, status, why in (
        (lambda: append(library, session, [10**6]), ARGUMENT, r"tokens\[0\] is 1000000"),
        (lambda: append(library, session, [1] * 510), CONTEXT, "510 more do not fit into 512"),
        (lambda: library.call("rewind", session, ctypes.c_size_t(4)), ARGUMENT, "n_tokens is 4"),
        (lambda: library.call("append", model, None, ctypes.c_size_t(0)), HANDLE, "an akunu_model"),
    ):
        with pytest.raises(CError, match=why) as caught:
            call()
        assert caught.value.status == status
    assert tokens_of(library, session) == [1, 2, 3]
    library.call("close_session", session)
    with pytest.raises(CError, match="closed") as caught:
        append(library, session, [1])
    assert caught.value.status == HANDLE


def test_drafts_change_no_token(library: Library, model: Handle, known: akunu.Model) -> None:
    prompt = known.tokenizer.encode("one two three one two three one two", add_special=False)
    texts = []
    for speculate in (False, True):
        session = library.new("open_session", model)
        append(library, session, prompt)
        go_on(library, session, max_tokens=48, speculate=speculate)
        texts.append(tokens_of(library, session))
        library.call("close_session", session)
    assert texts[0] == texts[1]


def write_adapter(path: Path, seed: int) -> Path:
    """An adapter of Ember: random matrices for each layer's values."""
    ember = gguf.GGUFReader(EMBER)
    writer = gguf.GGUFWriter(path, ember.fields["general.architecture"].contents())
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 4)
    choose = np.random.default_rng(seed)
    for tensor in ember.tensors:
        if tensor.name.endswith("attn_v.weight"):
            k, n = map(int, tensor.shape)
            for name, shape in (("a", (2, k)), ("b", (n, 2))):
                matrix = choose.standard_normal(shape).astype(np.float32)
                writer.add_tensor(f"{tensor.name}.lora_{name}", matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_adapters_are_those_of_the_package(library: Library, tmp_path: Path) -> None:
    paths = {name: write_adapter(tmp_path / f"{name}.gguf", i) for i, name in enumerate("ba")}
    given = (Adapter * 2)(*[(name.encode(), str(path).encode()) for name, path in paths.items()])
    options = LoadOptions(device=b"cpu", context=128, threads=1, adapters=given, n_adapters=2)
    model = library.new("load_model", str(EMBER).encode(), ctypes.byref(options))
    texts = []
    with akunu.load("ember", device="cpu", context=128, threads=1, adapters=paths) as known:
        prompt = known.tokenizer.encode("The sea is", add_special=False)
        for weights in ({}, {"a": 1.0}, {"b": -0.5}, {"b": 1.0, "a": 0.25}):
            session = library.new("open_session", model)
            append(library, session, prompt)
            chosen = (AdapterWeight * len(weights))(*[(n.encode(), w) for n, w in weights.items()])
            go_on(library, session, max_tokens=12, adapters=chosen, n_adapters=len(weights))
            chosen_here = {"adapters": weights} if weights else {}
            reply = known.generate(prompt, max_tokens=12, temperature=0.0, **chosen_here)
            assert tokens_of(library, session) == [*prompt, *reply.token_ids]
            texts.append(tuple(reply.token_ids))
            for name, weight, why in ((b"c", 1.0, "none of the adapters"), (b"a", 1e9, "weight")):
                one = (AdapterWeight * 1)((name, weight))
                with pytest.raises(CError, match=why):
                    go_on(library, session, adapters=one, n_adapters=1)
            library.call("close_session", session)
    assert len(set(texts)) > 1
    library.call("close_model", model)


def test_adapters_are_checked(library: Library, tmp_path: Path) -> None:
    path = str(write_adapter(tmp_path / "a.gguf", 0)).encode()
    for pairs, why in (
        ([(b"a", path), (b"a", path)], "the name a twice"),
        ([(b"", path)], r"adapters\[0\]\.name is empty"),
        ([(b"a", None)], r"adapters\[0\]\.path is null"),
        ([(b"a", b"missing.gguf")], r"missing\.gguf"),
    ):
        given = (Adapter * len(pairs))(*pairs)
        options = LoadOptions(device=b"cpu", context=128, adapters=given, n_adapters=len(pairs))
        with pytest.raises(CError, match=why):
            library.new("load_model", str(EMBER).encode(), ctypes.byref(options))


def test_a_profile_has_the_commands_of_the_package(library: Library) -> None:
    kind = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_char_p, ctypes.c_double, ctypes.c_void_p)
    heard: list[tuple[str, float]] = []

    def hear(label: bytes, seconds: float, _user: int) -> bool:
        heard.append((label.decode(), seconds))
        return True

    options = ProfileOptions(device=b"cpu", threads=1, n_prompt=4, depth=8, repetitions=1)
    path = str(EMBER).encode()
    library.call("profile", path, ctypes.byref(options), kind(hear), None)
    theirs = _core.profile(EMBER, device="cpu", threads=1, n_prompt=4, depth=8, repetitions=1)
    assert [label for label, _ in heard] == [command["label"] for command in theirs]
    assert all(seconds > 0 for _, seconds in heard)
    with pytest.raises(CError, match="callback is null"):
        library.call("profile", path, None, kind(), None)
    options = ProfileOptions(device=b"cpu", depth=10**9)
    with pytest.raises(CError):
        library.call("profile", path, ctypes.byref(options), kind(hear), None)
