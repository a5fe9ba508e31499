"""`cache_dir`: what was computed of prompts outlives the model, and changes no byte of a text."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ember_adapter import write_adapter

import akunu
from akunu import ArgumentError

PROMPT = [20 + i * 7 % 200 for i in range(700)]  # two pages and most of a third
OPTIONS: dict[str, Any] = {"max_tokens": 12, "temperature": 1.5, "seed": 5}


@contextmanager
def loaded(folder: Path | None, **options: Any) -> Iterator[akunu.Model]:
    with akunu.load("ember", context=1024, threads=1, cache_dir=folder, **options) as model:
        yield model


def runs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.run"))


def disk(model: akunu.Model) -> akunu.DiskCache:
    found = model.occupancy.disk
    assert found is not None
    return found


@pytest.fixture(scope="module")
def expected() -> Mapping[str, Any]:
    """A text that no cache had a part in, and the logits behind its prompt."""
    with loaded(None, prefix_cache=False) as model:
        return {
            "text": model.generate(PROMPT, **OPTIONS),
            "logits": model.logits(PROMPT, last=3),
        }


def test_a_later_model_finds_what_an_earlier_one_computed(
    tmp_path: Path, expected: Mapping[str, Any]
) -> None:
    with loaded(tmp_path) as model:
        first = model.generate(PROMPT, **OPTIONS)
        assert (first, first.cached_tokens) == (expected["text"], 0)
    assert runs(tmp_path)
    with loaded(tmp_path) as model:
        np.testing.assert_array_equal(model.logits(PROMPT, last=3), expected["logits"])
    with loaded(tmp_path) as model:
        again = model.generate(PROMPT, **OPTIONS)
        assert (again, again.token_ids) == (expected["text"], expected["text"].token_ids)
        assert again.cached_tokens == len(PROMPT) - 1
        assert again.prefix_end == "whole"
        assert disk(model).restored == len(PROMPT) - 1
        other = model.generate([*PROMPT[:600], 3, 4, 5], max_tokens=1)
        assert (other.cached_tokens, other.prefix_end) == (600, "differs")  # from memory


def test_where_a_text_parts_from_one_on_the_disk(tmp_path: Path) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, max_tokens=1)
    other = [*PROMPT[:600], 3, 4, 5]
    with loaded(None) as model:
        expected = model.generate(other, **OPTIONS)
    with loaded(tmp_path) as model:
        found = model.generate(other, **OPTIONS)
        assert (found, found.cached_tokens, found.prefix_end) == (expected, 600, "differs")


def test_a_reply_is_kept_once_it_was_read(tmp_path: Path) -> None:
    with loaded(tmp_path) as model:
        reply = model.generate(PROMPT, **OPTIONS)
        assert model._native is not None
        assert model._native.wait_until_idle(timeout_ms=60_000)
        assert disk(model).written == len(PROMPT) + len(reply.token_ids)
    turn = [*PROMPT, *reply.token_ids, 9, 9]
    with loaded(tmp_path) as model:
        assert model.generate(turn, max_tokens=1).cached_tokens == len(turn) - 2


# Bytes of 32 numbers of keys and 32 of values: halves, floats, and a half that scales 32 integers
# of 8 bits, or of 4, which keys do not have.
NUMBERS = {"f16": 128, "f32": 256, "q8_0": 68, "q4_0": 34 + 18}


@pytest.mark.parametrize("kv_type", NUMBERS)
def test_every_format_of_the_cache_is_kept(tmp_path: Path, kv_type: str) -> None:
    with loaded(None, kv_type=kv_type, prefix_cache=False) as model:
        expected = model.generate(PROMPT, **OPTIONS)
        other = model.generate([*PROMPT[:600], 3, 4, 5], **OPTIONS)
        logits = model.logits(PROMPT, last=3)
        shape = model.config
    with loaded(tmp_path, kv_type=kv_type) as model:
        assert model.generate(PROMPT, **OPTIONS) == expected
    numbers = 2 * shape.n_layers * shape.n_kv_heads * shape.head_dim
    piece = 72 + 4 * 257 + 256 * numbers // 64 * NUMBERS[kv_type]
    assert max(file.stat().st_size for file in runs(tmp_path)) == piece
    with loaded(tmp_path, kv_type=kv_type) as model:
        found = model.generate([*PROMPT[:600], 3, 4, 5], **OPTIONS)
        assert (found, found.cached_tokens) == (other, 600)
    with loaded(tmp_path, kv_type=kv_type) as model:
        again = model.generate(PROMPT, **OPTIONS)
        assert (again, again.token_ids) == (expected, expected.token_ids)
        assert again.cached_tokens == len(PROMPT) - 1
        np.testing.assert_array_equal(model.logits(PROMPT, last=3), logits)
    for file in runs(tmp_path):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    with loaded(tmp_path, kv_type=kv_type) as model:
        found = model.generate(PROMPT, **OPTIONS)
        assert (found, found.cached_tokens) == (expected, 0)


def test_what_changes_a_bit_has_a_folder_of_its_own(tmp_path: Path) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, max_tokens=1)
    with loaded(tmp_path, kv_type="f32") as model:
        assert model.generate(PROMPT, max_tokens=1).cached_tokens == 0
    assert len(list(tmp_path.iterdir())) == 2
    with akunu.load("ember", context=700, threads=2, cache_dir=tmp_path) as model:
        assert model.generate(PROMPT, max_tokens=1).cached_tokens == len(PROMPT) - 1


def test_adapters_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    one = write_adapter(tmp_path / "one.gguf", seed=1)
    two = write_adapter(tmp_path / "two.gguf", seed=2)
    folder = tmp_path / "cache"

    def cached(adapters: Any, **loading: Path) -> tuple[str, int]:
        with loaded(folder, adapters=loading) as model:
            reply = model.generate(PROMPT, max_tokens=4, adapters=adapters)
            return str(reply), reply.cached_tokens

    text, n = cached("a", a=one, b=two)
    assert n == 0
    assert cached(None, a=one, b=two)[1] == 0
    assert cached({"a": 0.5}, a=one, b=two)[1] == 0
    assert cached("a", a=two)[1] == 0  # another one of that name
    assert cached("z", a=two, z=one) == (text, len(PROMPT) - 1)  # that one, by another name


def test_a_damaged_file_is_a_note_and_a_miss(tmp_path: Path, expected: Mapping[str, Any]) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, max_tokens=1)
    for file in runs(tmp_path):
        os.truncate(file, file.stat().st_size - 1)
    with loaded(tmp_path) as model:
        assert any("is damaged" in note for note in model.notes)
        assert disk(model).damaged > 0
        found = model.generate(PROMPT, **OPTIONS)
        assert (found, found.cached_tokens) == (expected["text"], 0)


def test_a_pipe_in_the_folder_is_a_note_and_nobody_waits_for_it(
    tmp_path: Path, expected: Mapping[str, Any]
) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, **OPTIONS)
    (first, *_) = runs(tmp_path)
    first.unlink()
    os.mkfifo(first)
    with loaded(tmp_path) as model:
        assert any(f"{first.name} is no regular file: remove it" in note for note in model.notes)
        assert model.generate(PROMPT, **OPTIONS) == expected["text"]


def test_a_file_that_is_damaged_later_is_a_miss(
    tmp_path: Path, expected: Mapping[str, Any]
) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, max_tokens=1)
    with loaded(tmp_path) as model:
        for file in runs(tmp_path):
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)
        found = model.generate(PROMPT, **OPTIONS)
        assert (found, found.cached_tokens) == (expected["text"], 0)
        assert disk(model).damaged == 1  # the first one; those behind it go with it
        assert "damaged" in disk(model).problem


def test_no_more_than_the_limit_is_kept(tmp_path: Path) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, max_tokens=1)
    page = max(file.stat().st_size for file in runs(tmp_path))
    most = 4 * page + 2**17
    with loaded(tmp_path, cache_size=most) as model:
        for i in range(5):
            model.generate([i + 1, *PROMPT], max_tokens=1)
    assert sum(file.stat().st_size for file in runs(tmp_path)) <= most
    with loaded(tmp_path, cache_size=most) as model:
        assert model.generate([5, *PROMPT], max_tokens=1).cached_tokens == len(PROMPT)
        assert model.generate([1, *PROMPT], max_tokens=1).cached_tokens < 2
    with pytest.raises(ArgumentError, match="one page of this model's cache takes"):
        akunu.load("ember", cache_dir=tmp_path, cache_size=page // 2)


WRITER = """
import sys
import akunu
room = {"context": 1024, "kv_memory": 2**26}
with akunu.load("ember", threads=1, cache_dir=sys.argv[1], **room) as model:
    for i in range(int(sys.argv[2]), 1000):
        model.generate([i % 200 + 20] * 3 + [20 + j * 7 % 200 for j in range(600)], max_tokens=1)
        print(i, flush=True)
