"""Whisper in the shapes of its family: logits and cross-attention are those of transformers.

Weights are random; large-v3 has two layers here, and vocabularies are cut. That an encoder's row is
right is seen in how much each token attends to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from engine import relative_error
from transformers import WhisperConfig, WhisperForConditionalGeneration

from akunu import _core
from akunu.options.text_options import LoadOptions
from akunu.storage.native_load import begin_load

pytestmark = pytest.mark.oracle


@dataclass(frozen=True)
class Shape:
    """What differs between the members of the family."""

    dim: int
    n_heads: int
    n_layers: int
    n_mels: int
    vocab: int
    n_positions: int


SHAPES = {
    "tiny.en": Shape(384, 6, 4, 80, 1864, 1500),
    "tiny": Shape(384, 6, 4, 80, 1865, 1500),
    "base": Shape(512, 8, 6, 80, 1865, 300),
    "large-v3": Shape(1280, 20, 2, 128, 1866, 100),
}


def config_of(shape: Shape) -> WhisperConfig:
    return WhisperConfig(
        d_model=shape.dim,
        encoder_layers=shape.n_layers,
        decoder_layers=shape.n_layers,
        encoder_attention_heads=shape.n_heads,
        decoder_attention_heads=shape.n_heads,
        encoder_ffn_dim=4 * shape.dim,
        decoder_ffn_dim=4 * shape.dim,
        num_mel_bins=shape.n_mels,
        vocab_size=shape.vocab,
        max_source_positions=shape.n_positions,
        init_std=0.05,  # so that attention is not even
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=1,
        attn_implementation="eager",
    )


def read(
    folder: Path, device: str, mel: np.ndarray, tokens: np.ndarray, heads: Sequence[tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Logits [tokens, vocabulary] and weights [tokens, heads, positions] of the engine."""
    options = LoadOptions(device=device, threads=2, kv_type="f32")
    native = begin_load(folder, options, heads).result()
    try:
        window = _core.SpeechWindow(mel)
        logits = native.logits(tokens, window=window)
        weights = native.start_alignment(tokens, window).result()
    finally:
        native.close()
    return logits, weights.reshape(len(tokens), len(heads), -1)


# The emulator takes a minute for each of the others.
@pytest.mark.parametrize(
    ("name", "device"), [*((name, "cpu") for name in SHAPES), ("base", "metal-emulated")]
)
def test_a_shape_is_that_of_transformers(tmp_path: Path, name: str, device: str) -> None:
    shape = SHAPES[name]
    torch.manual_seed(len(name))
    model = WhisperForConditionalGeneration(config_of(shape)).eval()
    model.save_pretrained(tmp_path)
    rng = np.random.default_rng(3)
    mel = rng.normal(0, 0.5, (shape.n_mels, 2 * shape.n_positions)).astype(np.float32)
    tokens = rng.integers(1, shape.vocab, 24).astype(np.uint32)
    with torch.no_grad():
        expected = model(
            input_features=torch.from_numpy(mel)[None],
            decoder_input_ids=torch.from_numpy(tokens.astype(np.int64))[None],
            output_attentions=True,
        )
    heads = [(layer, head) for layer in (0, shape.n_layers - 1) for head in (0, shape.n_heads - 1)]
    logits, weights = read(tmp_path, device, mel, tokens, heads)
    assert relative_error(logits, expected.logits[0].numpy()) <= 2e-4
    attended = np.stack([expected.cross_attentions[i][0, head].numpy() for i, head in heads], 1)
    assert relative_error(weights, attended) <= 2e-3
