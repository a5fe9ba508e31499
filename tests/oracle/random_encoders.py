"""Small random encoders of transformers, saved as directories with a tokenizer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

VOCAB = len(em.TOKENS)
_SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "pad_token_id": 0,
}
_GROUPED: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True}
_ENDS: dict[str, Any] = {"bos_token_id": 2, "eos_token_id": 3}

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {"max_position_embeddings": 300}),
    "roberta": ("Roberta", {"max_position_embeddings": 303, "pad_token_id": 1}),
    "xlm-roberta": ("XLMRoberta", {"max_position_embeddings": 303, "pad_token_id": 1}),
    "nomic": ("NomicBert", {"max_position_embeddings": 300}),
    "modernbert": (
        "ModernBert",
        {"max_position_embeddings": 300, "local_attention": 32, **_ENDS},
    ),
    "eurobert": ("EuroBert", {"max_position_embeddings": 300, **_GROUPED, **_ENDS}),
    "qwen3": ("Qwen3", {"max_position_embeddings": 300, **_GROUPED, **_ENDS}),
    "gemma3": (
        "Gemma3Text",
        {
            "max_position_embeddings": 300,
            "sliding_window": 32,
            "use_bidirectional_attention": True,
            "query_pre_attn_scalar": 16,
            **_GROUPED,
            **_ENDS,
        },
    ),
}


def model_of(family: str, task: str = "Model", **more: Any) -> Any:
    """A model in evaluation mode, its weights large enough that every part matters."""
    name, options = CONFIGS[family]
    config_class = getattr(transformers, f"{name}Config")
    config = config_class(**{**_SIZES, **options, **more}, attn_implementation="eager")
    torch.manual_seed(len(family))
    model = getattr(transformers, name + task)(config).eval()
    with torch.no_grad():
        for at, weight in model.named_parameters():
            if weight.ndim == 1 and at.endswith("weight"):
                weight.uniform_(0.5, 1.5) if family != "gemma3" else weight.uniform_(-0.5, 0.5)
            elif weight.ndim == 1:
                weight.normal_(0, 0.3)
            elif "embed" in at:
                weight.normal_(0, 0.5)
            else:
                weight.normal_(0, 1.5 / weight.shape[1] ** 0.5)
    return model


def tokenizer_json() -> dict[str, Any]:
    """BERT's, with its template of pairs."""
    described: dict[str, Any] = em.tokenizer_json(em.TOKENS)  # type: ignore[assignment]
    single = described["post_processor"]["single"]
    second = {"Sequence": {"id": "B", "type_id": 1}}
    end = {"SpecialToken": {"id": "[SEP]", "type_id": 1}}
    described["post_processor"] |= {
        "pair": [*single, second, end],
        "special_tokens": {
            name: {"id": name, "ids": [em.TOKENS.index(name)], "tokens": [name]}
            for name in ("[CLS]", "[SEP]")
        },
    }
    described["model"] |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    for token in described["added_tokens"]:
        token |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    described |= {"version": "1.0", "truncation": None, "padding": None, "decoder": None}
    described["normalizer"] |= {
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
    }
    return described


def save(folder: Path, model: Any, tokenizer: dict[str, Any] | None = None) -> Path:
    """Save a model and a tokenizer."""
    model.save_pretrained(folder)
    text = json.dumps(tokenizer or tokenizer_json())
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    names = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"}
    settings: dict[str, Any] = {f"{key}_token": name for key, name in names.items()}
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast"}
    settings |= {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