"""


@contextmanager
def writing(folder: Path, first: int, n: int) -> Iterator[subprocess.Popen[str]]:
    """A process that writes, and has finished `n` texts; it is killed in the end."""
    command = [sys.executable, "-c", WRITER, str(folder), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(n):
            assert process.stdout.readline()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def test_a_process_that_is_killed_leaves_nothing_wrong(tmp_path: Path) -> None:
    for i in range(3):
        with writing(tmp_path, 10 * i, 4):
            time.sleep(0.05 * i)
    prompt = [20] * 3 + PROMPT[:600]
    with loaded(None) as model:
        expected = model.generate(prompt, **OPTIONS)
    with loaded(tmp_path) as model:
        assert disk(model).damaged == 0
        found = model.generate(prompt, **OPTIONS)
        assert found == expected
        assert found.cached_tokens >= 512  # of a busy process whole pages


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    prompt = [21] * 3 + PROMPT[:600]
    with loaded(None) as model:
        expected = model.generate(prompt, **OPTIONS)
    with writing(tmp_path, 0, 5), writing(tmp_path, 0, 5), loaded(tmp_path) as model:
        found = model.generate(prompt, **OPTIONS)
        assert (found, found.cached_tokens >= 512) == (expected, True)
        assert disk(model).damaged == 0
    with loaded(tmp_path) as model:
        assert disk(model).damaged == 0
        assert model.generate(prompt, **OPTIONS) == expected


def test_the_text_does_not_depend_on_company(tmp_path: Path, expected: Mapping[str, Any]) -> None:
    with loaded(tmp_path, kv_memory=2**26) as model:
        model.generate(PROMPT, max_tokens=1)
        model.generate([7, *PROMPT], max_tokens=1)
    with loaded(tmp_path, kv_memory=2**26) as model:
        streams = [
            model.generate(prompt, stream=True, **OPTIONS)
            for prompt in ([5, 5, 5] * 40, PROMPT, [7, *PROMPT], PROMPT)
        ]
        texts = ["".join(stream) for stream in streams]
        assert texts[1] == texts[3] == expected["text"]
        assert streams[1].cached_tokens == streams[3].cached_tokens == len(PROMPT) - 1


def test_sessions_go_on_from_the_disk(tmp_path: Path) -> None:
    with loaded(tmp_path) as model:
        model.generate(PROMPT, max_tokens=1)
    with loaded(tmp_path) as model:
        session = model.session()
        session.append(PROMPT)
        assert session.generate(max_tokens=1).cached_tokens == len(PROMPT) - 1


def test_a_speculating_text_is_the_same(tmp_path: Path, expected: Mapping[str, Any]) -> None:
    with loaded(tmp_path, draft="ember") as model:
        assert model.generate(PROMPT, **OPTIONS) == expected["text"]
    with loaded(tmp_path, draft="ember") as model:
        found = model.generate(PROMPT, **OPTIONS)
        assert (found, found.cached_tokens) == (expected["text"], len(PROMPT) - 1)


def test_what_it_may_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArgumentError, match="cannot be made"):
        akunu.load("ember", cache_dir=tmp_path / "file" / "folder")
    with pytest.raises(ArgumentError, match="but prefix_cache is False"):
        akunu.load("ember", cache_dir=tmp_path, prefix_cache=False)
    with pytest.raises(ArgumentError, match="cache_dir"):
        akunu.load("ember", cache_dir=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cache_size"):
        akunu.load("ember", cache_dir=tmp_path, cache_size=0)


def test_the_command_line_has_it(run_akunu: Any, tmp_path: Path) -> None:
    arguments = ["complete", "ember", "--prompt", "The sea " * 40, "--max-tokens", "1"]
    arguments += ["--json", "--cache-dir", str(tmp_path), "--cache-size", "100000000"]
    first, again = run_akunu(*arguments), run_akunu(*arguments)
    assert '"cached_tokens": 0' in first.stdout, first.stderr
    assert '"cached_tokens": 0' not in again.stdout
    assert '"prefix_end": "whole"' in again.stdout
