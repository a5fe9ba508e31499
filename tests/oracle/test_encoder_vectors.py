"""Random encoders: transformers, the formula in NumPy and the engine say the same."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

import akunu

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def model_of(spec: em.EncoderSpec, tensors: em.Tensors) -> object:
    """transformers' model with these weights, and none that are its own."""
    shape = {
        "vocab_size": spec.vocab_size,
        "hidden_size": spec.dim,
        "num_hidden_layers": spec.n_layers,
        "num_attention_heads": spec.n_heads,
        "intermediate_size": spec.ffn_dim,
        "max_position_embeddings": spec.positions,
        "layer_norm_eps": spec.epsilon,
    }
    if spec.is_nomic:
        rope = {"rope_type": "default", "rope_theta": spec.rope_theta}
        config = transformers.NomicBertConfig(**shape, rope_parameters=rope)
        model = transformers.NomicBertModel(config, add_pooling_layer=False)
    else:
        model = transformers.BertModel(transformers.BertConfig(**shape), add_pooling_layer=False)
    given = {name: torch.from_numpy(values) for name, values in tensors.items()}
    missing, unknown = model.load_state_dict(given, strict=False)
    assert not unknown
    assert all("position_ids" in name or "token_type_ids" in name for name in missing)
    return model.eval()


@pytest.mark.parametrize("architecture", ["bert", "nomic-bert"])
def test_three_agree(tmp_path: Path, architecture: str) -> None:
    spec = em.EncoderSpec(architecture=architecture)
    tensors = em.random_tensors(spec, seed=1)
    model = model_of(spec, tensors)
    with akunu.load(em.write_gguf(tmp_path / "model.gguf", spec, tensors)) as ours:
        for n in (1, 5, 100, 600):
            ids = np.random.default_rng(n).integers(0, spec.vocab_size, n)
            with torch.no_grad():
                given = {"input_ids": torch.tensor(ids[None]), "attention_mask": torch.ones(1, n)}
                theirs = model(**given).last_hidden_state[0].numpy()  # type: ignore[operator]
            exact = em.forward(spec, tensors, ids.tolist())
            np.testing.assert_allclose(theirs, exact, atol=1e-4)  # angles in float32
            found = ours.embed([ids.tolist()], normalize=False)[0]
            np.testing.assert_allclose(found, theirs.mean(axis=0), atol=2e-5)
