"""What a small random model of transformers is: its classes, its sizes, numbers of several."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "models"))

from dense_golden import VOCAB

CONTEXT = 512
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": VOCAB - 1,
    "eos_token_id": VOCAB - 1,
    "pad_token_id": None,
}
EPSILON: dict[str, Any] = {"rms_norm_eps": 0.03}
WIDE: dict[str, Any] = {"head_dim": 32}  # heads together wider than the residual


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family's classes of transformers, its numbers, and its name in GGUF."""

    name: str  # of its classes
    architecture: str
    options: dict[str, Any] = field(default_factory=dict)
    # Keys of config.json, each of which makes another model.
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    config: str = ""  # its class of numbers, where it is not `name`
    not_in_llama_cpp: str = ""  # what it does otherwise with this model, if anything
    without: tuple[str, ...] = ()  # those of SIZES that its config.json has not


GRANITE: dict[str, Any] = {
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.4,
    "attention_multiplier": 0.11,
    "logits_scaling": 5.0,
}
GRANITE_CHANGES: dict[str, dict[str, Any]] = {key: {key: 1.0} for key in GRANITE}

# A head is 24 numbers and 16 that rotate, a value 32: no two lengths are the same. The epsilon of
# the latents' norms is 1e-6 in transformers, whatever the model's is.
LATENT: dict[str, Any] = {
    "num_key_value_heads": 6,
    "kv_lora_rank": 64,
    "q_lora_rank": 96,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}
