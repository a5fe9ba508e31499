"""Keys and values leave the cache as bytes and come back: the engine's part of saved sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from engine import bytes_of, finished, start
from random_models import ModelCase, random_tokens
from test_prefix_cache import opened
from test_windows import opened as opened_with_windows

import akunu
from akunu import ArgumentError
from lines import each_line

Cases = Callable[..., ModelCase]


@contextmanager
def native(
    case: ModelCase, *, device: str = "cpu", kv_type: str = "f16", prefix_cache: bool = True
) -> Iterator[Any]:
    """A random model with a context of three pages, and a cache for three such texts."""
    with opened(case, device=device, kv_type=kv_type, prefix_cache=prefix_cache, pages=9) as model:
        yield model


@each_line("n", [1, 2, 255, 256, 257, 513])
@each_line(
    ("kind", "weight_format", "kv_type"),
    [
        ("llama-gqa", "f32", "f16"),
        ("qwen3", "f32", "f32"),
        ("llama-32", "q8_0", "f16"),
        ("llama-32", "q8_0", "q8_0"),
        ("llama-32", "q8_0", "q4_0"),
    ],
)
def test_what_is_restored_has_the_bits_that_are_computed(
    model_case: Cases, kind: str, weight_format: str, kv_type: str, n: int
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, n, seed=n)
    longer = [*tokens, *random_tokens(case.spec, 20, seed=1)]
    with native(case, kv_type=kv_type) as model:
        entries, saved = model._native.save_positions(np.array(tokens, np.uint32))
        expected = model.logits(longer, last=20)
        text = finished(start(model, longer, 10))
    position_bytes = case.spec.n_layers * bytes_of(kv_type, case.spec.kv_dim)
    assert entries == [0]
    assert saved.nbytes == n * position_bytes  # keys and values of each layer, and no more
    with native(case, kv_type=kv_type) as model:
        assert model._native.restore_positions(np.array(tokens, np.uint32), entries, saved) == n
        generation = start(model, longer, 10)
        assert finished(generation) == text
        assert generation.cached_tokens == n
        np.testing.assert_array_equal(model.logits(longer, last=20), expected)


def test_what_is_restored_is_what_the_engine_uses(model_case: Cases) -> None:
    """With other keys and values in the file, the logits are others: they are not computed anew."""
    case = model_case("llama")
    tokens = random_tokens(case.spec, 300, seed=2)
    with native(case) as model:
        entries, saved = model._native.save_positions(np.array(tokens, np.uint32))
        expected = model.logits([*tokens, 5], last=1)
    with native(case) as model:
        wrong = (saved.view(np.float16) * 2).view(np.uint8)
        model._native.restore_positions(np.array(tokens, np.uint32), entries, wrong)
        assert (model.logits([*tokens, 5], last=1) != expected).any()


@pytest.mark.nightly_emulated("300")
@pytest.mark.parametrize("n", [40, 256, 300, 700])
def test_windows_keep_what_they_see(model_case: Cases, device: str, n: int) -> None:
    case = model_case("gemma3")
    tokens = random_tokens(case.spec, n, seed=n)
    with opened_with_windows(case, device=device) as model:
        entries, saved = model._native.save_positions(np.array(tokens, np.uint32))
        expected = model.logits([*tokens, 3, 4], last=2)
    with opened_with_windows(case, device=device) as model:
        model._native.restore_positions(np.array(tokens, np.uint32), entries, saved)
        generation = start(model, [*tokens, 3, 4], 2)
        finished(generation)
        assert generation.cached_tokens == n
        np.testing.assert_array_equal(model.logits([*tokens, 3, 4], last=2), expected)


def test_compressed_keys_without_values_come_back(tmp_path: Path) -> None:
    """Latent attention keeps one row of each position, of which the values are a part."""
    path = dense_golden.write(tmp_path / "model", dense_golden.load("deepseek2"))
    tokens = np.array([1 + i % 50 for i in range(270)], np.uint32)
    with akunu.load(path, context=512, threads=1) as model:
        entries, saved = model._native.save_positions(tokens)
        layout = model._native.cache_layout[0]["layers"]
        expected = model.logits([*tokens.tolist(), 3], last=1)
    assert {n_of_both for *_, n_of_both in layout} == {1}
    assert saved.nbytes == len(tokens) * sum(heads * size for _, heads, size, _ in layout)
    with akunu.load(path, context=512, threads=1) as model:
        assert model._native.restore_positions(tokens, entries, saved) == len(tokens)
        generation = start(model, [*tokens.tolist(), 3], 1)
        finished(generation)
        assert generation.cached_tokens == len(tokens)
        np.testing.assert_array_equal(model.logits([*tokens.tolist(), 3], last=1), expected)


def test_every_device_restores_what_it_saved(model_case: Cases, device: str) -> None:
    case = model_case("llama-32", "q8_0")
    tokens = random_tokens(case.spec, 270, seed=4)
    with native(case, device=device) as model:
        entries, saved = model._native.save_positions(np.array(tokens, np.uint32))
        text = finished(start(model, tokens, 12, temperature=1.0, seed=3))
    with native(case, device=device) as model:
        assert model._native.restore_positions(np.array(tokens, np.uint32), entries, saved) == 270
        generation = start(model, tokens, 12, temperature=1.0, seed=3)
        assert finished(generation) == text
        assert generation.cached_tokens == 269  # one is always run


def test_saving_and_restoring_in_company_change_nobody(model_case: Cases) -> None:
    case = model_case("llama")
    prompts = [random_tokens(case.spec, 100 + i, seed=i) for i in range(4)]
    with native(case) as model:
        alone = [finished(start(model, prompt, 60, temperature=1.0)) for prompt in prompts]
    with native(case) as model:
        running = [start(model, prompt, 60, temperature=1.0) for prompt in prompts]
        other = np.array(random_tokens(case.spec, 200, seed=50), np.uint32)
        for _ in range(5):
            entries, saved = model._native.save_positions(other)
            model._native.restore_positions(other, entries, saved)
        assert [finished(each) for each in running] == alone


def test_what_running_texts_need_is_not_taken(model_case: Cases) -> None:
    """Where no page is spare nothing is restored, and the text is computed when it is asked for."""
    case = model_case("llama")
    tokens = random_tokens(case.spec, 600, seed=1)
    with opened(case, pages=3) as model:
        entries, saved = model._native.save_positions(np.array(tokens, np.uint32))
        expected = model.logits(tokens, last=1)
    with opened(case, pages=3) as model:
        busy = start(model, random_tokens(case.spec, 700, seed=2), 60)
        while not busy.next(timeout_ms=1000):
            pass
        restored = model._native.restore_positions(np.array(tokens, np.uint32), entries, saved)
        assert restored == 0
        busy.cancel()
        np.testing.assert_array_equal(model.logits(tokens, last=1), expected)


def test_without_a_prefix_cache_nothing_is_restored(model_case: Cases) -> None:
    case = model_case("llama")
    tokens = np.array(random_tokens(case.spec, 30, seed=1), np.uint32)
    with native(case, prefix_cache=False) as model:
        entries, saved = model._native.save_positions(tokens)
        assert saved.any()
        assert model._native.restore_positions(tokens, entries, saved) == 0


@pytest.mark.parametrize(
    ("entries", "n_bytes", "message"),
    [
        ([0], -1, "saved positions have"),
        ([], 0, "of 0 cache groups; this model has 1"),
        ([2], 0, "begin at entry 2; possible are 0 to 1"),
    ],
)
def test_what_cannot_be_restored_is_refused(
    model_case: Cases, entries: list[int], n_bytes: int, message: str
) -> None:
    case = model_case("llama")
    tokens = np.array(random_tokens(case.spec, 30, seed=1), np.uint32)
    with native(case) as model:
        _, saved = model._native.save_positions(tokens)
        with pytest.raises(ArgumentError, match=message):
            model._native.restore_positions(tokens, entries, saved[: saved.size + n_bytes])
