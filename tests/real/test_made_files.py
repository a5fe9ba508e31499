"""What `akunu convert` and `quantize` make of real models, in llama.cpp and beside its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from beside_llama_cpp import difference_of_costs
from numpy.typing import NDArray
from tools.compare.engine_process import EngineProcess
from tools.compare.quantise import dequantise
from tools.compare.texts import read_text
from tools.quantise_quality import qualities
from windows import LICENSE

import akunu
from akunu.cli.main import main

pytestmark = [pytest.mark.real, pytest.mark.oracle]

Costs = NDArray[np.float64]


def costs(worker: str, model: Path, chunks: list[list[int]]) -> Costs:
    """Nats of each token in the second halves, as llama.cpp's `perplexity` counts them."""
    context = len(chunks[0])
    with EngineProcess(sys.executable, worker, model, context=context, threads=1) as engine:
        return np.concatenate(engine.ask({"chunks": chunks, "kv_type": "f16"})["costs"])


def chunks_of(model: Path, n: int, length: int = 512) -> list[list[int]]:
    tokenizer = akunu.Tokenizer.from_gguf(model)
    return read_text(tokenizer, str(LICENSE), length=length, n_chunks=n).chunks


@pytest.fixture(scope="module")
def smollm2_f32(smollm2_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("f32") / "smollm2.gguf"
    dequantise(smollm2_file, path)
    return path


def test_a_converted_directory_has_the_perplexity_of_transformers_in_llama_cpp(
    transformers: Any, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    import torch

    torch.set_num_threads(1)
    folder, target = saved("float16"), tmp_path / "made.gguf"
    assert main(["convert", str(folder), str(target)]) == 0
    chunks = chunks_of(target, 3)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    expected = []
    for chunk in chunks:
        with torch.inference_mode():
            logits = model(torch.tensor([chunk]), use_cache=False).logits[0].double()
        scored = logits.log_softmax(-1)[len(chunk) // 2 : -1].numpy()
        expected.append(-scored[np.arange(len(scored)), chunk[-len(scored) :]])
    for worker in ("llama_cpp_logits", "akunu_logits"):
        mean, standard_error = difference_of_costs(
            costs(worker, target, chunks), np.concatenate(expected)
        )
        assert abs(mean) <= max(0.001, 3 * standard_error), worker
        assert standard_error <= 0.001, worker


@pytest.mark.parametrize("type_name", ["Q4_K_M", "Q5_0", "IQ4_XS"])
def test_llama_cpp_reads_a_quantised_smollm2_as_akunu_does(
    smollm2_f32: Path, tmp_path: Path, type_name: str
) -> None:
    target = tmp_path / "made.gguf"
    assert main(["quantize", str(smollm2_f32), str(target), type_name]) == 0
    chunks = chunks_of(target, 3)
    ours, theirs = (costs(f"{name}_logits", target, chunks) for name in ("akunu", "llama_cpp"))
    mean, standard_error = difference_of_costs(ours, theirs)
    assert abs(mean) <= max(0.003, 3 * standard_error)
    assert standard_error <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("type_name", ["Q4_0", "Q4_K_M", "IQ4_XS", "Q3_K_M"])
def test_a_quantised_smollm2_is_no_further_from_it_than_llama_cpps(
    smollm2_f32: Path, type_name: str
) -> None:
    (quality,) = qualities(smollm2_f32, [type_name], chunks_of(smollm2_f32, 4, 256))
    assert quality.ours <= quality.theirs


@pytest.mark.slow
def test_a_mix_of_the_same_size_is_a_tenth_nearer(smollm2_f32: Path) -> None:
    chunks = chunks_of(smollm2_f32, 4, 256)
    (quality,) = qualities(smollm2_f32, ["Q4_K_M"], chunks, mixed=True)
    assert quality.ours <= 0.9 * quality.theirs


def test_gemma_3_is_made_smaller_from_blocks_and_read_alike(
    gemma3_file: Path, tmp_path: Path
) -> None:
    target = tmp_path / "made.gguf"
    arguments = [str(gemma3_file), str(target), "Q4_0"]
    assert main(["quantize", *arguments]) != 0  # it is quantised, and nobody said that it may be
    assert main(["quantize", *arguments, "--allow-requantize"]) == 0
    assert target.stat().st_size < gemma3_file.stat().st_size
    chunks = chunks_of(gemma3_file, 3, 128)
    ours, theirs = (costs(f"{name}_logits", target, chunks) for name in ("akunu", "llama_cpp"))
    mean, standard_error = difference_of_costs(ours, theirs)
    assert abs(mean) <= max(0.003, 3 * standard_error)


def test_minilm_converted_and_quantised_has_nearly_its_vectors(
    real_models: Path, tmp_path: Path
) -> None:
    folder = real_models / "minilm"
    texts = ["The cat sat on the mat.", "Rain in Paris", "naïve café, 3.14", "money " * 60]
    with akunu.load(folder) as model:
        expected = np.asarray(model.embed(texts))
    for arguments, least in ((["convert"], 0.99999), (["quantize", "Q8_0"], 0.999)):
        target = tmp_path / f"{arguments[-1]}.gguf"
        assert main([arguments[0], str(folder), str(target), *arguments[1:]]) == 0
        with akunu.load(target) as model:
            found = np.asarray(model.embed(texts))
        assert (found * expected).sum(axis=1).min() >= least, arguments[0]
