"""How C loads a model: what it says of it, cache types and draft models."""

from __future__ import annotations

import ctypes
from pathlib import Path

import dense_golden
import gguf
import head_models
import pytest
from c_library import (
    ARGUMENT,
    UNSUPPORTED,
    CError,
    GenerateOptions,
    Handle,
    Library,
    LoadOptions,
    ModelInfo,
    Stats,
    as_callback,
)
from random_models import KINDS, build

import akunu

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
CONTEXT = 256


def load(library: Library, path: Path = EMBER, **fields: object) -> Handle:
    options = LoadOptions(device=b"cpu", context=CONTEXT, threads=1, **fields)
    return library.new("load_model", str(path).encode(), ctypes.byref(options))


def info_of(library: Library, path: Path, **fields: object) -> ModelInfo:
    model, info = load(library, path, **fields), ModelInfo()
    library.call("get_model_info", model, ctypes.byref(info))
    library.call("close_model", model)
    return info


@pytest.mark.parametrize("kind", ["llama-32", "gemma3", "qwen3"])
def test_the_shape_is_the_one_that_was_written(library: Library, tmp_path: Path, kind: str) -> None:
    spec = KINDS[kind]
    info = info_of(library, build(kind, tmp_path / "model.gguf", seed=1).path)
    for name in ("dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "ffn_dim", "vocab_size"):
        assert getattr(info, name) == getattr(spec, name), name
    assert info.trained_context == spec.context_length
    assert info.rope_dim == spec.head_dim
    assert info.rope_theta == pytest.approx(spec.rope_theta)
    assert info.norm_epsilon == pytest.approx(spec.norm_epsilon)
    assert info.window == (spec.window or 0)
    assert (info.latent_rank, info.n_experts, info.n_experts_chosen, info.expert_dim) == (0,) * 4


def test_the_name_is_the_files(library: Library) -> None:
    name = gguf.GGUFReader(EMBER).fields["general.name"].contents()
    assert info_of(library, EMBER).name.decode() == name


def test_experts_are_counted(library: Library, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.Qwen3MoeConfig(
        hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=300,
        num_experts=8, num_experts_per_tok=3, max_position_embeddings=512,
    )  # fmt: skip
    transformers.Qwen3MoeForCausalLM(config).save_pretrained(tmp_path)
    info = info_of(library, tmp_path)
    assert info.architecture == b"qwen3moe"
    assert (info.n_experts, info.n_experts_chosen, info.expert_dim) == (8, 3, 32)


def test_a_latent_is_counted(library: Library, tmp_path: Path) -> None:
    golden = dense_golden.load("deepseek2")
    info = info_of(library, dense_golden.write(tmp_path / "model", golden))
    assert info.latent_rank == golden.config["kv_lora_rank"]
    assert info.rope_dim == golden.config["qk_rope_head_dim"]


def text_of(library: Library, model: Handle, **fields: object) -> tuple[list[int], Stats]:
    tokens: list[int] = []

    def callback(token: int, _text: bytes) -> bool:
        tokens.append(token)
        return True

    stats = Stats()
    options = GenerateOptions(max_tokens=48, **fields)
    library.call(
        "generate_text", model, b"one two three one two three one two", ctypes.byref(options),
        as_callback(callback), None, ctypes.byref(stats),
    )  # fmt: skip
    return tokens, stats


def of_device(model: akunu.Model) -> int:
    """Return the bytes that C counts: the package adds its tokenizer, which it has in Python."""
    memory = model.memory
    return memory["total"] - memory["tokenizer"]


@pytest.mark.parametrize("kv_type", ["f16", "f32", "q8_0", "q4_0"])
def test_cache_types_are_those_of_the_package(library: Library, kv_type: str) -> None:
    model = load(library, kv_type=kv_type.encode())
    # Read before generating: steps with new numbers of rows compile programs, as timing has it.
    info = ModelInfo()
    library.call("get_model_info", model, ctypes.byref(info))
    tokens, _ = text_of(library, model)
    library.call("close_model", model)
    with akunu.load("ember", device="cpu", context=CONTEXT, threads=1, kv_type=kv_type) as known:
        assert info.memory_bytes + info.mapped_bytes == of_device(known)
        text = known.generate("one two three one two three one two", max_tokens=48, temperature=0)
        assert tokens == list(text.token_ids)


def test_another_cache_type_is_refused(library: Library) -> None:
    with pytest.raises(CError, match="kv_type is 'q5_0'; possible are f16, f32") as caught:
        load(library, kv_type=b"q5_0")
    assert caught.value.status == ARGUMENT


@pytest.mark.parametrize(
    ("device", "gpus", "why"),
    [
        (
            b"cpu",
            2,
            "options.gpus is 2, but device is 'cpu'; only cuda runs a model on several GPUs",
        ),
        (b"auto", 9, "gpus must be 1 to 8, got 9"),
        (b"cuda", 2**32 - 1, "gpus must be 1 to 8, got 4294967295"),
    ],
)
def test_more_gpus_than_there_can_be_are_refused(
    library: Library, device: bytes, gpus: int, why: str
) -> None:
    options = LoadOptions(device=device, gpus=gpus)
    with pytest.raises(CError, match=why) as caught:
        library.new("load_model", str(EMBER).encode(), ctypes.byref(options))
    assert caught.value.status == ARGUMENT


def test_one_gpu_is_what_a_cpu_may_be_called(library: Library) -> None:
    assert info_of(library, EMBER, gpus=1).n_layers == info_of(library, EMBER).n_layers


def test_a_draft_model_changes_no_token(library: Library) -> None:
    alone, both = load(library), load(library, draft=str(EMBER).encode())
    # The draft is the model itself: it has its own cache and scratch, and no weights.
    infos = [ModelInfo(), ModelInfo()]
    for model, info in zip((alone, both), infos, strict=True):
        library.call("get_model_info", model, ctypes.byref(info))
    expected, stats = text_of(library, alone)
    assert stats.drafted_tokens == 0
    tokens, stats = text_of(library, alone, speculate=True)  # the text repeats itself
    assert tokens == expected
    assert 0 < stats.drafted_tokens <= len(tokens)
    tokens, stats = text_of(library, both, speculate=False)
    assert (tokens, stats.drafted_tokens) == (expected, 0)
    tokens, stats = text_of(library, both, speculate=True)
    assert tokens == expected
    for model in (alone, both):
        library.call("close_model", model)
    with akunu.load("ember", draft="ember", device="cpu", context=CONTEXT, threads=1) as known:
        assert infos[1].memory_bytes + infos[1].mapped_bytes == of_device(known)
    assert infos[1].mapped_bytes == infos[0].mapped_bytes
    assert infos[1].memory_bytes > infos[0].memory_bytes


def with_token(path: Path, index: int, text: str) -> Path:
    """Write Ember's vocabulary, one token of it another."""
    ember = gguf.GGUFReader(EMBER)
    architecture = ember.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(path, architecture)
    for key, field in ember.fields.items():
        if not key.startswith("tokenizer."):
            continue
        value = field.contents()
        if key == "tokenizer.ggml.tokens":
            value[index] = text
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, field.types[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_a_draft_of_another_vocabulary_is_refused(library: Library, tmp_path: Path) -> None:
    other = with_token(tmp_path / "other.gguf", 20, "odd")
    with pytest.raises(
        CError, match=r"other\.gguf cannot draft for .*: token 20 is 'odd'"
    ) as caught:
        load(library, draft=str(other).encode())
    assert caught.value.status == UNSUPPORTED
    with pytest.raises(CError, match=r"none\.gguf") as caught:
        load(library, draft=b"none.gguf")
    assert caught.value.status == ARGUMENT


def test_a_prediction_head_changes_no_token(library: Library, tmp_path: Path) -> None:
    folder = head_models.write(tmp_path / "model", "qwen35", 0.0)
    alone, with_head = load(library, folder), load(library, folder, prediction_head=True)
    expected, _ = text_of(library, alone)
    tokens, stats = text_of(library, with_head, speculate=True)
    assert tokens == expected
    assert 0 < stats.drafted_tokens < len(tokens)
    for model in (alone, with_head):
        library.call("close_model", model)
    with pytest.raises(CError, match="a prediction head was asked for") as caught:
        load(library, prediction_head=True)
    assert caught.value.status == UNSUPPORTED
    with pytest.raises(CError, match="prediction_head both draft tokens") as caught:
        load(library, folder, prediction_head=True, draft=str(EMBER).encode())
    assert caught.value.status == ARGUMENT
    with pytest.raises(CError, match=r"gpus is 2; it must be 1 with options\.prediction_head"):
        load(library, folder, prediction_head=True, gpus=2)
