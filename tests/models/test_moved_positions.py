"""A text that goes on where its context is full takes over what it keeps, its keys turned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from engine import GPUS, MUTATION_FACTOR, finished, opened, settle, start
from random_models import ModelCase, build, random_tokens
from shifting import check_serves_nobody, likely_tokens, shifted

import akunu
from akunu import ArgumentError
from lines import each_line

Cases = Callable[..., ModelCase]
# Largest error of a log probability; measured: 2.3e-5 (f32), 1.1e-3 (f16), 3.3e-3 (blocks).
BOUND = {"f32": 1e-4, "f16": 5e-3, "q8_0": 1e-2, "q4_0": 1e-2}
CUTS = {"all moves": (0, 200), "short head": (17, 130), "over a page": (300, 100)}
KINDS = ["llama", "llama-gqa", "llama-factors", "llama-linear", "qwen3", "gemma2", "gemma3"]
WINDOWED = ("gemma2", "gemma3")
HOT: dict[str, Any] = {"temperature": 1.5, "seed": 8}


def difference(a: dict[int, float], b: dict[int, float]) -> float:
    common = set(a) & set(b)
    return max((abs(a[token] - b[token]) for token in common), default=np.inf)


# --- what is moved ----------------------------------------------------------------------------


def check_one_layer(path: Path, kind: str, kv_type: str, cut: str, device: str = "cpu") -> None:
    """In a model of one layer nothing is left of what was dropped: it is as if read again."""
    case = build(kind, path, seed=1, n_layers=1)
    first, by = CUTS[cut]
    with opened(case.path, device=device, kv_type=kv_type) as model:
        tokens = random_tokens(case.spec, model.context, seed=3)
        moved = shifted(model, tokens, first, by, logprobs=20)
        found = likely_tokens(moved)
        read = shifted(model, tokens, first, by, rereads=True, logprobs=20)
        assert difference(found, likely_tokens(read)) <= BOUND[kv_type]
        if kind not in WINDOWED:  # whose window sees the same all the same
            others = shifted(model, tokens, first, by + 3, rereads=True, logprobs=20)
            assert difference(found, likely_tokens(others)) > MUTATION_FACTOR * BOUND["f32"]
        assert (moved.moved_tokens, read.moved_tokens) == (model.context - by, 0)


@each_line("cut", CUTS)
@each_line("kv_type", ["f32", "f16"])
@each_line("kind", KINDS)
def test_where_keys_depend_on_token_and_position_alone_it_is_as_if_read(
    tmp_path: Path, kind: str, kv_type: str, cut: str
) -> None:
    check_one_layer(tmp_path / "one.gguf", kind, kv_type, cut)


@pytest.mark.parametrize("kv_type", ["q8_0", "q4_0"])
def test_keys_in_blocks_turn_too(tmp_path: Path, kv_type: str) -> None:
    check_one_layer(tmp_path / "one.gguf", "llama-32", kv_type, "short head")


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize(
    ("kind", "kv_type"), [("llama-gqa", "f16"), ("gemma3", "f32"), ("llama-32", "q8_0")]
)
def test_so_it_is_on_a_gpu(tmp_path: Path, kind: str, kv_type: str, device: str) -> None:
    check_one_layer(tmp_path / "one.gguf", kind, kv_type, "short head", device)


def test_of_compressed_keys_the_rotated_part_turns(tmp_path: Path) -> None:
    """Two layers: values differ from what is read again, and keys do not stay where they were."""
    path = dense_golden.write(tmp_path / "model", dense_golden.load("deepseek2"))
    with akunu.load(path, context=512, threads=1, kv_type="f32") as model:
        tokens = [1 + 7 * i % 50 for i in range(512)]
        moved = shifted(model, tokens, 20, 128, 40)
        text = finished(moved)
        assert (moved.moved_tokens, len(text)) == (384, 40)
        assert finished(shifted(model, tokens, 20, 128, 40)) == text


def test_where_no_layer_has_positions_nothing_turns(tmp_path: Path) -> None:
    """One layer: as if read again. What is kept is in its place all the same."""
    whole = dense_golden.load("granite-4-nope")
    config = {**whole.config, "num_hidden_layers": 1, "layer_types": ["full_attention"]}
    shapes = {
        name: shape
        for name, shape in whole.shapes.items()
        if not name.startswith("model.layers.") or name.startswith("model.layers.0.")
    }
    path = dense_golden.write(tmp_path / "model", replace(whole, config=config, shapes=shapes))
    with opened(path) as model:
        tokens = np.random.RandomState(3).randint(0, dense_golden.VOCAB, 512).tolist()
        moved = shifted(model, tokens, 20, 128, logprobs=20)
        found = likely_tokens(moved)
        assert moved.moved_tokens == 384
        read = shifted(model, tokens, 20, 128, rereads=True, logprobs=20)
        assert difference(found, likely_tokens(read)) <= BOUND["f32"]
        others = shifted(model, tokens, 20, 168, rereads=True, logprobs=20)
        assert difference(found, likely_tokens(others)) > MUTATION_FACTOR * BOUND["f32"]


def test_windows_that_lost_what_they_would_see_are_read_again(tmp_path: Path) -> None:
    """A window keeps its newest page: what moved into view from before it is gone, always."""
    case = build("gemma2", tmp_path / "windows.gguf", seed=2, window=300)
    with opened(case.path) as model:
        tokens = random_tokens(case.spec, 512, seed=3)
        # Of 513 positions to come, 213 on are seen: those of entry 0 on, all that there are.
        assert shifted(model, tokens, 30, 100).moved_tokens == 412
    with opened(case.path, context=1024) as model:
        tokens = random_tokens(case.spec, 1024, seed=3)
        # 724 on were seen, so 512 on are there; now 325 on are, which were 725 on.
        assert shifted(model, tokens, 30, 400).moved_tokens == 624
        # And now from 200 on, which is where it was.
        again = shifted(model, tokens, 400, 524)
        assert again.moved_tokens == 0
        assert finished(again) == finished(shifted(model, tokens, 400, 524, rereads=True))


@pytest.mark.parametrize(
    "change", ["another end", "another begin", "longer", "an end cut off", "same"]
)
def test_a_text_that_is_not_the_one_before_reads_its_prompt(model_case: Cases, change: str) -> None:
    case = model_case("llama-gqa")
    with opened(case.path) as model:
        tokens = random_tokens(case.spec, 512, seed=3)
        before = start(model, tokens, 1, keeps_positions=True)
        text = [*tokens, *finished(before)]
        prompt = {
            "another end": [*text[:20], *text[220:-1], 5],
            "another begin": [*text[:20], 7, *text[220:]],
            "longer": text[:512],
            "an end cut off": text[1:300],
            "same": text[:1],
        }[change]
        after = start(model, prompt, 4, goes_on_from=before)
        assert finished(after) == finished(start(model, prompt, 4))
        assert after.moved_tokens == 0


def test_what_was_not_kept_or_has_not_ended_cannot_be_gone_on_from(model_case: Cases) -> None:
    case = model_case("llama-gqa")
    with opened(case.path) as model:
        tokens = random_tokens(case.spec, 512, seed=3)
        before = start(model, tokens, 1)
        text = [*tokens, *finished(before)]
        assert start(model, text[200:], 1, goes_on_from=before).moved_tokens == 0
        kept = start(model, tokens, 1, keeps_positions=True)
        finished(kept)
        assert start(model, text[200:], 1, goes_on_from=kept).moved_tokens == 312
        assert start(model, text[200:], 1, goes_on_from=kept).moved_tokens == 0  # it has gone
        running = start(model, tokens[:4], 400, ignore_eos=True, keeps_positions=True)
        with pytest.raises(ArgumentError, match="has not ended yet"):
            start(model, tokens[:2], 1, goes_on_from=running)
        running.cancel()


# --- what else is in the cache ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama-gqa", "gemma3"])
def test_what_was_moved_serves_no_other_text(model_case: Cases, kind: str) -> None:
    case = model_case(kind)
    tokens = random_tokens(case.spec, 512, seed=3)
    check_serves_nobody(lambda: opened(case.path), tokens, 40, 150, **HOT)


def test_what_stays_in_place_still_serves_others(model_case: Cases) -> None:
    case = model_case("llama-gqa")
    with opened(case.path) as model:
        tokens = random_tokens(case.spec, 512, seed=3)
        finished(shifted(model, tokens, 300, 100, 3))
        other = start(model, [*tokens[:290], 5], 1)
        finished(other)
        assert other.cached_tokens == 290


@pytest.mark.parametrize("speculation", [0, 4])
@pytest.mark.parametrize("kind", ["llama-gqa", "gemma3"])
def test_a_text_that_goes_on_is_the_same_in_company(
    model_case: Cases, kind: str, speculation: int
) -> None:
    case, n = model_case(kind), 40
    with opened(case.path) as model:
        tokens = [random_tokens(case.spec, 512, seed=seed) for seed in range(3)]
        cuts = [(0, 128), (33, 128), (260, 200)]
        options: list[dict[str, Any]] = [{}, HOT, {"temperature": 0.7, "seed": 9}]

        def begun(i: int, **more: Any) -> Any:
            return shifted(model, tokens[i], *cuts[i], n, **options[i], **more)

        alone = [finished(begun(i)) for i in range(3)]
        together = [begun(i, speculation=speculation) for i in range(3)]
        others = [start(model, tokens[i][:50], n, **HOT) for i in range(3)]
        assert [finished(each) for each in together] == alone
        for each in others:
            finished(each)


def test_a_text_that_steps_back_begins_again_with_what_was_moved(model_case: Cases) -> None:
    """Memory for two texts and a half, so that one of three steps back."""
    case = model_case("llama-gqa")
    tokens = [random_tokens(case.spec, 1024, seed=seed) for seed in range(3)]
    with opened(case.path, context=1024) as model:
        memory = model.memory["cache"]
        alone = [finished(shifted(model, each, 100, 500, 450, **HOT)) for each in tokens]
    with opened(case.path, context=1024, kv_memory=memory * 5 // 2) as model:
        together = [shifted(model, each, 100, 500, 450, **HOT) for each in tokens]
        assert [finished(each) for each in together] == alone
        assert [each.moved_tokens for each in together] == [524] * 3


@pytest.mark.parametrize("kind", ["llama-gqa", "gemma3"])
def test_shift_after_shift(model_case: Cases, kind: str) -> None:
    """Each moves what the one before has moved, and what it generated."""
    case = model_case(kind)

    def written(model: Any) -> list[int]:
        part = start(model, tokens, 1, keeps_positions=True)
        text = [*tokens, *finished(part)]
        for i in range(12):
            text = [*text[:20], *text[120 + i :]]
            part = start(model, text, 512, keeps_positions=True, goes_on_from=part, **HOT)
            text += finished(part)
            assert part.moved_tokens == 412 - i
        return text

    with opened(case.path) as model:
        tokens = random_tokens(case.spec, 512, seed=5)
        first = written(model)
        prompt = start(model, first[:300], 5)
        ids = finished(prompt)
        assert prompt.cached_tokens <= 20  # what is generated behind what was moved serves nobody
        settle(model)
        assert written(model) == first
    with opened(case.path) as model:
        assert finished(start(model, first[:300], 5)) == ids


def test_cancelled_and_forgotten_texts_leave_nothing(model_case: Cases) -> None:
    case = model_case("llama-gqa")
    with opened(case.path) as model:
        tokens = random_tokens(case.spec, 512, seed=3)
        expected = finished(shifted(model, tokens, 20, 200, 100, **HOT))
        for n_taken in range(3):
            moved = shifted(model, tokens, 20, 200, 100, **HOT)
            for _ in range(n_taken):
                moved.next(timeout_ms=1000)
            moved.cancel()
            forgotten = start(model, tokens, 1, keeps_positions=True)
            finished(forgotten)
            del forgotten
        assert finished(shifted(model, tokens, 20, 200, 100, **HOT)) == expected
        assert model._native.wait_until_idle(timeout_ms=60_000)


@pytest.mark.parametrize("family", ["hunyuan", "lfm2"])
def test_what_does_not_turn_is_read_again(tmp_path: Path, family: str) -> None:
    """Hunyuan has a norm behind the rotation, LFM2 convolutions of what went before."""
    path = dense_golden.write(tmp_path / "model", dense_golden.load(family))
    with akunu.load(path, context=256, threads=1) as model:
        tokens = [1 + 7 * i % 50 for i in range(256)]
        again = shifted(model, tokens, 10, 100, 5)
        assert finished(again) == finished(shifted(model, tokens, 10, 100, 5, rereads=True))
        assert again.moved_tokens == 0
