"""Models whose layers scan (Mamba-2): what the cache keeps of them; nothing changes a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS, VOCAB
from engine import chunked, finished, start

import akunu
from akunu import SamplingOptions
from akunu.errors import ModelFormatError, UnsupportedModelError

PAGE = 256
# Of the golden model: two layers that scan, of 6 heads of 32 numbers with states of 48 in 2 groups.
LAYERS, HEADS, HEAD_DIM, STATE = 2, 6, 32, 48
CONVOLVED = HEADS * HEAD_DIM + 2 * 2 * STATE
ATTENTION = 2 * 2 * 2 * 16  # keys and values of a position, in the two layers that attend


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("granitehybrid"))


def changed(folder: Path, **keys: Any) -> Path:
    """The directory with other keys in its config.json; None leaves one out."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | keys
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return folder


def test_the_cache_keeps_inputs_and_two_states_in_f32(folder: Path) -> None:
    with akunu.load(folder, context=PAGE, kv_type="f16") as model:
        kinds = {pages.kind: pages.free for pages in model.occupancy.cache}
        assert kinds.keys() == {"inputs 4", "states", "full"}
        assert model.memory["cache"] == (
            kinds["inputs 4"] * PAGE * LAYERS * CONVOLVED * 4
            + kinds["states"] * LAYERS * 2 * HEADS * HEAD_DIM * STATE * 4
            + kinds["full"] * PAGE * ATTENTION * 2
        )


def test_a_prompt_goes_on_from_one_that_ended(folder: Path) -> None:
    with (
        akunu.load(folder, context=768, prefix_cache=False) as cold,
        akunu.load(folder, context=768) as warm,
    ):
        for n in (1, 2, 255, 256, 257, 300):
            shared = TOKENS[:n]
            finished(start(warm, shared, 5))
            for tail in ([4, *TOKENS[40:70]], [5]):
                prompt = [*shared, *tail]
                generation = start(warm, prompt, 12)
                assert finished(generation) == finished(start(cold, prompt, 12))
                # Who goes on first takes the state along.
                assert len(tail) == 1 or generation.cached_tokens >= n - 1


def test_an_identical_prompt_computes_one_row(folder: Path) -> None:
    with akunu.load(folder, context=768) as model:
        first = finished(start(model, TOKENS, 12))
        generation = start(model, TOKENS, 12)
        assert finished(generation) == first
        assert generation.cached_tokens == len(TOKENS) - 1


def test_a_place_without_a_state_is_read_again(folder: Path) -> None:
    with (
        akunu.load(folder, context=768, prefix_cache=False) as cold,
        akunu.load(folder, context=768) as warm,
    ):
        finished(start(warm, TOKENS[:300], 5))
        prompt = [*TOKENS[:150], 7, *TOKENS[20:40]]
        generation = start(warm, prompt, 12)
        assert finished(generation) == finished(start(cold, prompt, 12))
        assert generation.cached_tokens == 0


@pytest.mark.parametrize("speculation", [1, 4])
def test_refused_drafts_leave_nothing_behind(folder: Path, speculation: int) -> None:
    phrase = TOKENS[:17]
    bias = dict.fromkeys(range(6, VOCAB), -np.inf)
    drafted = held = 0
    with akunu.load(folder, context=1024, threads=2) as model:

        def text(seed: int, n: int) -> tuple[list[int], Any]:
            generation = model._native.start(
                np.array((phrase * 15)[:250], np.uint32),
                max_tokens=60,
                stop_ids=[],
                sampling=SamplingOptions(temperature=1.5, seed=seed).packed(seed=0),
                logit_bias=bias,
                logprobs=None,
                speculation=n,
            )
            return finished(generation), generation

        for seed in range(4):
            expected, _ = text(seed, 0)
            found, generation = text(seed, speculation)
            assert found == expected
            drafted += generation.drafted_tokens
            held += generation.held_tokens
    assert 0 < held < drafted


