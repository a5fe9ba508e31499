"""Sessions that C saves and Python loads, and the other way round; and files that are refused."""

from __future__ import annotations

import ctypes
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import dense_golden
import pytest
from c_library import (
    ARGUMENT,
    CONTEXT,
    FILE,
    CError,
    GenerateOptions,
    Handle,
    Library,
    LoadOptions,
    Stats,
)
from random_models import build

import akunu

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
CONTEXT_SIZE = 512
PROMPT = "Once upon a time there was a fox, and"


@pytest.fixture(scope="module")
def known() -> Iterator[akunu.Model]:
    with akunu.load("ember", device="cpu", context=CONTEXT_SIZE, threads=1) as model:
        yield model


def load(library: Library, path: Path = EMBER, **fields: object) -> Handle:
    given = {"device": b"cpu", "context": CONTEXT_SIZE, "threads": 1, **fields}
    return library.new("load_model", str(path).encode(), ctypes.byref(LoadOptions(**given)))


@pytest.fixture
def model(library: Library) -> Iterator[Handle]:
    handle = load(library)
    yield handle
    library.call("close_model", handle)


_opened: list[Handle] = []


@pytest.fixture(autouse=True)
def closed_sessions(library: Library) -> Iterator[None]:
    """A session that stays open keeps its model, and what the device has for it."""
    yield
    while _opened:
        library.call("close_session", _opened.pop())


def tokens_of(library: Library, session: Handle) -> list[int]:
    tokens = (ctypes.c_uint32 * (CONTEXT_SIZE + 1))()
    length = ctypes.c_size_t()
    room = ctypes.c_size_t(CONTEXT_SIZE + 1)
    library.call("get_session_tokens", session, tokens, room, ctypes.byref(length))
    return tokens[: length.value]


def session_of(library: Library, model: Handle, ids: list[int]) -> Handle:
    session = library.new("open_session", model)
    _opened.append(session)
    tokens = (ctypes.c_uint32 * len(ids))(*ids)
    library.call("append", session, tokens, ctypes.c_size_t(len(ids)))
    return session


def go_on(library: Library, session: Handle, n: int) -> Stats:
    stats = Stats()
    options = ctypes.byref(GenerateOptions(max_tokens=n))
    library.call("continue", session, options, None, None, ctypes.byref(stats))
    return stats


def save(library: Library, session: Handle, path: Path) -> None:
    library.call("save_session", session, str(path).encode())


def restore(library: Library, model: Handle, path: Path) -> tuple[Handle, int]:
    session, n_restored = Handle(), ctypes.c_size_t(99)
    library.call(
        "load_session", model, str(path).encode(), ctypes.byref(session), ctypes.byref(n_restored)
    )
    _opened.append(session)
    return session, n_restored.value


def test_python_goes_on_with_what_c_saved(
    library: Library, model: Handle, known: akunu.Model, tmp_path: Path
) -> None:
    path = tmp_path / "c.session"
    session = session_of(library, model, known.tokenizer.encode(PROMPT))
    go_on(library, session, 300)
    save(library, session, path)
    # In a model of its own, whose cache has nothing of the text.
    with akunu.load("ember", device="cpu", context=CONTEXT_SIZE, threads=1) as fresh:
        theirs = fresh.load_session(path)
        assert list(theirs.token_ids) == tokens_of(library, session)
        assert theirs.notes == ()
        assert theirs.restored_tokens == theirs.n_tokens
        theirs.generate(max_tokens=20, temperature=0.0)
        go_on(library, session, 20)
        assert list(theirs.token_ids) == tokens_of(library, session)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]  # and no part of a file


def test_c_goes_on_with_what_python_saved(
    library: Library, model: Handle, known: akunu.Model, tmp_path: Path
) -> None:
    path = tmp_path / "python.session"
    theirs = known.session()
    theirs.append(PROMPT)
    theirs.generate(max_tokens=300, temperature=0.0)
    theirs.save(path)
    session, n_restored = restore(library, model, path)
    assert tokens_of(library, session) == list(theirs.token_ids)
    assert n_restored == theirs.n_tokens
    stats = go_on(library, session, 20)
    assert stats.cached_tokens == n_restored - 1  # the last is read for its logits
    theirs.generate(max_tokens=20, temperature=0.0)
    assert tokens_of(library, session) == list(theirs.token_ids)


