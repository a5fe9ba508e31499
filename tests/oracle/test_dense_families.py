"""Dense families from directories and from converted files, beside transformers and llama.cpp."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peft_adapter
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import dense_golden
import random_decoders as rnd
from dense_golden import TOKENS
from engine import (
    BOUND_F16_CACHE,
    BOUND_F32_CACHE,
    MUTATION_FACTOR,
    PATHS,
    chunked,
    opened,
    random_chunks,
    relative_error,
    relative_rms,
)
from family_case import Case, Measured, record
from gguf import GGUFReader
from golden_values import N_TOKENS
from make_dense_golden import golden_of
from numpy.typing import NDArray

import akunu
from akunu import _core
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from akunu.errors import UnsupportedModelError

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module", params=list(rnd.FAMILIES))
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, oracle: Any
) -> Iterator[Case]:
    return Case(rnd, request.param, tmp_path_factory.mktemp("families"), oracle)


def test_golden_values_are_current(case: Case) -> None:
    """Those that tests need no PyTorch for."""
    golden = dense_golden.load(case.family)
    current = golden_of(case.directory, case.expected)
    assert golden.shapes == current.shapes
    assert golden.largest == pytest.approx(current.largest, rel=1e-5)
    assert relative_error(golden.logits, current.logits) <= 1e-5
    config = {**current.config, "transformers_version": golden.config["transformers_version"]}
    assert golden.config == config


@pytest.mark.parametrize(("kv_type", "bound"), [("f32", BOUND_F32_CACHE), ("f16", BOUND_F16_CACHE)])
def test_logits_are_those_of_transformers(
    case: Case, measured: Measured, kv_type: str, bound: float
) -> None:
    with opened(case.directory, kv_type=kv_type) as model:
        assert not model.notes or all("akunu does not know" not in note for note in model.notes)
        for name, (chunks, roles) in PATHS.items():
            logits = chunked(model, TOKENS, chunks, roles)
            error = relative_error(logits, case.expected)
            measured(f"dense family, {kv_type} cache", f"{case.family} {name}", error)
            assert error <= bound, name
    if kv_type == "f32":
        architecture = rnd.FAMILIES[case.family].architecture
        record(architecture, "safetensors F32", "cpu", error)


def test_logits_do_not_depend_on_how_the_tokens_are_cut(case: Case) -> None:
    for path in (case.directory, case.gguf("Q8_0")):
        with opened(path, kv_type="f32") as model:
            whole = {
                "prompt": model.logits(TOKENS),
                "generated": chunked(model, TOKENS, *PATHS["few-16"]),
            }
            for chunks, roles in PATHS.values():
                found = chunked(model, TOKENS, chunks, roles)
                np.testing.assert_array_equal(found, whole[roles])
            few = chunked(model, TOKENS, random_chunks(N_TOKENS, 16, seed=3), "generated")
        with opened(path, kv_type="f32", threads=2) as model:
            np.testing.assert_array_equal(model.logits(TOKENS), whole["prompt"])
            found = chunked(model, TOKENS, random_chunks(N_TOKENS, 16, seed=3), "generated")
            np.testing.assert_array_equal(found, few)


def test_a_text_has_the_same_tokens_alone_and_beside_others(case: Case) -> None:
    prompts = [TOKENS[:3], TOKENS[5:90], TOKENS[40:41], TOKENS[100:180]]
    with opened(case.directory) as model:
        together = model.generate(prompts, max_tokens=12)
        for prompt, reply in zip(prompts, together, strict=True):
            assert model.generate(prompt, max_tokens=12).token_ids == reply.token_ids


def test_what_config_json_says_is_felt(case: Case, measured: Measured, tmp_path: Path) -> None:
    """A model with another number is another model: so each is read, and not by the same value."""
    for name, changes in rnd.FAMILIES[case.family].changes.items():
        folder = rnd.changed(case.directory, tmp_path / name, changes)
        with opened(folder) as model:
            error = relative_error(model.logits(TOKENS), case.expected)
        measured(f"dense family, mistake: {name}", case.family, error)
        assert error >= MUTATION_FACTOR * BOUND_F32_CACHE, name


def test_on_metal_emulated(case: Case, measured: Measured) -> None:
    n = 40
    with opened(case.directory, device="metal-emulated") as model:
        logits = chunked(model, TOKENS[:n], [24, 16], "prompt")
        prompt = relative_error(logits, case.expected[:n])
        generated = chunked(model, TOKENS[:n], [16, 16, *[1] * 8], "generated")
        error = max(prompt, relative_error(generated, case.expected[:n]))
    measured("dense family, Metal emulated", case.family, error)
    record(rnd.FAMILIES[case.family].architecture, "safetensors F32", "metal-emulated", error)
    assert error <= BOUND_F32_CACHE


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_those_of_transformers(
    case: Case, oracle: Any, tmp_path: Path, dtype: str
) -> None:
    folder = rnd.save(tmp_path / "model", rnd.model_of(case.family), dtype)
    expected = oracle.logits(oracle.from_directory(folder), TOKENS)
    with opened(folder) as model:
        error = relative_error(model.logits(TOKENS), expected)
    # Rows beside weights of 16 bits are rounded to 16 bits, too.
    assert error <= BOUND_F16_CACHE


def test_a_converted_file_is_the_same_model_here_and_in_llama_cpp(
    case: Case, measured: Measured, peer: str
) -> None:
    path = case.gguf("F32")
    architecture = rnd.FAMILIES[case.family].architecture
    meta = GGUFReader(path).fields["general.architecture"].contents()
    assert meta == architecture
    with opened(path) as model:
        ours = model.logits(TOKENS)
    error = relative_error(ours, case.expected)
    record(architecture, "GGUF F32", "cpu", error)
    assert error <= BOUND_F32_CACHE
    why = rnd.FAMILIES[case.family].not_in_llama_cpp
    if why:
        pytest.skip(f"llama.cpp differs: {why}")
    theirs = engine_logits(peer, "llama_cpp_logits", path, [TOKENS], kv_type="f32", threads=1)
    error = relative_error(ours, theirs[0])
    measured("dense family converted, llama.cpp", case.family, error)
    # llama.cpp's GELU is a table of halves.
    has_gelu = architecture in ("starcoder2", "gemma4")
    assert error <= (BOUND_F16_CACHE if has_gelu else BOUND_F32_CACHE)


@pytest.mark.parametrize("recipe", ["Q8_0", "Q4_0"])
def test_quantised_files_are_as_exact_as_in_llama_cpp(
    case: Case, oracle: Any, measured: Measured, peer: str, tmp_path: Path, recipe: str
) -> None:
    """Of weights that the format can hold, so that the file has the very same ones."""
    exact = rnd.rounded(rnd.model_of(case.family), recipe)
    expected = oracle.logits(exact, TOKENS)
    folder, path = rnd.save(tmp_path / "model", exact), tmp_path / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES[recipe], pure=True)).write(path)
    with opened(path, device="metal-emulated") as model:  # rows are floats there
        logits = chunked(model, TOKENS[:32], [32], "prompt")
    assert relative_error(logits, expected[:32]) <= BOUND_F32_CACHE
    with opened(path) as model:
        ours = model.logits(TOKENS)
    architecture = rnd.FAMILIES[case.family].architecture
    record(architecture, f"GGUF {recipe}", "cpu", relative_error(ours, expected))
    measured(f"dense family {recipe}", case.family, relative_error(ours, expected))
    if rnd.FAMILIES[case.family].not_in_llama_cpp:
        return
    theirs = engine_logits(peer, "llama_cpp_logits", path, [TOKENS], kv_type="f32", threads=1)
    # Both round the rows to int8, in different ways.
    assert relative_rms(ours, expected) <= 1.2 * relative_rms(theirs[0], expected)


LINEAR = {
    "self_attn.q_proj": ("attn_q",),
    "self_attn.k_proj": ("attn_k",),
    "self_attn.v_proj": ("attn_v",),
    "self_attn.o_proj": ("attn_output",),
    "mlp.gate_proj": ("ffn_gate",),
    "mlp.up_proj": ("ffn_up",),
    "mlp.down_proj": ("ffn_down",),
    "mlp.gate_up_proj": ("ffn_up",),
    "mlp.c_fc": ("ffn_up",),
    "mlp.c_proj": ("ffn_down",),
    "shared_mlp.input_linear": ("ffn_gate", "ffn_up"),
    "shared_mlp.output_linear": ("ffn_down",),
    "self_attn.q_a_proj": ("attn_q_a",),
    "self_attn.q_b_proj": ("attn_q_b",),
    "self_attn.kv_a_proj_with_mqa": ("attn_kv_a_mqa",),
    "per_layer_input_gate": ("inp_gate",),
    "per_layer_projection": ("proj",),
    "laurel.linear_left": ("laurel_l",),
    "laurel.linear_right": ("laurel_r",),
    "self_attn.out_proj": ("attn_output",),
    "feed_forward.w1": ("ffn_gate",),
    "feed_forward.w3": ("ffn_up",),
    "feed_forward.w2": ("ffn_down",),
    "conv.in_proj": ("shortconv.in_proj",),
    "mamba.in_proj": ("ssm_in",),
    "mamba.out_proj": ("ssm_out",),
    "feed_forward.gate_proj": ("ffn_gate",),
    "feed_forward.up_proj": ("ffn_up",),
    "feed_forward.down_proj": ("ffn_down",),
    "mixer.in_proj": ("ssm_in",),
    "mixer.out_proj": ("ssm_out",),
    "mixer.q_proj": ("attn_q",),
    "mixer.k_proj": ("attn_k",),
    "mixer.v_proj": ("attn_v",),
    "mixer.o_proj": ("attn_output",),
    "mixer.up_proj": ("ffn_up",),
    "mixer.down_proj": ("ffn_down",),
    "linear_attn.in_proj_qkv": ("attn_qkv",),
    "linear_attn.in_proj_z": ("attn_gate",),
    "linear_attn.in_proj_a": ("ssm_alpha",),
    "linear_attn.in_proj_b": ("ssm_beta",),
    "linear_attn.out_proj": ("ssm_out",),
    "self_attn.forget_gate.f_a_proj": ("ssm_f_a",),
    "self_attn.forget_gate.f_b_proj": ("ssm_f_b",),
    "self_attn.g_a_proj": ("ssm_g_a",),
    "self_attn.g_b_proj": ("ssm_g_b",),
    "self_attn.b_proj": ("ssm_beta",),
    "conv.out_proj": ("shortconv.out_proj",),
    "self_attn.kv_b_proj": (),  # absorbed: what transformers multiplies it with is never there
}


def test_an_importance_matrix_is_of_the_inputs_of_every_matrix(case: Case) -> None:
    import torch

    tokens = TOKENS[:20]
    model = rnd.model_of(case.family)
    expected: dict[str, NDArray[np.float64]] = {}

    def watch(name: str, module: Any) -> None:
        def look(_: Any, given: Any, __: Any) -> None:
            squares = (given[0][0].double() ** 2).sum(0).numpy()
            if name == "model.per_layer_model_projection":
                expected["per_layer_model_proj.weight"] = squares
                return
            layer, kind = name.partition(".layers.")[2].split(".", 1)
            if kind == "linear_attn.out_proj":  # of heads that llama.cpp has in another order
                n, dim = model.config.linear_num_key_heads, model.config.linear_value_head_dim
                squares = squares.reshape(n, -1, dim).transpose(1, 0, 2).reshape(-1)
            if kind.startswith(("self_attn", "mamba.in_proj")):  # files have them in the weights
                own = "ssm_in" if kind.startswith("mamba") else "attention_in"
                squares = squares / getattr(model.config, f"{own}_multiplier", 1.0) ** 2
            for each in LINEAR[kind]:
                expected[f"blk.{layer}.{each}.weight"] = squares

        module.register_forward_hook(look)

    for name, module in model.named_modules():
        # Of streams no file has matrices in blocks.
        if isinstance(module, torch.nn.Linear) and name != "lm_head" and "altup" not in name:
            watch(name, module)
    with torch.inference_mode():
        model(input_ids=torch.tensor([tokens]), use_cache=False)
    observer = _core.InputObserver(case.gguf("F32"), context=32, device="cpu", threads=1)
    observer.add(tokens)
    seen = {name: each for name, each in observer.squares.items() if "altup" not in name}
    assert seen.keys() == expected.keys()
    for name, (sums, count) in seen.items():
        assert count == len(tokens)
        assert np.abs(sums - expected[name]).max() <= 1e-2 * expected[name].max(), name


@pytest.mark.filterwarnings("ignore")  # of peft and torch
def test_an_adapter_gives_the_logits_of_peft(case: Case, tmp_path: Path) -> None:
    import torch

    tokens = TOKENS[:70]
    refused = "mamba" if case.architecture == "falcon-h1" else "mixer"
    adapted = peft_adapter.adapted(
        rnd.model_of(case.family),
        tmp_path / "adapter",
        target_modules="all-linear",
        # What latent attention absorbs, what is of no layer, and routers of streams: refused. The
        # output of some families' scans peft refuses.
        exclude_modules=rf".*(kv_b_proj|per_layer_model_projection|altup.*|{refused}\.out_proj)",
    )
    # This model has no experts.
    adapter = peft_adapter.without_patterns(tmp_path / "adapter")
    with torch.no_grad():
        expected = adapted(torch.tensor([tokens])).logits[0].numpy()
    paths = [case.directory, case.gguf("F32")]
    if case.architecture == "falcon-h1":  # whose GGUF files have factors in the weights
        with pytest.raises(UnsupportedModelError, match="load the model from a directory"):
            akunu.load(paths.pop(), adapters={"a": adapter})
    for path in paths:
        with akunu.load(path, kv_type="f32", adapters={"a": adapter}) as ours:
            assert relative_error(ours.logits(tokens, adapters="a"), expected) <= BOUND_F32_CACHE
            assert relative_error(ours.logits(tokens), expected) > 50 * BOUND_F32_CACHE


def test_of_a_model_with_images_the_text_part_loads(oracle: Any, tmp_path: Path) -> None:
    """As Mistral Small 3.1 is: the encoder of images is left out, by name."""
    import torch
    import transformers

    text = {**rnd.SIZES, "model_type": "mistral", "head_dim": 32, "sliding_window": None}
    images = {
        "model_type": "pixtral",
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
    }
    config = transformers.Mistral3Config(
        text_config=text, vision_config=images, tie_word_embeddings=False
    )
    torch.manual_seed(1)
    whole = transformers.Mistral3ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in whole.named_parameters():
            if weight.ndim == 2:
                weight.normal_(0, 0.5 if "embed" in name else 1.5 / weight.shape[1] ** 0.5)
    folder = rnd.save(tmp_path / "model", whole)
    expected = oracle.logits(whole, TOKENS)
    with opened(folder) as model:
        assert relative_error(model.logits(TOKENS), expected) <= BOUND_F32_CACHE
        notes = [note for note in model.notes if "encoder of images" in note]
    assert len(notes) == 1
    assert "vision_tower" in notes[0] or "multi_modal_projector" in notes[0]