def test_texts_of_a_tree_are_those_of_a_cold_cache(folder: Path) -> None:
    """Prompts share beginnings, go on from one another, and drive one another out."""
    random = np.random.default_rng(7)
    stems = [list(map(int, random.integers(6, VOCAB, 300))) for _ in range(3)]
    last = [stem[:40] for stem in stems]
    taken = 0
    with (
        akunu.load(folder, context=512, prefix_cache=False) as cold,
        akunu.load(folder, context=512) as warm,
    ):
        for _ in range(80):
            text = random.integers(len(stems))
            cut = int(random.choice([1, 40, 255, 256, 257, 300]))
            goes_on = random.random() < 0.6 and len(last[text]) < 400
            stem = last[text] if goes_on else stems[text][:cut]
            prompt = [*stem, *map(int, random.integers(6, VOCAB, random.integers(1, 9)))]
            last[text] = prompt
            generation = start(warm, prompt, 4)
            assert finished(generation) == finished(start(cold, prompt, 4))
            taken += generation.cached_tokens > 0
    assert taken > 10


def test_a_long_prompt_needs_no_more_inputs_and_states(folder: Path) -> None:
    taken = []
    for n in (2048, 8192):
        prompt = (TOKENS * (n // len(TOKENS) + 1))[: n - 8]
        with akunu.load(folder, context=n, kv_type="f16") as model:
            before = model.memory["cache"]
            assert len(finished(start(model, prompt, 4))) == 4
            assert model.memory["cache"] == before
            taken.append(before)
    assert taken[1] - taken[0] == (8192 - 2048) * ATTENTION * 2


def test_a_grammar_leaves_the_text_as_it_is_alone(folder: Path) -> None:
    """Masks may come late: then a row runs again."""
    options: dict[str, Any] = {"max_tokens": 40, "grammar": 'root ::= ("a" | "b" | " ")*'}
    with akunu.load(folder, context=512, threads=2) as model:
        prompts = [TOKENS[:n] for n in (3, 40, 100)]
        together = model.generate(prompts, **options)
        for prompt, reply in zip(prompts, together, strict=True):
            assert model.generate(prompt, **options).token_ids == reply.token_ids


def test_sessions_go_on_and_step_back(folder: Path) -> None:
    with akunu.load(folder, context=512) as model:
        session = model.session()
        session.append(TOKENS[:60])
        first = session.generate(max_tokens=20).token_ids
        whole = model.generate([*TOKENS[:60]], max_tokens=20).token_ids
        assert first == whole
        session.rewind(40)
        session.append(TOKENS[100:130])
        again = session.generate(max_tokens=20).token_ids
        assert again == model.generate([*TOKENS[:40], *TOKENS[100:130]], max_tokens=20).token_ids


def test_logits_on_every_device_are_those_of_pieces(folder: Path, device: str) -> None:
    tokens = TOKENS[:40]
    with akunu.load(folder, device=device, context=PAGE, kv_type="f32") as model:
        whole = chunked(model, tokens, [32, 8], "prompt")
        np.testing.assert_array_equal(chunked(model, tokens, [1, 2, 20, 17], "prompt"), whole)
        steps = chunked(model, tokens, [1] * 40, "generated")
        np.testing.assert_array_equal(chunked(model, tokens, [16, 16, 8], "generated"), steps)


def test_texts_cannot_be_saved(folder: Path) -> None:
    tokens = np.array(TOKENS[:20], np.uint32)
    why = "a part of its cache is 'states'"
    with (
        akunu.load(folder, context=512) as model,
        pytest.raises(UnsupportedModelError, match=why),
    ):
        model._native.save_positions(tokens)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"mamba_n_heads": 5}, "config.json: mamba_d_head is 32; heads of that length"),
    "groups": ({"mamba_n_groups": 4}, "6 heads of a scan, of 32 numbers, do not go into 4 groups"),
    "a state": ({"mamba_d_state": 257}, "the state of a scan has 257 numbers for each of a head"),
    "another state": ({"mamba_d_state": 32}, "layers.0.scan.in.weight is [582, 96]"),
    "a width of one": ({"mamba_d_conv": 1}, "the convolution before a scan is over 1 rows"),
    "limits": ({"time_step_limit": [0.1]}, "time_step_limit is a list; two numbers are needed"),
    "limits that cross": ({"time_step_limit": [2, 1]}, "the limits of a scan's steps of time are"),
    "another kind": (
        {"layer_types": ["mamba", "conv", "mamba", "attention"]},
        'config.json: layer_types holds "conv"',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    changes, message = REFUSED[case]
    changed(folder, **changes)
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as refusal:
        akunu.load(folder)
    assert message in str(refusal.value)
