"""Layers that use the keys and values of layers before them: prefixes, sessions, and their files.

Gemma 3n and the small Gemma 4: windows, layers that see everything, and two that keep nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS
from engine import chunked, finished, start

import akunu

PAGE = 256
HOT: dict[str, Any] = {"temperature": 1.5, "ignore_eos": True}


@pytest.fixture(scope="module", params=["gemma3n", "gemma4-small"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("shared") / "model"
    return dense_golden.write(target, dense_golden.load(request.param))


@pytest.fixture(scope="module")
def cold(folder: Path) -> Iterator[Any]:
    """The model that keeps nothing of any text."""
    with akunu.load(folder, context=512, threads=1, prefix_cache=False) as model:
        yield model


@pytest.mark.parametrize("kv_type", ["f32", "f16"])
def test_logits_behind_a_prefix_are_those_without(folder: Path, kv_type: str) -> None:
    with (
        akunu.load(folder, context=512, kv_type=kv_type, prefix_cache=False) as cold,
        akunu.load(folder, context=512, kv_type=kv_type, kv_memory=2**24) as warm,
    ):
        for n in (1, 70, 255, 256, 257, 300):
            shared = TOKENS[:n]
            finished(start(warm, [*shared, 3, *TOKENS[:20]], 5))
            for tail in ([4, *TOKENS[40:70]], [5]):
                prompt = [*shared, *tail]
                found, expected = start(warm, prompt, 12), start(cold, prompt, 12)
                assert finished(found) == finished(expected)
                assert (found.cached_tokens, expected.cached_tokens) == (n, 0)
                whole = cold.logits(prompt, last=2)
                np.testing.assert_array_equal(warm.logits(prompt, last=2), whole)


def test_an_identical_prompt_computes_one_row(folder: Path) -> None:
    with akunu.load(folder, context=512) as model:
        first = finished(start(model, TOKENS, 12))
        generation = start(model, TOKENS, 12)
        assert finished(generation) == first
        assert generation.cached_tokens == len(TOKENS) - 1


@pytest.mark.nightly_emulated("256")
@pytest.mark.parametrize("n", [40, 256, 300])
def test_what_is_saved_comes_back_and_layers_that_share_keep_nothing(
    folder: Path, device: str, n: int
) -> None:
    tokens, more = np.array(TOKENS[:n], np.uint32), [*TOKENS[:n], 3, 4]
    with akunu.load(folder, device=device, context=512) as model:
        entries, saved = model._native.save_positions(tokens)
        expected = model.logits(more, last=2)
        layers = [layer for group in model._native.cache_layout for layer in group["layers"]]
        assert len(layers) == model.config.n_layers - 2
    with akunu.load(folder, device=device, context=512) as model:
        assert model._native.restore_positions(tokens, entries, saved) == n
        generation = start(model, more, 2)
        finished(generation)
        assert generation.cached_tokens == n
        np.testing.assert_array_equal(model.logits(more, last=2), expected)


def test_a_session_forks_and_rewinds_to_any_count(folder: Path, cold: Any) -> None:
    """Over the end of a page, and of windows of 70: each text is the one that is read anew."""
    with akunu.load(folder, context=512, threads=1) as model:
        session = model.session()
        session.append(TOKENS[:230])
        whole = session.generate(max_tokens=60, seed=2, **HOT)
        ids = session.token_ids
        assert ids == (*TOKENS[:230], *whole.token_ids)
        for count in (289, 257, 256, 231, 100, 3):
            options = {"max_tokens": 30, "seed": count, "logprobs": 3, **HOT}
            expected = cold.generate(list(ids[:count]), **options)
            session.rewind(count)
            branches = [session.fork() for _ in range(2)]
            for found in (each.generate(**options) for each in branches):
                assert (found.token_ids, found.logprobs) == (expected.token_ids, expected.logprobs)
            assert session.token_ids == ids[:count]


def test_a_session_in_a_file_goes_on_with_the_same_bits(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.session"
    options: dict[str, Any] = {"max_tokens": 30, "seed": 2, "logprobs": 3, **HOT}
    with akunu.load(folder, context=512, threads=1) as model:
        session = model.session()
        session.append(TOKENS[:250])
        session.generate(max_tokens=30, seed=1, **HOT)
        session.save(path)
        ids = session.token_ids
        expected = session.generate(**options)
    with akunu.load(folder, context=512, threads=2) as model:
        session = model.load_session(path)
        assert session.token_ids == ids
        assert (session.restored_tokens, session.notes) == (len(ids), ())
        found = session.generate(**options)
        assert (found.token_ids, found.logprobs) == (expected.token_ids, expected.logprobs)
        assert found.cached_tokens == len(ids) - 1


def test_prefixes_on_the_disk_change_no_text(folder: Path, tmp_path: Path, cold: Any) -> None:
    options: dict[str, Any] = {"max_tokens": 12, "seed": 5, **HOT}
    expected = cold.generate(TOKENS, **options)
    for n_cached in (0, len(TOKENS) - 1):
        with akunu.load(folder, context=512, threads=1, cache_dir=tmp_path) as model:
            found = model.generate(TOKENS, **options)
            assert (found.token_ids, found.cached_tokens) == (expected.token_ids, n_cached)


@pytest.mark.parametrize("speculation", [1, 7])
def test_refused_drafts_leave_nothing_behind(folder: Path, cold: Any, speculation: int) -> None:
    """Where the text repeats itself there are drafts; hot as it is, most are refused."""
    prompt = (TOKENS[:17] * 15)[:250]
    few = dict.fromkeys(range(6, dense_golden.VOCAB), float("-inf"))
    drafted = held = 0
    with akunu.load(folder, context=512, threads=2) as model:
        for seed in range(3):
            options = {"max_tokens": 60, "seed": seed, "logit_bias": few, **HOT, "temperature": 6}
            expected = cold.generate(prompt, speculation="off", **options)
            found = model.generate(prompt, speculation=speculation, **options)
            assert found.token_ids == expected.token_ids
            drafted += found.drafted_tokens
            held += found.accepted_tokens
    assert 0 < held < drafted


def test_logits_on_every_device_are_those_of_pieces(folder: Path, device: str) -> None:
    tokens = TOKENS[:90]
    with akunu.load(folder, device=device, context=PAGE, kv_type="f32") as model:
        whole = chunked(model, tokens, [32, 32, 26], "prompt")
        for chunks in ([1, 31, 32, 26], [7, 25, 28, 30]):
            np.testing.assert_array_equal(chunked(model, tokens, chunks, "prompt"), whole)
