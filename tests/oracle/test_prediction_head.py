"""What a prediction head computes, beside transformers in vLLM's frame, and llama.cpp.

transformers leaves heads out: what is around the layer is as in vLLM's qwen3_next_mtp.py and
qwen3_5_mtp.py. The head reads the normed embedding of the token behind a row, and the normed last
hidden state of that row, which is the one behind the model's last norm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import head_models
import numpy as np
import peer_head
import pytest
from dense_golden import TOKENS
from engine import BOUND_F32_CACHE, relative_error
from numpy.typing import NDArray

import akunu

pytestmark = pytest.mark.oracle

N = 70
_MODULES = {
    "qwen35": ("qwen3_5", "Qwen3_5"),
    "qwen35moe": ("qwen3_5_moe", "Qwen3_5Moe"),
    "qwen3next": ("qwen3_next", "Qwen3Next"),
}


def weights_of_head(family: str) -> dict[str, NDArray[np.float32]]:
    """As transformers has them: experts in stacks."""
    weights = {
        name: head_models.numbers_of(name, shape)
        for name, shape in head_models.shapes_of_head(family).items()
    }
    of_experts = {name: data for name, data in weights.items() if ".experts." in name}
    if family != "qwen3next":
        return weights
    begin = head_models.LAYER + "mlp.experts."

    def stack(kind: str) -> NDArray[np.float32]:
        n = head_models.N_EXPERTS
        return np.stack([of_experts[f"{begin}{i}.{kind}_proj.weight"] for i in range(n)])

    return {name: data for name, data in weights.items() if name not in of_experts} | {
        begin + "gate_up_proj": np.concatenate([stack("gate"), stack("up")], axis=1),
        begin + "down_proj": stack("down"),
    }


def reference(folder: Path, family: str, tokens: list[int]) -> NDArray[np.float32]:
    """Logits of the head, a row for each token but the last."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    module, prefix = _MODULES[family]
    qwen: Any = __import__(f"transformers.models.{module}.modeling_{module}", fromlist=["x"])
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    config = model.config.get_text_config()
    attends = config.layer_types.index("full_attention")
    layer = getattr(qwen, prefix + "DecoderLayer")(config, attends).eval()
    weights = {name: torch.from_numpy(data) for name, data in weights_of_head(family).items()}
    begin = head_models.LAYER
    layer.load_state_dict({k[len(begin) :]: v for k, v in weights.items() if k.startswith(begin)})

    def norm(x: Any, name: str) -> Any:
        module = getattr(qwen, prefix + "RMSNorm")(config.hidden_size, eps=config.rms_norm_eps)
        module.load_state_dict({"weight": weights[f"mtp.{name}.weight"]})
        return module(x)

    ids = torch.tensor([tokens])
    with torch.no_grad():
        hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
        embedded = model.get_input_embeddings()(ids[:, 1:])
        n = hidden.shape[1]
        joined = torch.cat(
            [norm(embedded, "pre_fc_norm_embedding"), norm(hidden, "pre_fc_norm_hidden")], -1
        )
        x = joined @ weights["mtp.fc.weight"].T
        positions = torch.arange(n)[None]
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        angles = model.model.rotary_emb(x, positions)
        out = layer(x, position_embeddings=angles, attention_mask=mask, position_ids=positions)
        out = out[0] if isinstance(out, tuple) else out
        logits: NDArray[np.float32] = model.lm_head(norm(out, "norm"))[0].numpy()
        return logits


def computed(path: Path, tokens: list[int], device: str = "cpu") -> NDArray[np.float32]:
    with akunu.load(path, device=device, kv_type="f32", prediction_head=True) as model:
        return model._native.logits_ahead(np.array(tokens, np.uint32))


@pytest.mark.parametrize("family", head_models.FAMILIES)
def test_logits_of_a_directory_are_those_of_the_reference(family: str, tmp_path: Path) -> None:
    folder = head_models.write(tmp_path / "model", family)
    expected = reference(folder, family, TOKENS)
    assert relative_error(computed(folder, TOKENS), expected) <= BOUND_F32_CACHE


@pytest.mark.parametrize("family", head_models.FAMILIES)
def test_logits_of_a_file_are_those_of_llama_cpp(family: str, peer: str, tmp_path: Path) -> None:
    folder = head_models.write(tmp_path / "model", family)
    path = head_models.write_gguf(folder, family)
    expected = peer_head.asked(peer, path, TOKENS[:N])
    assert relative_error(computed(path, TOKENS[:N]), expected) <= BOUND_F32_CACHE
    # The bound is not met by chance: the model's own logits are far from the head's.
    with akunu.load(path) as model:
        assert relative_error(model.logits(TOKENS[: N - 1]), expected) > 0.1
