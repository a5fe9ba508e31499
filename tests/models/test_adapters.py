"""Low-rank adapters: the logits of merged weights, and the base's own bits where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import adapter_files as files
import gguf_file
import hf_directory
import numpy as np
import pytest
from adapter_files import Adapter, merged, random_adapter
from engine import BOUND_F32_CACHE, PATHS, finished, relative_error, settle
from golden_values import N_TOKENS
from random_models import KINDS, ModelCase, random_tokens

import akunu
from akunu import ArgumentError, ModelFormatError, UnsupportedModelError
from lines import each_line

Cases = Callable[..., ModelCase]
PARTS = ["prefill", "single", "few"]


def loaded(path: Path, adapters: Mapping[str, Path], **options: Any) -> Any:
    return akunu.load(path, context=512, threads=2, kv_type="f32", adapters=adapters, **options)


def logits(model: Any, tokens: list[int], path: str, **adapters: float) -> Any:
    """Logits of all tokens; adapters by name."""
    chunks, roles = PATHS[path]
    numbers = {model.adapters.index(name): share for name, share in adapters.items()}
    return model._native.logits_chunked(tokens, chunks=chunks, roles=roles, adapters=numbers)


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.fixture(scope="module")
def tokens() -> list[int]:
    return random_tokens(KINDS["llama-gqa"], N_TOKENS, seed=3)


@pytest.fixture(scope="module")
def poet() -> Adapter:
    return random_adapter(KINDS["llama-gqa"], rank=4, seed=1)


@pytest.fixture(scope="module")
def terse() -> Adapter:
    """Of another rank, and of some projections alone."""
    some = ("self_attn.k_proj", "mlp.up_proj", "mlp.down_proj")
    return random_adapter(KINDS["llama-gqa"], rank=7, alpha=3, seed=2, projections=some)


@pytest.fixture(scope="module")
def paths(
    tmp_path_factory: pytest.TempPathFactory, poet: Adapter, terse: Adapter
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return {
        "poet": files.write_gguf(folder / "poet.gguf", poet),
        "terse": files.write_peft(folder / "terse", terse),
    }


@pytest.fixture(scope="module")
def base(model_case: Cases) -> Iterator[Any]:
    with loaded(model_case("llama-gqa").path, {}) as model:
        yield model


@pytest.fixture(scope="module")
def model(model_case: Cases, paths: dict[str, Path]) -> Iterator[Any]:
    with loaded(model_case("llama-gqa").path, paths) as model:
        yield model


def merged_logits(
    folder: Path, case: ModelCase, shares: Mapping[Adapter, float], tokens: list[int], path: str
) -> Any:
    file = folder / "merged.gguf"
    gguf_file.write(file, case.spec, merged(case.weights, shares), "f32")
    with loaded(file, {}) as model:
        return logits(model, tokens, path)


@each_line("path", PARTS)
@each_line("shares", [{"poet": 1.0}, {"terse": 1.0}, {"poet": 0.5, "terse": -2.0}], ids="+".join)
def test_logits_are_those_of_merged_weights(
    model, base, model_case, poet, terse, tokens, tmp_path, path, shares
) -> None:
    found = logits(model, tokens, path, **shares)
    by_adapter = {{"poet": poet, "terse": terse}[name]: share for name, share in shares.items()}
    expected = merged_logits(tmp_path, model_case("llama-gqa"), by_adapter, tokens, path)
    assert relative_error(found, expected) < BOUND_F32_CACHE
    assert relative_error(found, logits(base, tokens, path)) > 100 * BOUND_F32_CACHE


@each_line("kind", ["llama", "llama-linear", "qwen2", "qwen3", "gemma3"])
@each_line("of_adapter", ["gguf", "peft"])
@each_line("of_base", ["gguf", "directory"])
def test_every_kind_of_file_adapts_every_kind_of_base(
    model_case, tmp_path, kind, of_adapter, of_base
) -> None:
    case = model_case(kind)
    adapter = random_adapter(case.spec, rank=3)
    write = files.write_gguf if of_adapter == "gguf" else files.write_peft
    path = case.path
    if of_base == "directory":
        if case.spec.ffn_bias:
            pytest.skip("such a directory has no biases of the feed-forward network")
        path = hf_directory.write(tmp_path / "base", case.spec, case.weights)
    tokens = random_tokens(case.spec, 40, seed=0)
    gguf_file.write(tmp_path / "m.gguf", case.spec, merged(case.weights, {adapter: 1.0}), "f32")
    with loaded(tmp_path / "m.gguf", {}) as model:
        expected = model.logits(tokens)
    with loaded(path, {"a": write(tmp_path / "adapter", adapter)}) as model:
        assert relative_error(model.logits(tokens, adapters="a"), expected) < BOUND_F32_CACHE


def test_every_device_gives_the_logits_of_merged_weights(
    model_case, poet, terse, paths, tokens, tmp_path, device
) -> None:
    case, few = model_case("llama-gqa"), tokens[:40]
    expected = merged_logits(tmp_path, case, {poet: 0.5, terse: 1.0}, few, "prefill")
    with loaded(case.path, {}, device=device) as model:
        bare = model.logits(few)
    with loaded(case.path, paths, device=device) as model:
        adapted = model.logits(few, adapters={"poet": 0.5, "terse": 1.0})
        assert relative_error(adapted, expected) < BOUND_F32_CACHE
        assert same(model.logits(few), bare)


def test_the_base_has_its_own_bits_whatever_is_loaded(model, base, tokens) -> None:
    for path in PARTS:
        assert same(logits(model, tokens, path), logits(base, tokens, path))


def test_an_adapter_has_its_bits_whatever_else_is_loaded(model, model_case, paths, tokens) -> None:
    with loaded(model_case("llama-gqa").path, {"terse": paths["terse"]}) as alone:
        for path in PARTS:
            assert same(
                logits(model, tokens, path, terse=0.7), logits(alone, tokens, path, terse=0.7)
            )


def test_a_share_of_0_is_the_base(model, base, tokens) -> None:
    assert same(logits(model, tokens, "prefill", poet=0.0), logits(base, tokens, "prefill"))


@pytest.mark.parametrize("weight_format", ["q8_0", "q4_0"])
def test_beside_others_each_text_is_the_one_that_it_is_alone(
    model_case, tmp_path, weight_format
) -> None:
    """In one step run rows of the base, of each adapter and of both."""
    case = model_case("qwen3-32", weight_format)
    paths = {
        name: files.write_peft(tmp_path / name, random_adapter(case.spec, rank=rank, seed=rank))
        for name, rank in (("poet", 3), ("terse", 5))
    }
    prompts = [random_tokens(case.spec, n, seed=n) for n in (5, 21, 40, 70)]
    shares: list[Any] = [None, "poet", {"terse": 0.5}, {"poet": 1.0, "terse": -0.5}]
    options = {"max_tokens": 12, "ignore_eos": True, "temperature": 0.8, "seed": 1}
    asked = [(prompt, share) for prompt in prompts for share in shares]
    with loaded(case.path, {}, prefix_cache=False) as model:
        bare = [model.generate(prompt, **options).token_ids for prompt in prompts]
    with loaded(case.path, paths, prefix_cache=False) as model:
        alone = [
            model.generate(prompt, adapters=share, **options).token_ids for prompt, share in asked
        ]
        streams = [
            model.generate(prompt, adapters=share, stream=True, **options)
            for prompt, share in asked
        ]
        for stream in streams:
            "".join(stream)
        together = [stream.completion.token_ids for stream in streams]
    assert together == alone
    assert alone[::4] == bare
    assert len(set(alone)) > len(prompts)


def test_the_cache_never_crosses_adapters(model) -> None:
    tokens = random_tokens(KINDS["llama-gqa"], 300, seed=7)
    options = {"max_tokens": 8, "ignore_eos": True}
    cold = {}
    for share in (None, "poet", {"poet": 0.5}, "terse"):
        reply = model.generate(tokens, adapters=share, **options)
        assert reply.cached_tokens == 0
        again = model.generate(tokens, adapters=share, **options)
        assert again.cached_tokens > 0
        assert again.token_ids == reply.token_ids
        cold[str(share)] = reply.token_ids
    assert len(set(cold.values())) == 4


def test_a_reply_that_is_read_again_is_read_with_its_adapter(model) -> None:
    prompt = random_tokens(KINDS["llama-gqa"], 50, seed=8)
    options = {"max_tokens": 40, "ignore_eos": True, "adapters": "poet"}
    reply = model.generate(prompt, **options)
    settle(model)
    longer = [*prompt, *reply.token_ids, 5]
    warm = model.generate(longer, max_tokens=8, adapters="poet", ignore_eos=True)
    assert warm.cached_tokens > len(prompt)
    with_none = model.generate(longer, max_tokens=8, ignore_eos=True)
    assert with_none.cached_tokens == 0
    cold = logits(model, longer, "prefill", poet=1.0)[-1]
    assert warm.token_ids[0] == int(cold.argmax())


def test_halves_are_read_as_they_lie(model_case, poet, tokens, tmp_path) -> None:
    """In F16 and BF16, alone and beside one in F32, the same numbers."""
    case = model_case("llama-gqa")
    rounded = {
        module: tuple(half.astype(np.float16).astype(np.float32) for half in halves)
        for module, halves in poet.matrices.items()
    }
    exact = replace(poet, matrices=rounded)
    paths = {
        "f16": files.write_gguf(tmp_path / "f16.gguf", poet, number=np.float16),
        "f32": files.write_gguf(tmp_path / "f32.gguf", exact),
    }
    with loaded(case.path, {"f16": paths["f16"]}) as model:
        alone = logits(model, tokens, "prefill", f16=1.0)
        assert model.memory["adapters"] > 0
    with loaded(case.path, paths) as model:
        assert same(logits(model, tokens, "prefill", f16=1.0), alone)
        assert same(logits(model, tokens, "prefill", f32=1.0), alone)
    bf16 = files.write_peft(tmp_path / "bf16", poet, dtype="BF16")
    with loaded(case.path, {"a": bf16}) as model:
        error = relative_error(logits(model, tokens, "prefill", a=1.0), alone)
        assert 0 < error < 0.05


def test_patterns_say_rank_and_alpha_of_modules(model_case, tokens, tmp_path) -> None:
    case = model_case("llama-gqa")
    small = random_adapter(case.spec, rank=2, projections=("self_attn.q_proj",))
    large = random_adapter(case.spec, rank=6, projections=("mlp.down_proj",))
    alphas = {module: 3.0 / 6 for module in large.matrices}
    alphas["model.layers.1.self_attn.q_proj"] = 5.0 / 2
    both = Adapter(case.spec, 6.0, small.matrices | large.matrices, alphas)
    path = files.write_peft(
        tmp_path / "a",
        both,
        r=2,
        rank_pattern={"down_proj": 6},
        alpha_pattern={"mlp.down_proj": 3, "^model.layers.1.self_attn.q_proj": 5},
    )
    with loaded(case.path, {"a": path}) as model:
        found = logits(model, tokens, "prefill", a=1.0)
    expected = merged_logits(tmp_path, case, {both: 1.0}, tokens, "prefill")
    assert relative_error(found, expected) < BOUND_F32_CACHE


def test_rank_stabilised_adapters_are_scaled_by_the_root(model_case, tokens, tmp_path) -> None:
    case = model_case("llama-gqa")
    adapter = random_adapter(case.spec, rank=4, alpha=2)
    path = files.write_peft(tmp_path / "a", adapter, use_rslora=True)
    with loaded(case.path, {"a": path}) as model:
        found = logits(model, tokens, "prefill", a=1.0)
    scales = dict.fromkeys(adapter.matrices, 2 / 4**0.5)
    expected = merged_logits(
        tmp_path, case, {replace(adapter, scales=scales): 1.0}, tokens, "prefill"
    )
    assert relative_error(found, expected) < BOUND_F32_CACHE


@each_line(
    ("changes", "message"),
    [
        ({"use_dora": True}, "use_dora is true; akunu does not compute DoRA"),
        ({"bias": "all"}, 'bias is "all"; akunu does not compute biases'),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is .*whole modules"),
        ({"trainable_token_indices": [1, 2]}, "trainable_token_indices is .*embeddings of tokens"),
        ({"peft_type": "LOHA"}, 'peft_type is "LOHA"; akunu has "LORA"'),
        ({"init_lora_weights": "pissa"}, 'init_lora_weights is "pissa"'),
        ({"rank_pattern": {"a.*b": 3}}, r"rank_pattern of a\.\*b is a regular expression"),
        ({"something_new": 3}, "something_new is 3; akunu does not know this key"),
    ],
)
def test_what_akunu_does_not_compute_is_refused_by_key(
    model_case, terse, tmp_path, changes, message
) -> None:
    path = files.write_peft(tmp_path / "a", terse, **changes)
    with pytest.raises(UnsupportedModelError, match=f'adapter "a": .*{message}'):
        loaded(model_case("llama-gqa").path, {"a": path})


def test_a_rank_that_the_matrices_do_not_have_is_refused(model_case, terse, tmp_path) -> None:
    path = files.write_peft(tmp_path / "a", terse, r=9)
    with pytest.raises(ModelFormatError, match="is 9, and its matrices have 7"):
        loaded(model_case("llama-gqa").path, {"a": path})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general_type": "model"}, 'is no adapter: its general.type is "model"'),
        ({"adapter_type": "control"}, 'adapter.type is "control"'),
        ({"architecture": "qwen2"}, "for a model of architecture qwen2, and this one is of llama"),
    ],
)
def test_gguf_files_that_are_none_are_refused(model_case, poet, tmp_path, changes, message) -> None:
    path = files.write_gguf(tmp_path / "a.gguf", poet, **changes)
    with pytest.raises(UnsupportedModelError, match=message):
        loaded(model_case("llama-gqa").path, {"a": path})


@pytest.mark.parametrize("write", [files.write_gguf, files.write_peft])
def test_an_adapter_of_another_model_says_which_shape_differs(model_case, tmp_path, write) -> None:
    path = write(tmp_path / "a", random_adapter(KINDS["llama-linear"], rank=2))
    with pytest.raises(ModelFormatError, match="the adapter was made for another model"):
        loaded(model_case("llama-gqa").path, {"a": path})


@each_line("number, said", [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
@each_line("dtype, half", [("F32", 0), ("F16", 1), ("BF16", 0)])
@each_line("kind", ["gguf", "peft"])
def test_a_matrix_that_holds_no_numbers_is_refused_by_name(
    model_case, tmp_path, kind, dtype, half, number, said
) -> None:
    case = model_case("llama-gqa")
    adapter = random_adapter(case.spec)
    adapter.matrices["model.layers.1.mlp.up_proj"][half][2, 3] = number
    name = f"up_proj.lora_{'AB'[half]}.weight"
    if kind == "peft":
        path = files.write_peft(tmp_path / "a", adapter, dtype=dtype)
    elif dtype == "BF16":
        return  # of peft's kind alone
    else:
        name = f"ffn_up.weight.lora_{'ab'[half]}"
        halves = np.float32 if dtype == "F32" else np.float16
        path = files.write_gguf(tmp_path / "a.gguf", adapter, number=halves)
    with pytest.raises(ModelFormatError, match=f"{name}.*{said}.*in row 2, column 3") as caught:
        loaded(case.path, {"a": path})
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lm_head.lora_A.weight", "adapts lm_head, which is none of this model's projections"),
        ("model.layers.0.mlp.experts.lora_A.weight", "adapts model.layers.0.mlp.experts"),
        ("model.layers.9.mlp.up_proj.lora_A.weight", "adapts model.layers.9.mlp.up_proj"),
        ("model.layers.0.mlp.up_proj.lora_magnitude_vector", "is not one of an adapter"),
        ("model.embed_tokens.lora_embedding_A", "is not one of an adapter"),
    ],
)
def test_every_tensor_must_have_a_place(model_case, tmp_path, name, message) -> None:
    case = model_case("llama-gqa")
    rank, numbers = 2, np.ones((2, case.spec.dim), np.float32)
    folder = files.write_peft(tmp_path / "a", random_adapter(case.spec, rank=rank))
    tensors = {f"base_model.model.{name}": numbers}
    if name.endswith("A.weight"):
        other = np.ones((case.spec.ffn_dim, rank), np.float32)
        tensors[f"base_model.model.{name.replace('lora_A', 'lora_B')}"] = other
    hf_directory.write_safetensors(
        folder / "adapter_model.safetensors",
        {key: ("F32", each.shape, each.tobytes()) for key, each in tensors.items()},
    )
    with pytest.raises(UnsupportedModelError, match=message):
        loaded(case.path, {"a": folder})


def test_a_half_without_the_other_is_refused(model_case, tmp_path) -> None:
    case = model_case("llama-gqa")
    folder = files.write_peft(tmp_path / "a", random_adapter(case.spec))
    name = "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"
    numbers = np.ones((2, case.spec.dim), np.float32)
    hf_directory.write_safetensors(
        folder / "adapter_model.safetensors", {name: ("F32", numbers.shape, numbers.tobytes())}
    )
    with pytest.raises(ModelFormatError, match="is there without B, its other half"):
        loaded(case.path, {"a": folder})


def test_a_directory_without_a_config_or_weights_is_refused(model_case, terse, tmp_path) -> None:
    path = model_case("llama-gqa").path
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFormatError, match=r"adapter_config.json is missing"):
        loaded(path, {"a": tmp_path / "empty"})
    folder = files.write_peft(tmp_path / "a", terse)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(ModelFormatError, match=r"there is no adapter_model.safetensors"):
        loaded(path, {"a": folder})
    with pytest.raises(ArgumentError, match=r'adapter "a": .*nowhere'):
        loaded(path, {"a": tmp_path / "nowhere.gguf"})


@pytest.mark.parametrize(
    ("adapters", "message"),
    [
        ("painter", "adapters names 'painter'; the model has poet, terse"),
        ({"poet": float("nan")}, "adapters is .*; it must be the name of an adapter, or a dict"),
        ({"poet": "a"}, "it must be the name of an adapter"),
        (3, "adapters is 3; it must be the name of an adapter"),
    ],
)
def test_adapters_that_make_no_sense_are_refused(model, adapters, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        model.generate("a", adapters=adapters)


def test_a_model_without_adapters_says_so(base) -> None:
    assert base.adapters == ()
    with pytest.raises(ArgumentError, match="adapters names 'a'; the model has no adapters"):
        base.generate("a", adapters="a")


def test_names_and_paths_are_checked_when_a_model_is_loaded() -> None:
    for adapters in ("poet", {"": "a"}, {1: "a"}, {"a": 3}, ["a"]):
        with pytest.raises(ArgumentError, match=r"adapters is .*a dict of names and paths"):
            akunu.load(adapters=adapters)  # type: ignore[arg-type]


def test_several_answers_have_the_adapter_of_their_prompt(model, tokens) -> None:
    options = {"max_tokens": 6, "temperature": 1.0, "seed": 4, "ignore_eos": True}
    several = model.generate(tokens[:60], n=3, adapters="terse", **options)
    single = [
        model.generate(tokens[:60], answer_index=i, adapters="terse", **options) for i in range(3)
    ]
    assert [each.token_ids for each in several] == [each.token_ids for each in single]


def test_a_generation_of_the_engine_takes_numbers_and_shares(model, tokens) -> None:
    with pytest.raises(ArgumentError, match="adapter 2, counted from 0, of 2"):
        model._native.logits(tokens, adapters={2: 1.0})
    generation = model._native.start(
        np.array(tokens, np.uint32),
        max_tokens=2,
        stop_ids=[],
        sampling=akunu.SamplingOptions().packed(seed=0),
        logit_bias={},
        adapters={0: 1.0},
    )
    assert len(finished(generation)) == 2