def model_of_kind(kind: str, folder: Path) -> Path:
    if kind == "full":
        return EMBER
    if kind == "windows":
        return build("gemma3", folder / "model.gguf", seed=1).path
    family = {"latents": "deepseek2", "inputs": "lfm2", "states": "qwen35"}[kind]
    return dense_golden.write(folder / "model", dense_golden.load(family))


@pytest.mark.parametrize(
    ("kind", "kv_type"),
    [
        ("full", "q8_0"), ("full", "q4_0"), ("windows", "f16"), ("latents", "f32"),
        ("inputs", "f16"), ("states", "f16"),
    ],
)  # fmt: skip
def test_files_of_every_kind_of_cache_go_both_ways(
    library: Library, tmp_path: Path, kind: str, kv_type: str
) -> None:
    path = model_of_kind(kind, tmp_path)
    ids = dense_golden.TOKENS[:290]  # more than a page
    from_c, from_python = tmp_path / "c.session", tmp_path / "python.session"
    saving = load(library, path, kv_type=kv_type.encode())
    save(library, session_of(library, saving, ids), from_c)
    options = {"device": "cpu", "context": CONTEXT_SIZE, "threads": 1, "kv_type": kv_type}
    with akunu.load(path, **options) as known:
        mine = known.session()
        mine.append(ids)
        mine.save(from_python)
    with akunu.load(path, **options) as known:
        theirs = known.load_session(from_c)
        assert list(theirs.token_ids) == ids
        assert (theirs.notes, theirs.restored_tokens) == ((), len(ids))
    # The bits are the same, too, and so is all that says what they are.
    assert parts_of(from_c) == parts_of(from_python)
    loading = load(library, path, kv_type=kv_type.encode())
    session, n_restored = restore(library, loading, from_python)
    assert tokens_of(library, session) == ids
    assert n_restored == len(ids)
    for model in (saving, loading):
        library.call("close_model", model)


def parts_of(path: Path) -> tuple[object, bytes]:
    raw = path.read_bytes()
    end = 16 + int.from_bytes(raw[12:16], "little")
    return json.loads(raw[16:end]), raw[end:]


def test_c_saves_over_its_own_file_and_reads_it(
    library: Library, model: Handle, known: akunu.Model, tmp_path: Path
) -> None:
    target, link = tmp_path / "target.session", tmp_path / "link.session"
    link.symlink_to(target.name)  # beside it, and there is nothing there yet
    for ids in ([], known.tokenizer.encode(PROMPT)):  # a session without tokens can be saved, too
        session = session_of(library, model, ids)
        save(library, session, link)
        again, n_restored = restore(library, model, link)
        assert tokens_of(library, again) == ids
        assert n_restored == len(ids)
    assert link.is_symlink()
    assert target.is_file()


def test_keys_and_values_of_another_version_are_computed_again(
    library: Library, model: Handle, known: akunu.Model, tmp_path: Path
) -> None:
    path = tmp_path / "old.session"
    ids = known.tokenizer.encode(PROMPT)
    save(library, session_of(library, model, ids), path)
    edit_header(path, lambda header: header["computed_by"].update(akunu="0.0.1"))
    session, n_restored = restore(library, model, path)
    assert n_restored == 0
    assert tokens_of(library, session) == ids


def edit_header(path: Path, change: object) -> None:
    raw = path.read_bytes()
    end = 16 + int.from_bytes(raw[12:16], "little")
    header = json.loads(raw[16:end])
    change(header)  # type: ignore[operator]
    text = json.dumps(header).encode()
    path.write_bytes(raw[:12] + len(text).to_bytes(4, "little") + text + raw[end:])


