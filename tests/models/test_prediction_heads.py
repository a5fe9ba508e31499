"""A model's own prediction head changes how many rows a step has, and never a text."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import head_models
import hf_directory
import numpy as np
import pytest
from adapter_files import Adapter, write_peft
from dense_golden import VOCAB, changed
from engine import finished, start
from proposals import AUTO, CHOICES

import akunu
from akunu import ArgumentError, LoadOptions
from akunu.errors import ModelFormatError, UnsupportedModelError
from lines import each_line

# The head says what the model says: never but by chance, at times, always.
AGREEMENTS = (None, 0.02, 0.0)

Folders = Callable[..., Path]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`folder_of(family, agreement)`: a directory, made once."""
    root = tmp_path_factory.mktemp("heads")
    made: dict[Any, Path] = {}

    def folder_of(family: str = "qwen35", agreement: float | None = None) -> Path:
        key = (family, agreement)
        if key not in made:
            made[key] = head_models.write(root / f"{len(made)}", *key)
        return made[key]

    return folder_of


def loaded(path: Path, *, head: bool = True, **options: Any) -> Any:
    return akunu.load(path, **{"threads": 2, "prediction_head": head, **options})


def prompt_of(n: int, seed: int) -> list[int]:
    prompt: list[int] = np.random.RandomState(seed).randint(0, VOCAB, n).tolist()
    return prompt


@each_line("choice", CHOICES)
@each_line("agreement", AGREEMENTS)
@each_line("family", head_models.FAMILIES)
def test_a_text_is_the_one_without(
    folder_of: Folders, family: str, agreement: float | None, choice: str
) -> None:
    path, options = folder_of(family, agreement), CHOICES[choice]
    n_drafted = n_held = 0
    with loaded(path) as model, loaded(path, head=False) as without:
        for n_prompt in (3, 60, 250):
            prompt = prompt_of(n_prompt, seed=n_prompt)
            expected = finished(start(without, prompt, 60, **options))
            assert finished(start(model, prompt, 60, **options)) == expected
            for speculation in (1, 15, AUTO):
                generation = start(model, prompt, 60, speculation=speculation, **options)
                assert finished(generation) == expected
                n_drafted += generation.drafted_tokens
                n_held += generation.held_tokens
    assert 0 <= n_held <= n_drafted
    assert n_drafted > 100
    if agreement is not None and choice in ("greedy", "cool", "hot"):
        assert n_held > n_drafted * (0.1 if agreement else 0.9)


def test_a_head_that_agrees_makes_every_second_token(folder_of: Folders) -> None:
    """With draws of the request's own, sampled tokens hold too."""
    with loaded(folder_of("qwen35", 0.0)) as model:
        for options in ({}, {"temperature": 1.5, "seed": 3}):
            generation = start(model, prompt_of(20, seed=1), 101, speculation=1, **options)
            finished(generation)
            assert generation.drafted_tokens == generation.held_tokens == 50
        assert model._native.wait_until_idle(timeout_ms=60_000)
        assert (model.occupancy.drafted, model.occupancy.accepted) == (100, 100)
        text = model.generate(prompt_of(20, seed=1), max_tokens=101, speculation=1, temperature=0)
        assert (text.drafted_tokens, text.accepted_tokens) == (50, 50)


def test_every_device_runs_it(folder_of: Folders, device: str) -> None:
    path, prompt = folder_of("qwen35", 0.02), prompt_of(40, seed=1)
    with (
        loaded(path, device=device) as model,
        loaded(path, device=device, head=False) as without,
    ):
        expected = finished(start(without, prompt, 40))
        generation = start(model, prompt, 40, speculation=1)
        assert finished(generation) == expected
        assert 0 < generation.held_tokens < generation.drafted_tokens


def test_in_company_each_is_the_text_alone(folder_of: Folders) -> None:
    path = folder_of("qwen35moe", 0.02)
    prompts = [prompt_of(30 + 17 * i, seed=i) for i in range(12)]
    options = [{"temperature": 0.4 * (i % 3), "seed": i} for i in range(12)]
    with loaded(path) as model, loaded(path, head=False) as without:
        alone = [
            finished(start(without, prompt, 60, **each))
            for prompt, each in zip(prompts, options, strict=True)
        ]
        running = [
            start(model, prompt, 60, speculation=(0, 1, 15, AUTO)[i % 4], **each)
            for i, (prompt, each) in enumerate(zip(prompts, options, strict=True))
        ]
        assert [finished(each) for each in running] == alone
        assert sum(each.held_tokens for each in running) > 0


