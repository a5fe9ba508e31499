"""A small random Qwen2-VL, written by transformers.

path = write(tmp_path / "model", "fours")
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from dense_golden import VOCAB
from image_models import write_tokenizer

SPECIAL: Final = (
    "<|im_end|>",
    "<|im_start|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
)
IMAGE: Final = VOCAB - 1
TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for content in message['content'] %}{% if content['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif 'text' in content %}"
    "{{ content['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TEXT: Final[dict[str, Any]] = {
    "vocab_size": VOCAB,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 0.03,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]},
    "bos_token_id": None,
    "eos_token_id": VOCAB - len(SPECIAL),
    "tie_word_embeddings": False,
}
# 4 patches become a token, and 9 do.
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "fours": {
        "depth": 3,
        "embed_dim": 64,
        "num_heads": 4,
        "patch_size": 4,
        "spatial_merge_size": 2,
    },
    "nines": {
        "depth": 3,
        "embed_dim": 72,
        "num_heads": 3,
        "patch_size": 6,
        "spatial_merge_size": 3,
    },
}
LIMITS: Final = {"min_pixels": 1500, "max_pixels": 5000}


def write(folder: Path, kind: str) -> Path:
    """Write the directory; every number of the model is random."""
    torch.manual_seed(7)
    config = transformers.Qwen2VLConfig(
        text_config=_TEXT,
        vision_config={**SHAPES[kind], "hidden_size": _TEXT["hidden_size"]},
        image_token_id=IMAGE,
        vision_start_token_id=VOCAB - 3,
        vision_end_token_id=VOCAB - 2,
    )
    model = transformers.Qwen2VLForConditionalGeneration(config).float()
    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.dim() > 1:
                each.normal_(std=each[0].numel() ** -0.5)
            elif name.endswith("bias"):
                each.normal_(std=0.2)
            else:
                each.normal_(mean=1, std=0.2)
    model.save_pretrained(folder)
    write_tokenizer(folder, SPECIAL, TEMPLATE)
    settings = {
        **LIMITS,
        "image_mean": [0.5, 0.4, 0.6],
        "image_std": [0.5, 0.3, 0.2],
        "patch_size": SHAPES[kind]["patch_size"],
        "merge_size": SHAPES[kind]["spatial_merge_size"],
        "temporal_patch_size": 2,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder
