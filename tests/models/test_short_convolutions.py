"""Models whose layers convolve: what the cache keeps of them, and that nothing changes a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS, VOCAB, changed
from engine import chunked, finished, start
from recurrent_models import check_refusal

import akunu

PAGE = 256
DIM, LAYERS = 96, 3  # of those that convolve
ATTENTION = 2 * 2 * 16  # keys and values of a position, in the layer that attends
KV_BYTES = {"f16": 2, "f32": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("lfm2"))


@pytest.mark.parametrize("kv_type", ["f16", "f32"])
def test_the_cache_keeps_inputs_in_f32(folder: Path, kv_type: str) -> None:
    with akunu.load(folder, context=PAGE, kv_type=kv_type) as model:
        kinds = {pages.kind: pages.free for pages in model.occupancy.cache}
        assert kinds.keys() == {"inputs 3", "full"}
        of_inputs = PAGE * LAYERS * DIM * 4
        of_attention = PAGE * ATTENTION * KV_BYTES[kv_type]
        assert model.memory["cache"] == (
            kinds["inputs 3"] * of_inputs + kinds["full"] * of_attention
        )
        assert model.config.windows == (3, 0, 3, 3)


@pytest.mark.parametrize("kv_type", ["f32", "f16"])
def test_a_prefix_is_taken_over(folder: Path, kv_type: str) -> None:
    with (
        akunu.load(folder, context=768, kv_type=kv_type, prefix_cache=False) as cold,
        akunu.load(folder, context=768, kv_type=kv_type) as warm,
    ):
        for n in (1, 2, 255, 256, 257, 300):
            shared = TOKENS[:n]
            finished(start(warm, [*shared, 3, *TOKENS[:20]], 5))
            for tail in ([4, *TOKENS[40:70]], [5]):
                prompt = [*shared, *tail]
                generation = start(warm, prompt, 12)
                assert finished(generation) == finished(start(cold, prompt, 12))
                assert generation.cached_tokens >= n


def test_an_identical_prompt_computes_one_row(folder: Path) -> None:
    with akunu.load(folder, context=768) as model:
        first = finished(start(model, TOKENS, 12))
        generation = start(model, TOKENS, 12)
        assert finished(generation) == first
        assert generation.cached_tokens == len(TOKENS) - 1


@pytest.mark.parametrize("speculation", [1, 4, 15])
def test_refused_drafts_leave_nothing_behind(folder: Path, speculation: int) -> None:
    prompt = (TOKENS[:17] * 15)[:250]
    bias = dict.fromkeys(range(6, VOCAB), -np.inf)
    drafted = held = 0
    with akunu.load(folder, context=1024, threads=2) as model:
        for seed in range(4):
            sampling: dict[str, Any] = {"temperature": 1.5, "seed": seed, "logit_bias": bias}
            expected = finished(start(model, prompt, 90, **sampling))
            generation = start(model, prompt, 90, speculation=speculation, **sampling)
            assert finished(generation) == expected
            drafted += generation.drafted_tokens
            held += generation.held_tokens
    assert 0 < held < drafted


def test_a_saved_text_comes_back(folder: Path) -> None:
    tokens = np.array(TOKENS[:270], np.uint32)
    more = [*TOKENS[:270], 3]
    with akunu.load(folder, context=512, threads=1) as model:
        entries, saved = model._native.save_positions(tokens)
        expected = model.logits(more, last=1)
    with akunu.load(folder, context=512, threads=1) as model:
        assert model._native.restore_positions(tokens, entries, saved) == len(tokens)
        generation = start(model, more, 1)
        finished(generation)
        assert generation.cached_tokens == len(tokens)
        np.testing.assert_array_equal(model.logits(more, last=1), expected)


def test_logits_on_every_device_are_those_of_pieces(folder: Path, device: str) -> None:
    tokens = TOKENS[:40]
    with akunu.load(folder, device=device, context=PAGE, kv_type="f32") as model:
        whole = chunked(model, tokens, [32, 8], "prompt")
        np.testing.assert_array_equal(chunked(model, tokens, [1, 2, 20, 17], "prompt"), whole)
        steps = chunked(model, tokens, [1] * 40, "generated")
        np.testing.assert_array_equal(chunked(model, tokens, [16, 16, 8], "generated"), steps)


def test_full_attn_idxs_of_older_files_say_the_same(folder: Path) -> None:
    with akunu.load(folder, context=PAGE) as model:
        expected = model.logits(TOKENS[:30])
    changed(folder, layer_types=None, full_attn_idxs=[1])
    with akunu.load(folder, context=PAGE) as model:
        np.testing.assert_array_equal(model.logits(TOKENS[:30]), expected)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a bias": ({"conv_bias": True}, "config.json: conv_bias is true; akunu has convolutions"),
    "a width of one": ({"conv_L_cache": 1}, "the width of the short convolution is 1; it must be"),
    "another width": ({"conv_L_cache": 4}, "layers.0.convolution.kernel.weight is [1, 288]"),
    "no layer": (
        {"layer_types": None, "full_attn_idxs": [4]},
        "config.json: full_attn_idxs is a list; it must hold numbers of layers",
    ),
    "another kind": (
        {"layer_types": ["conv", "mamba", "conv", "conv"]},
        'config.json: layer_types holds "mamba"',
    ),
    "attention where there is none": (
        {"layer_types": ["full_attention", "full_attention", "conv", "conv"]},
        "tensor layers.0.attention.q.weight is missing",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])


def test_prefixes_on_the_disk_change_no_text(folder: Path, tmp_path: Path) -> None:
    shared = TOKENS[:300]
    with akunu.load(folder, context=768, prefix_cache=False) as cold:
        expected = [
            finished(start(cold, [*shared[:n], 3, *TOKENS[40:60]], 8)) for n in (300, 270, 256)
        ]
    options = {"context": 768, "cache_dir": tmp_path / "cache"}
    with akunu.load(folder, **options) as first:
        finished(start(first, [*shared, 9], 1))
    for n, text in zip((300, 270, 256), expected, strict=True):
        with akunu.load(folder, **options) as again:
            generation = start(again, [*shared[:n], 3, *TOKENS[40:60]], 8)
            assert finished(generation) == text
            assert generation.cached_tokens >= 256, again.notes
