"""Adapters that are loaded and unloaded while a model runs. No text notices it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adapter_files as files
import pytest
from engine import settle
from golden_values import N_TOKENS
from random_models import KINDS, ModelCase, random_tokens

import akunu
from akunu import AkunuError, ArgumentError, ModelFormatError

Cases = Callable[..., ModelCase]

KIND = "llama-gqa"
SHARES: list[Any] = [None, "poet", {"terse": 0.5}, {"poet": 1.0, "terse": -0.5}]
OPTIONS: dict[str, Any] = {"max_tokens": 12, "ignore_eos": True, "temperature": 0.8, "seed": 1}


def loaded(path: Path, **options: Any) -> Any:
    return akunu.load(path, **{"context": 512, "threads": 2, "kv_type": "f32", **options})


@pytest.fixture(scope="module")
def tokens() -> list[int]:
    return random_tokens(KINDS[KIND], N_TOKENS, seed=3)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Adapters of different ranks, projections, formats and kinds of files."""
    folder = tmp_path_factory.mktemp("adapters")
    some = ("self_attn.k_proj", "mlp.up_proj", "mlp.down_proj")
    terse = files.random_adapter(KINDS[KIND], rank=7, alpha=3, seed=2, projections=some)
    return {
        "poet": files.write_gguf(
            folder / "poet.gguf", files.random_adapter(KINDS[KIND], rank=4, seed=1)
        ),
        "terse": files.write_peft(folder / "terse", terse, dtype="BF16"),
        "other": files.write_peft(
            folder / "other", files.random_adapter(KINDS[KIND], rank=3, seed=4)
        ),
    }


@pytest.fixture
def model(model_case: Cases) -> Iterator[Any]:
    with loaded(model_case(KIND).path) as model:
        yield model


def bits(model: Any, tokens: list[int], adapters: Any = None) -> bytes:
    return model.logits(tokens, adapters=adapters).tobytes()


def all_bits(model: Any, tokens: list[int]) -> list[bytes]:
    return [bits(model, tokens, share) for share in SHARES]


def test_what_is_loaded_later_has_the_bits_of_what_was_loaded_first(
    model_case: Cases, paths: dict[str, Path], tokens: list[int], device: str
) -> None:
    few, path = tokens[:40], model_case(KIND).path
    both = {name: paths[name] for name in ("poet", "terse")}
    with loaded(path, device=device, adapters=both) as first:
        expected = all_bits(first, few)
    with loaded(path, device=device) as model:
        bare = bits(model, few)
        model.load_adapter("terse", paths["terse"])
        model.load_adapter("poet", paths["poet"])
        assert model.adapters == ("terse", "poet")
        found = all_bits(model, few)
        # The sum of both is in the order of their numbers, which is another one here.
        assert found[:3] == expected[:3]
        assert found[0] == bare
        model.unload_adapter("terse")
        assert model.adapters == ("poet",)
        assert bits(model, few, "poet") == expected[1]
        model.unload_adapter("poet")
        assert bits(model, few) == bare


def test_an_unload_frees_the_memory(model: Any, paths: dict[str, Path]) -> None:
    before = dict(model.memory)
    for _ in range(3):
        model.load_adapter("poet", paths["poet"])
        assert model.memory["adapters"] > 0
        model.unload_adapter("poet")
        assert dict(model.memory) == before
    assert model.adapters == ()


def test_one_that_was_there_at_the_load_goes_too(
    model_case: Cases, paths: dict[str, Path], tokens: list[int]
) -> None:
    both = {name: paths[name] for name in ("poet", "terse")}
    with loaded(model_case(KIND).path, adapters=both) as model:
        terse = bits(model, tokens, "terse")
        model.unload_adapter("poet")
        assert model.adapters == ("terse",)
        assert bits(model, tokens, "terse") == terse
        with pytest.raises(ArgumentError, match="adapters names 'poet'; the model has terse"):
            model.generate(tokens, adapters="poet")
        with pytest.raises(ArgumentError, match="adapter 0, counted from 0, of 2 was unloaded"):
            model._native.logits(tokens, adapters={0: 1.0})
        model.unload_adapter("terse")
        assert "adapters" not in model.memory


def test_beside_others_each_text_is_the_one_that_it_is_alone(
    model_case: Cases, paths: dict[str, Path]
) -> None:
    """One step has rows of the base, of each adapter and of both, while another comes and goes."""
    prompts = [random_tokens(KINDS[KIND], n, seed=n) for n in (5, 21, 40)]
    asked = [(prompt, share) for prompt in prompts for share in SHARES]
    long = {**OPTIONS, "max_tokens": 60}
    with loaded(model_case(KIND).path, prefix_cache=False) as model:
        bare = [model.generate(prompt, **long).token_ids for prompt in prompts]
        for name in ("poet", "terse"):
            model.load_adapter(name, paths[name])
        alone = [
            model.generate(prompt, adapters=share, **long).token_ids for prompt, share in asked
        ]
        streams = [
            model.generate(prompt, adapters=share, stream=True, **long) for prompt, share in asked
        ]
        for _ in range(3):
            model.load_adapter("other", paths["other"])
            model.unload_adapter("other")
        for stream in streams:
            "".join(stream)
        together = [stream.completion.token_ids for stream in streams]
    assert together == alone
    assert alone[:: len(SHARES)] == bare
    assert len(set(alone)) > len(prompts)


def test_an_adapter_in_use_is_not_unloaded(
    model: Any, paths: dict[str, Path], tokens: list[int]
) -> None:
    model.load_adapter("poet", paths["poet"])
    options = {"ignore_eos": True, "adapters": "poet", "max_tokens": 300}
    expected = model.generate(tokens, **options).token_ids
    settle(model)
    streams = [model.generate(tokens, stream=True, **options) for _ in range(8)]
    with pytest.raises(ArgumentError, match=r"the adapter .?poet.? is in use by a text"):
        model.unload_adapter("poet")
    for stream in streams:
        "".join(stream)
        assert stream.completion.token_ids == expected
    model.unload_adapter("poet")


def test_another_adapter_of_that_name_finds_nothing_in_the_cache(
    model: Any, paths: dict[str, Path]
) -> None:
    tokens = random_tokens(KINDS[KIND], 300, seed=7)
    options = {**OPTIONS, "adapters": "poet"}
    replies = {}
    for name in ("poet", "other", "poet"):
        model.load_adapter("poet", paths[name])
        reply = model.generate(tokens, **options)
        assert reply.cached_tokens == 0
        again = model.generate(tokens, **options)
        assert again.cached_tokens > 0
        assert again.token_ids == reply.token_ids
        assert replies.setdefault(name, reply.token_ids) == reply.token_ids
        settle(model)
        model.unload_adapter("poet")
    assert replies["poet"] != replies["other"]


def test_the_folder_of_the_cache_knows_it_by_what_it_is(
    model_case: Cases, paths: dict[str, Path], tmp_path: Path
) -> None:
    tokens, path = random_tokens(KINDS[KIND], 300, seed=7), model_case(KIND).path
    options = {**OPTIONS, "adapters": "a"}

    def cached(name: str) -> tuple[Any, int]:
        with loaded(path, cache_dir=tmp_path) as model:
            model.load_adapter("a", paths[name])
            reply = model.generate(tokens, **options)
            return reply.token_ids, reply.cached_tokens

    poet, n = cached("poet")
    assert n == 0
    assert cached("other")[1] == 0
    assert cached("poet") == (poet, len(tokens) - 1)


def test_each_context_has_its_own(model: Any, paths: dict[str, Path], tokens: list[int]) -> None:
    model.load_adapter("poet", paths["poet"])
    poet, bare = bits(model, tokens, "poet"), bits(model, tokens)
    with model.new_context(context=512, kv_type="f32") as second:
        assert second.adapters == ("poet",)
        model.unload_adapter("poet")
        assert bits(second, tokens, "poet") == poet
        second.load_adapter("terse", paths["terse"])
        assert model.adapters == ()
        assert bits(model, tokens) == bits(second, tokens) == bare


def test_a_load_that_fails_changes_nothing(
    model: Any, paths: dict[str, Path], tokens: list[int], tmp_path: Path
) -> None:
    model.load_adapter("poet", paths["poet"])
    before, poet = dict(model.memory), bits(model, tokens, "poet")
    with pytest.raises(ArgumentError, match=r"has an adapter with the name .?poet.? already"):
        model.load_adapter("poet", paths["terse"])
    with pytest.raises(AkunuError, match="nowhere"):
        model.load_adapter("a", tmp_path / "nowhere.gguf")
    wrong = files.write_gguf(
        tmp_path / "wrong.gguf", files.random_adapter(KINDS["llama-linear"], rank=2)
    )
    with pytest.raises(ModelFormatError, match="the adapter was made for another model"):
        model.load_adapter("a", wrong)
    for name in ("", 3):
        with pytest.raises(ArgumentError, match=r"adapters is .*a dict of names and paths"):
            model.load_adapter(name, paths["terse"])
    with pytest.raises(ArgumentError, match="adapters names 'a'; the model has poet"):
        model.unload_adapter("a")
    assert model.adapters == ("poet",)
    assert dict(model.memory) == before
    assert bits(model, tokens, "poet") == poet


def test_a_closed_model_loads_none(model_case: Cases, paths: dict[str, Path]) -> None:
    with loaded(model_case(KIND).path) as model:
        pass
    with pytest.raises(AkunuError, match="the model is closed"):
        model.load_adapter("poet", paths["poet"])
