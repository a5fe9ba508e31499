"""Synthetic models: formats and spread as asked for, the same bytes again, and akunu loads them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from numpy.typing import NDArray

import akunu
from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.make_synthetic import PRESETS, RopeFactors, Shape, write
from tools.make_synthetic.recipes import BLOCK_SIZES, PURE, RECIPES, recipe_name, tensor_format
from tools.make_synthetic.shapes import tensors
from tools.make_synthetic.tables import GRID_FORMATS
from tools.make_synthetic.values import Stream, blocks, norm
from tools.make_synthetic.vocabulary import invent

pytestmark = pytest.mark.tools

REPOSITORY = Path(__file__).resolve().parents[2]

SMALL = Shape(
    architecture="llama", n_layers=2, dim=256, n_heads=4, n_kv_heads=2, head_dim=64, ffn_dim=512,
    vocab_size=600,
)  # fmt: skip
SHAPES = {
    "llama": SMALL,
    "llama-tied-factors": replace(
        SMALL, tied=True,
        rope_factors=RopeFactors(
            factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=512
        ),
    ),
    "llama-linear-biases": replace(
        SMALL, rope_linear_factor=4.0, qkv_bias=True, output_bias=True
    ),
    "qwen2": replace(SMALL, architecture="qwen2", n_kv_heads=1, qkv_bias=True),
    "qwen3": replace(SMALL, architecture="qwen3", n_heads=8, qk_norm=True, tied=True),
}  # fmt: skip


def numbers(number_format: str, drawn: NDArray[np.uint8]) -> NDArray[np.float64]:
    """What the bytes mean, by the `gguf` package."""
    kind = gguf.GGMLQuantizationType[number_format]
    typed = {"F32": "<f4", "F16": "<f2"}.get(number_format)
    data = drawn.reshape(-1) if typed is None else drawn.reshape(-1).view(typed)
    return dequantize(data, kind).astype(np.float64).reshape(-1)


@each_line("number_format", BLOCK_SIZES)
def test_values_are_spread_as_asked(number_format: str) -> None:
    count = 1 << 18
    n = count // BLOCK_SIZES[number_format]
    drawn = blocks(number_format, Stream(3, "spread"), n, 0.02)
    kind = gguf.GGMLQuantizationType[number_format]
    assert drawn.shape == (n, gguf.GGML_QUANT_SIZES[kind][1])
    values = numbers(number_format, drawn) / 0.02
    # Weights of a block share their scale, so a block counts as one draw of the variance; the
    # kurtosis of the mixture is below 4, blocks vary by at most that: 6 standard errors.
    blocks_apart = 6 * 2 / np.sqrt(n)
    assert values.size == count
    assert np.std(values) == pytest.approx(1.0, abs=max(blocks_apart, 6 * 2 / np.sqrt(count)))
    assert abs(np.mean(values)) < 6 * 2 / np.sqrt(
        count / 8
    )  # a minimum is off for 16 or 32 at once
    if number_format in GRID_FORMATS:
        return
    # Normal values, up to the rounding of the format: 5 % lie beyond 1.645.
    assert np.quantile(values, 0.25) == pytest.approx(-0.674, abs=0.1)
    assert np.quantile(values, 0.95) == pytest.approx(1.645, abs=0.3)
    assert 3.5 < np.abs(values).max() < 8


@each_line("number_format", ["Q4_K", "Q5_K", "Q2_K", "Q3_K", "Q6_K"])
def test_scales_vary_within_a_block(number_format: str) -> None:
    values = numbers(number_format, blocks(number_format, Stream(3, "scales"), 64, 1.0))
    parts = values.reshape(64, -1, 16 if number_format in ("Q2_K", "Q3_K", "Q6_K") else 32)
    spans = parts.max(axis=2) - parts.min(axis=2)
    assert (spans.max(axis=1) > 1.15 * spans.min(axis=1)).all()


# The first bytes of SHA-256. They may change only with a line in the changelog: files that others
# have made would not be made again.
DIGESTS = {
    "F32": "5bfc0885347a780a",
    "F16": "1adf6ed0c8d9cc6b",
    "BF16": "57006084e775b5e4",
    "Q4_0": "675326439d1f2edc",
    "Q4_1": "3de79edd08fac0c2",
    "Q5_0": "4ea66c4b6abbec8c",
    "Q5_1": "150f69c8b1bb855e",
    "Q8_0": "e728fec66944e21f",
    "Q2_K": "eaab067507e115b1",
    "Q3_K": "c544d1a275f01161",
    "Q4_K": "e646f01af58c5ea5",
    "Q5_K": "ca78558b182e088d",
    "Q6_K": "c40c66b04ed87b1e",
    "IQ2_XXS": "61cb66f27e545a76",
    "IQ2_XS": "1d46da6afec574dc",
    "IQ3_XXS": "8d2d8cd5de8998c5",
    "IQ4_NL": "d28e9daf322d0aed",
    "IQ3_S": "045abfde585750c2",
    "IQ2_S": "03abe9a675b3bc12",
    "IQ4_XS": "83a94743ead69c6b",
    "MXFP4": "504dc305c4e9d928",
    "NVFP4": "32720c7cde9f2735",
    "norms and vocabularies": "2437dfd370a6981e",
}


@each_line("number_format", BLOCK_SIZES)
def test_bytes_are_the_same_on_every_machine(number_format: str) -> None:
    drawn = blocks(number_format, Stream(5, "digest"), 4096 // BLOCK_SIZES[number_format], 0.02)
    assert hashlib.sha256(drawn.tobytes()).hexdigest()[:16] == DIGESTS[number_format]


def test_norms_and_vocabularies_are_the_same_on_every_machine() -> None:
    vocabulary = invent(PRESETS["TinyLlama-1.1B"], 5)
    byte_level = invent(replace(SMALL, architecture="qwen2", vocab_size=5000), 5)
    digest = hashlib.sha256(norm(Stream(5, "digest"), 4096).tobytes())
    digest.update("\0".join([*vocabulary.tokens, *byte_level.tokens]).encode())
    assert digest.hexdigest()[:16] == DIGESTS["norms and vocabularies"]


def test_the_same_arguments_make_the_same_file_and_another_seed_another(tmp_path: Path) -> None:
    made = {}
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        write(tmp_path / name, SMALL, "Q8_0", seed=seed)
        made[name] = (tmp_path / name).read_bytes()
    assert made["first"] == made["again"]
    assert made["first"] != made["other"]


def test_a_tensor_is_drawn_in_pieces_that_do_not_depend_on_each_other(tmp_path: Path) -> None:
    # 6 M weights: more than are drawn at once.
    shape = replace(SMALL, n_layers=1, ffn_dim=24576)
    write(tmp_path / "model.gguf", shape, "F16")
    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    up = next(tensor for tensor in reader.tensors if tensor.name == "blk.0.ffn_up.weight")
    assert up.data.shape == (24576, 256)
    halves = np.array_split(np.asarray(up.data, np.float32), 2)
    assert abs(np.corrcoef(halves[0].ravel(), halves[1].ravel())[0, 1]) < 0.01


@each_line("kind", SHAPES)
def test_akunu_loads_it_and_its_logits_are_finite_and_spread(kind: str, tmp_path: Path) -> None:
    shape = SHAPES[kind]
    path = tmp_path / "model.gguf"
    write(path, shape, "Q8_0", name="a name", seed=4)
    with akunu.load(path, context=64) as model:
        config = model.config
        for field in (
            "architecture", "n_layers", "dim", "n_heads", "n_kv_heads", "head_dim", "ffn_dim",
            "vocab_size", "context_length", "rope_theta",
        ):  # fmt: skip
            assert getattr(config, field) == getattr(shape, field), field
        assert config.name == "a name"
        assert config.norm_epsilon == pytest.approx(shape.norm_epsilon)
        text = "The sea is 12 miles away, não?\n"
        tokens = model.tokenizer.encode(text, add_special=False)
        assert model.tokenizer.decode(tokens).strip() == text.strip()
        logits = model.logits(tokens)
        assert np.isfinite(logits).all()
        assert 1 < logits.std() < 4
        assert isinstance(model.chat([{"role": "user", "content": "Hello"}], max_tokens=3), str)


@each_line("recipe", ["F32", "F16", "Q8_0", "Q4_0", *PURE])
def test_akunu_loads_its_formats(recipe: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, SMALL, recipe, pure=True)
    with akunu.load(path, context=64) as model:
        logits = model.logits(model.tokenizer.encode("Hello"))
    assert 1 < logits.std() < 4


@each_line("recipe", [*RECIPES, *PURE])
def test_every_recipe_makes_a_file_that_the_gguf_package_reads(recipe: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, SHAPES["qwen3"], recipe)
    reader = gguf.GGUFReader(path)
    shape = SHAPES["qwen3"]
    expected = {each.name: each for each in tensors(shape)}
    assert {tensor.name for tensor in reader.tensors} == set(expected)
    for tensor in reader.tensors:
        own = expected[tensor.name]
        assert tensor.shape.tolist() == ([own.k, own.rows] if own.is_matrix else [own.k])
        assert tensor.tensor_type.name == tensor_format(recipe, own, shape)
        values = dequantize(tensor.data, tensor.tensor_type)
        assert np.isfinite(values).all()
        if own.is_norm:
            assert (values > 0).all()


def test_rows_that_do_not_fit_a_block_get_a_narrower_format() -> None:
    shape = PRESETS["Qwen2.5-0.5B"]  # rows of 896
    formats = {each.name: tensor_format("Q4_K_M", each, shape) for each in tensors(shape)}
    assert formats["blk.5.attn_q.weight"] == "Q5_0"
    assert formats["token_embd.weight"] == "Q8_0"
    assert formats["blk.0.ffn_down.weight"] == "Q6_K"  # rows of 4864
    assert formats["blk.0.attn_q.bias"] == "F32"
    narrow = replace(SMALL, dim=80, head_dim=20, ffn_dim=96)
    formats = {each.name: tensor_format("Q4_0", each, narrow) for each in tensors(narrow)}
    assert formats["blk.0.ffn_up.weight"] == "F16"
    assert formats["blk.0.ffn_down.weight"] == "Q4_0"


@each_line(
    ("preset", "billions"),
    [
        ("Qwen3-0.6B", 0.596), ("Qwen3-1.7B", 1.721), ("Qwen3-4B", 4.022), ("Qwen3-8B", 8.191),
        ("Qwen2.5-0.5B", 0.494), ("Llama-3.2-1B", 1.236), ("Llama-3.1-8B", 8.030),
        ("TinyLlama-1.1B", 1.100), ("Qwen3-30B-A3B", 30.532), ("gpt-oss-20b", 20.915),
    ],
)  # fmt: skip
def test_presets_have_as_many_parameters_as_the_models_they_are_named_after(
    preset: str, billions: float
) -> None:
    count = sum(each.rows * each.k for each in tensors(PRESETS[preset]))
    assert count / 1e9 == pytest.approx(billions, abs=0.0006)


@pytest.mark.parametrize(
    "preset",
    [
        "TinyLlama-1.1B",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("Qwen3-0.6B", "Llama-3.2-1B", "gpt-oss-20b")
        ),
    ],
)
def test_vocabularies_of_presets_are_whole(preset: str) -> None:
    shape = PRESETS[preset]
    vocabulary = invent(shape, 0)
    known = set(vocabulary.tokens)
    assert len(vocabulary.tokens) == len(known) == len(vocabulary.types) == shape.vocab_size
    for merge in vocabulary.merges or []:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= known
    tokenizer = akunu.Tokenizer.from_metadata(
        {
            "tokenizer.ggml.model": vocabulary.model,
            "tokenizer.ggml.pre": vocabulary.pre,
            "tokenizer.ggml.tokens": vocabulary.tokens,
            "tokenizer.ggml.token_type": np.array(vocabulary.types, np.int32),
            "tokenizer.ggml.bos_token_id": vocabulary.bos_id,
            "tokenizer.ggml.eos_token_id": vocabulary.eos_id,
            **({"tokenizer.ggml.merges": vocabulary.merges} if vocabulary.merges else {}),
            **(
                {"tokenizer.ggml.scores": np.array(vocabulary.scores, np.float32)}
                if vocabulary.scores
                else {}
            ),
        }
    )
    text = "the rain in the morning was not as cold as the wind from the sea"
    tokens = tokenizer.encode(text, add_special=False)
    assert tokenizer.decode(tokens).strip() == text
    assert len(tokens) < 0.7 * len(text)  # words fall into pieces of more than one letter


@each_line(
    ("changes", "message"),
    [
        ({"architecture": "gpt2"}, "architecture must be one of"),
        ({"n_layers": 0}, "n_layers must be 1 or more, got 0"),
        ({"n_heads": 3}, "multiple of n_kv_heads"),
        ({"head_dim": 63}, "head_dim must be even"),
        ({"n_experts": 4}, "llama with n_experts 4 is no model"),
        ({"expert_bias": True}, "expert_bias needs n_experts, got 0"),
        ({"yarn_factor": 4.0}, "yarn_factor and yarn_context go together, got 4.0 and 0"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(changes: dict[str, int | str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)  # type: ignore[arg-type]


def test_unknown_formats_and_small_vocabularies_are_refused(tmp_path: Path) -> None:
    assert recipe_name("q4_k") == "Q4_K_M"
    with pytest.raises(ValueError, match="there is no format 'Q9'; there are F32"):
        recipe_name("Q9")
    with pytest.raises(ValueError, match="vocab_size must be 333 or more, got 300"):
        write(tmp_path / "model.gguf", replace(SMALL, vocab_size=300), "F16")
    assert not (tmp_path / "model.gguf").exists()


def run_tool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.make_synthetic", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_command_line_changes_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    done = run_tool(
        path, "--preset", "Qwen3-0.6B", "--format", "q4_0", "--pure", "--n-layers", "1",
        "--vocab-size", "1000", "--no-tied", "--seed", "7",
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with akunu.load(path, context=32) as model:
        assert (model.config.n_layers, model.config.vocab_size) == (1, 1000)
        assert model.config.name == "Qwen3-0.6B"
    types = {each.name: each.tensor_type.name for each in gguf.GGUFReader(path).tensors}
    assert types["output.weight"] == types["token_embd.weight"] == "Q4_0"


@each_line(
    ("arguments", "code", "message"),
    [
        (["--format", "Q9", "--preset", "Qwen3-0.6B"], 1, "there is no format 'Q9'"),
        (["--format", "F16", "--dim", "64"], 2, "these are needed too: --architecture, --n-layers"),
        (["--format", "F16", "--preset", "Qwen3-8B", "--n-heads", "9"], 1, "n_kv_heads"),
        (["--format", "F16", "--preset", "Qwen3-8B", "--rope-factors", "8"], 2, "8,1,4,8192"),
    ],
)
def test_the_command_line_says_what_is_wrong(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    done = run_tool(tmp_path / "model.gguf", *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
