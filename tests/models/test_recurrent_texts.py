"""Models with recurrent layers, of every kind: what the cache keeps of a text changes no text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS, VOCAB
from engine import chunked, finished, start

import akunu
from akunu.errors import UnsupportedModelError

PAGE = 256
# Of each golden model: keys and values of a position, in the two layers that attend.
ATTENTION = {
    "granitehybrid": 2 * 2 * 2 * 16,
    "nemotron-h": 2 * 2 * 2 * 32,
    "qwen35": 2 * 2 * 2 * 32,
}


@pytest.fixture(params=ATTENTION)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(family: str, tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load(family))


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
    prompt = (TOKENS[:17] * 15)[:250]
    bias = dict.fromkeys(range(6, VOCAB), -np.inf)
    drafted = held = 0
    with akunu.load(folder, context=1024, threads=2) as model:
        for seed in range(4):
            sampling: dict[str, Any] = {"temperature": 1.5, "seed": seed, "logit_bias": bias}
            expected = finished(start(model, prompt, 60, **sampling))
            generation = start(model, prompt, 60, speculation=speculation, **sampling)
            assert finished(generation) == expected
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


def test_a_long_prompt_needs_no_more_inputs_and_states(folder: Path, family: str) -> None:
    taken = []
    for n in (2048, 8192):
        prompt = (TOKENS * (n // len(TOKENS) + 1))[: n - 8]
        with akunu.load(folder, context=n, kv_type="f16") as model:
            before = model.memory["cache"]
            assert len(finished(start(model, prompt, 4))) == 4
            assert model.memory["cache"] == before
            taken.append(before)
    assert taken[1] - taken[0] == (8192 - 2048) * ATTENTION[family] * 2


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