def test_where_pages_are_short_texts_step_back(folder_of: Folders) -> None:
    path = folder_of("qwen35", 0.02)
    prompts = [prompt_of(200 + 9 * i, seed=i) for i in range(8)]
    with (
        loaded(path, context=300) as model,
        loaded(path, head=False, context=300) as without,
    ):
        alone = [finished(start(without, prompt, 28)) for prompt in prompts]
        running = [start(model, prompt, 28, speculation=1) for prompt in prompts]
        running[4].cancel()
        for i, (each, expected) in enumerate(zip(running, alone, strict=True)):
            assert i == 4 or finished(each) == expected


def test_logprobs_are_those_without(folder_of: Folders) -> None:
    prompt = prompt_of(50, seed=3)
    with loaded(folder_of("qwen35", 0.02)) as model:
        plain = start(model, prompt, 60, logprobs=4)
        drafted = start(model, prompt, 60, logprobs=4, speculation=1)
        assert finished(drafted) == finished(plain)
        assert drafted.held_tokens > 0
        for found, expected in zip(drafted.logprobs(0, 60), plain.logprobs(0, 60), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_it_ends_where_it_ends_without(folder_of: Folders, n: int) -> None:
    prompt = prompt_of(50, seed=3)
    with loaded(folder_of("qwen35", 0.0)) as model:
        text = finished(start(model, prompt, 80))
        assert finished(start(model, prompt, n, speculation=1)) == text[:n]
        place = text.index(text[n])
        generation = start(model, prompt, 80, speculation=1, stop_ids=[text[n]])
        assert finished(generation) == text[:place]
        assert generation.finish_reason == "stop"
        expected = finished(start(model, [*prompt, *text], 20))
        assert finished(start(model, [*prompt, *text], 20, speculation=1)) == expected


def test_a_grammar_and_a_full_context_leave_the_text_as_it_is(folder_of: Folders) -> None:
    path = folder_of("qwen35", 0.02)
    with (
        loaded(path, context=128) as model,
        loaded(path, head=False, context=128) as without,
    ):
        for options in (
            {"max_tokens": 40, "grammar": 'root ::= ("a" | "b" | " ")*'},
            {"max_tokens": 300, "context_overflow": "shift"},
        ):
            texts = [
                each.generate("the sea", speculation=1, temperature=1.0, seed=4, **options)
                for each in (model, without)
            ]
            assert texts[0].token_ids == texts[1].token_ids


def logits_ahead(model: Any, tokens: list[int], first: int = 0) -> Any:
    return model._native.logits_ahead(np.array(tokens, np.uint32), first=first)


@pytest.mark.parametrize("chosen", [1, 30])
def test_what_the_cache_keeps_of_a_head_is_computed_no_other_way(
    folder_of: Folders, chosen: int
) -> None:
    """What it keeps of a position depends on the token behind, which is another one here."""
    path, prompt = folder_of("qwen35"), prompt_of(40, seed=3)
    with loaded(path) as model, loaded(path, prefix_cache=False) as cold:
        text = finished(start(model, prompt, chosen, speculation=1))
        assert model._native.wait_until_idle(timeout_ms=60_000)  # the reply is read as a prompt
        for known in (prompt, [*prompt, *text]):
            for other in (0, 1):
                tokens = [*known, other, *prompt_of(30, seed=9)]
                np.testing.assert_array_equal(
                    logits_ahead(model, tokens, first=len(known)),
                    logits_ahead(cold, tokens, first=len(known)),
                )


@pytest.mark.parametrize("chosen", [1, 30])
def test_a_prefix_is_taken_over_as_far_as_the_next_token_is_known(
    folder_of: Folders, chosen: int
) -> None:
    prompt = prompt_of(40, seed=3)
    for head, n_less in ((False, 0), (True, 1)):
        with loaded(folder_of("qwen35"), head=head) as model:
            text = finished(start(model, prompt, chosen, speculation=1))
            assert model._native.wait_until_idle(timeout_ms=60_000)  # which reads the reply
            generation = start(model, [*prompt, *text, 5, 6], 2)
            finished(generation)
            assert generation.cached_tokens == len(prompt) + chosen - n_less


def test_nothing_of_a_head_is_kept_on_the_disk(folder_of: Folders, tmp_path: Path) -> None:
    """Of a run's last position the head keeps what depends on a token that is not in its name."""
    with loaded(folder_of("qwen35"), context=512, cache_dir=tmp_path / "kept") as model:
        assert any("its prediction head keeps of a token what" in note for note in model.notes)
        finished(start(model, prompt_of(300, 3), 4))
    assert not list(tmp_path.glob("kept/*/*.run"))


def test_a_head_says_the_same_in_pieces_and_in_company(folder_of: Folders) -> None:
    prompts = [prompt_of(150 + 60 * i, seed=i) for i in range(5)]
    with loaded(folder_of("qwen3next")) as model:
        alone = [logits_ahead(model, prompt) for prompt in prompts]
        running = start(model, prompts[0][:9], 200, speculation=1)
        with ThreadPoolExecutor(len(prompts)) as pool:
            found = list(pool.map(lambda prompt: logits_ahead(model, prompt), prompts))
        finished(running)
    for one, other in zip(alone, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_is_the_directory(folder_of: Folders) -> None:
    for family in head_models.FAMILIES:
        folder, prompt = folder_of(family, 0.02), prompt_of(60, seed=8)
        path = head_models.write_gguf(folder, family, 0.02)
        with loaded(folder) as of_folder, loaded(path) as of_file:
            np.testing.assert_allclose(
                logits_ahead(of_file, prompt), logits_ahead(of_folder, prompt), atol=2e-3
            )
            generation = start(of_file, prompt, 60, speculation=1)
            assert finished(generation) == finished(start(of_file, prompt, 60))
            assert generation.held_tokens > 0


def test_it_is_loaded_where_it_is_asked_for(folder_of: Folders, tmp_path: Path) -> None:
    folder = folder_of("qwen35")
    for path in (folder, head_models.write_gguf(folder, "qwen35")):
        with loaded(path) as model, loaded(path, head=False) as without:
            assert not any("ahead" in note for note in model.notes)
            note = next(note for note in without.notes if "guesses tokens further ahead" in note)
            assert "loaded with prediction_head" in note
            assert model.memory["cache"] > without.memory["cache"]
            assert model.config.n_layers == without.config.n_layers == 4


def adapter_of(folder: Path, layer: int) -> Path:
    """A directory of peft for the values of a layer."""
    stream = np.random.RandomState(layer)
    halves = (stream.standard_normal((2, 96)), stream.standard_normal((64, 2)))
    module = f"model.layers.{layer}.self_attn.v_proj"
    numbers = tuple(each.astype(np.float32) for each in halves)
    return write_peft(folder, Adapter(None, 2.0, {module: numbers}))  # type: ignore[arg-type]


def test_an_adapter_is_the_models_alone(folder_of: Folders, tmp_path: Path) -> None:
    path, prompt = folder_of("qwen35", 0.02), prompt_of(40, seed=1)
    with pytest.raises(UnsupportedModelError, match="none of this model's projections"):
        loaded(path, adapters={"a": adapter_of(tmp_path / "4", 4)})
    adapters = {"a": adapter_of(tmp_path / "1", 1)}
    with (
        loaded(path, adapters=adapters) as model,
        loaded(path, head=False, adapters=adapters) as without,
    ):
        options: dict[str, Any] = {"max_tokens": 60, "temperature": 0, "adapters": "a"}
        text = model.generate(prompt, speculation=1, **options)
        assert text.token_ids == without.generate(prompt, **options).token_ids
        assert text.drafted_tokens > text.accepted_tokens > 0


def refusal_of(path: Path, **options: Any) -> str:
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as refusal:
        loaded(path, **options)
    return str(refusal.value)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="a prediction head was asked for"):
        akunu.load("ember", prediction_head=True)
    with pytest.raises(ArgumentError, match="draft and prediction_head both draft tokens"):
        LoadOptions(prediction_head=True, draft="ember")
    with pytest.raises(ArgumentError, match="gpus must be 1"):
        LoadOptions(prediction_head=True, gpus=2)
    with pytest.raises(ArgumentError, match="prediction_head is 1; it must be True or False"):
        LoadOptions(prediction_head=1)  # type: ignore[arg-type]
    folder = head_models.write(tmp_path / "model")
    changed(folder, mtp_use_dedicated_embeddings=True)
    assert "mtp_use_dedicated_embeddings is true" in refusal_of(folder)
    changed(folder, mtp_use_dedicated_embeddings=False, mtp_num_hidden_layers=2)
    assert "mtp_num_hidden_layers is 2; akunu has prediction heads of one layer" in refusal_of(
        folder
    )
    loaded(folder, head=False).close()


@pytest.mark.parametrize("kind", ["more", "fewer"])
def test_a_head_with_other_tensors_is_refused(tmp_path: Path, kind: str) -> None:
    folder = head_models.write(tmp_path / "model")
    shapes = head_models.shapes_of("qwen35") | head_models.shapes_of_head("qwen35")
    if kind == "more":
        shapes["mtp.embed_tokens.weight"] = [VOCAB, head_models.DIM]
    else:
        del shapes["mtp.pre_fc_norm_hidden.weight"]
    tensors = {}
    for name, shape in shapes.items():
        data = head_models.numbers_of(name, shape)
        tensors[name] = ("F32", data.shape, hf_directory.stored(data, "F32"))
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    expected = "mtp.embed_tokens.weight" if kind == "more" else "ahead.hidden_norm.weight"
    assert expected in refusal_of(folder)
