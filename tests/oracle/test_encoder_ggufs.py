"""Encoders as GGUF, the way llama.cpp's converter writes them, are those of their directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_encoders as rnd

import akunu

pytestmark = pytest.mark.oracle

ARCHITECTURES = {
    "modernbert": gguf.MODEL_ARCH.MODERN_BERT,
    "eurobert": gguf.MODEL_ARCH.EUROBERT,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "gemma3": gguf.MODEL_ARCH.GEMMA_EMBEDDING,
    "nomic": gguf.MODEL_ARCH.NOMIC_BERT,
    "roberta": gguf.MODEL_ARCH.BERT,
}


def tensors_of(family: str, folder: Path, model: Any) -> dict[str, np.ndarray]:
    """The tensors of a saved model by GGUF's names."""
    from safetensors.numpy import load_file

    names = gguf.get_tensor_name_map(ARCHITECTURES[family], model.config.num_hidden_layers)
    found = {}
    for name, values in load_file(folder / "model.safetensors").items():
        if "pooler" in name or "position_ids" in name:
            continue
        known = next(
            new
            for prefix in ("", "model.", "roberta.")
            if (new := names.get_name(prefix + name, try_suffixes=(".weight", ".bias")))
        )
        if family == "gemma3" and "norm" in known:
            values = values + np.float32(1)
        if family == "roberta" and known.startswith("position_embd"):
            values = values[2:]  # those that texts have
        found[known] = values
    return found


def write(path: Path, family: str, folder: Path, model: Any) -> Path:
    config = model.config
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[ARCHITECTURES[family]])
    writer.add_context_length(300)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    pooling = gguf.PoolingType.LAST if family == "qwen3" else gguf.PoolingType.MEAN
    writer.add_pooling_type(pooling)
    if hasattr(config, "num_key_value_heads"):
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:
        writer.add_layer_norm_eps(getattr(config, "norm_eps", None) or config.layer_norm_eps)
    if family == "modernbert":
        writer.add_sliding_window(32)
        writer.add_sliding_window_pattern(3)
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
        swa = config.rope_parameters["sliding_attention"]["rope_theta"]
        writer.add_float32("modern-bert.rope.freq_base_swa", swa)
    elif family == "gemma3":
        # The class halves the window that it is given.
        writer.add_sliding_window(32)
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
    elif family != "roberta":
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    tokens = rnd.em.TOKENS
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in rnd.em.SPECIAL else 1 for token in tokens])
    for add, name in (
        (writer.add_bos_token_id, "[CLS]"),
        (writer.add_sep_token_id, "[SEP]"),
        (writer.add_unk_token_id, "[UNK]"),
        (writer.add_pad_token_id, "[PAD]"),
    ):
        add(tokens.index(name))
    for name, values in tensors_of(family, folder, model).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("family", list(ARCHITECTURES))
def test_a_file_gives_the_vectors_of_its_directory(tmp_path: Path, family: str) -> None:
    model = rnd.model_of(family)
    folder = rnd.save(tmp_path / family, model)
    if family == "qwen3":
        (folder / "modules.json").write_text(json.dumps([]))
    path = write(tmp_path / "model.gguf", family, folder, model)
    with akunu.load(folder) as expected, akunu.load(path) as found:
        assert found.embedding is not None
        assert found.embedding.pooling == ("last" if family == "qwen3" else "mean")
        for n in (1, 40, 290):
            ids = np.random.default_rng(n).integers(2, rnd.VOCAB, n).tolist()
            for pooling in ("none", "mean"):
                ours, theirs = (
                    each.embed([ids], pooling=pooling, normalize=True)[0]
                    for each in (found, expected)
                )
                np.testing.assert_allclose(ours, theirs, atol=2e-6)