def test_what_is_no_session_of_this_model_is_refused(
    library: Library, model: Handle, known: akunu.Model, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.session"
    ids = known.tokenizer.encode(PROMPT)
    save(library, session_of(library, model, ids), whole)
    raw = whole.read_bytes()
    header_end = 16 + int.from_bytes(raw[12:16], "little")
    path = tmp_path / "damaged.session"

    def written(data: bytes) -> None:
        path.write_bytes(data)

    def edited(change: object) -> None:
        shutil.copy(whole, path)
        edit_header(path, change)

    for prepare, status, why in (
        (lambda: written(b"AKUNU"), FILE, "it has 5 bytes"),
        (lambda: written(b"X" * 64), FILE, "does not begin as one"),
        (lambda: written(raw[:8] + b"\2" + raw[9:]), FILE, "version 2"),
        (lambda: written(raw[:12] + b"\xff" * 4 + raw[16:]), FILE, "header would have 4294967295"),
        (lambda: written(raw[: header_end - 1]), FILE, "cut off"),
        (lambda: written(raw[:-1]), FILE, "cut off"),
        (lambda: written(raw + b"x"), FILE, "1 bytes more"),
        (lambda: written(raw[:-1] + bytes([raw[-1] ^ 1])), FILE, "is damaged"),
        (lambda: written(raw[:16] + b"x" + raw[17:]), FILE, "damaged.session"),
        (lambda: edited(lambda h: h.pop("layout")), FILE, "'layout' of its header is missing"),
        (lambda: edited(lambda h: h.update(n_tokens=-1)), FILE, "'n_tokens' of its header is -1"),
        (lambda: edited(lambda h: h.update(n_tokens=2**40)), FILE, "'n_tokens'"),
        (lambda: edited(lambda h: h.update(n_bytes=2**62)), FILE, "cut off"),
        (lambda: edited(lambda h: h.update(n_positions=10**6)), FILE, "'n_positions'"),
        (lambda: edited(lambda h: h.update(first_entries=["a"])), FILE, "'first_entries'"),
        (lambda: edited(lambda h: h.update(first_entries=[7])), FILE, "contradicts itself"),
        (lambda: edited(lambda h: h.update(conversation=1)), FILE, "'conversation'"),
        (lambda: edited(lambda h: h["model"].update(digest="0" * 64)), FILE, "of another model"),
        (lambda: edited(lambda h: h.update(kv_type="f32")), FILE, 'load it with kv_type "f32"'),
        (lambda: edited(lambda h: h["layout"][0].update(kind="x")), FILE, "another layout"),
        (lambda: path.unlink(), ARGUMENT, "cannot be read"),
    ):
        prepare()
        with pytest.raises(CError, match=why) as caught:
            restore(library, model, path)
        assert caught.value.status == status

    small = load(library, context=8)
    with pytest.raises(CError, match="the context holds 8") as caught:
        restore(library, small, whole)
    assert caught.value.status == CONTEXT
    library.call("close_model", small)


def test_where_no_file_can_be_written_is_said(
    library: Library, model: Handle, tmp_path: Path
) -> None:
    session = session_of(library, model, [1, 2, 3])
    circle = tmp_path / "circle.session"
    circle.symlink_to(circle)
    for path, why in (
        (circle, "is no path of a file"),
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "a.session", "is not a folder"),
        (Path("/dev/null"), "is a device"),
    ):
        with pytest.raises(CError, match=why) as caught:
            save(library, session, path)
        assert caught.value.status == ARGUMENT
    with pytest.raises(CError, match="path is null"):
        library.call("save_session", session, None)


def test_a_model_that_changed_meanwhile_is_not_vouched_for(
    library: Library, tmp_path: Path
) -> None:
    model_path = tmp_path / "model.gguf"
    shutil.copy(EMBER, model_path)
    model = load(library, model_path)
    session = session_of(library, model, [1, 2, 3])
    other = tmp_path / "other.gguf"
    shutil.copy(EMBER, other)
    other.replace(model_path)  # the same bytes, but nobody knows that
    with pytest.raises(CError, match="has changed since the model was loaded"):
        save(library, session, tmp_path / "a.session")
    library.call("close_model", model)
