"""Random adapters, as peft makes and saves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def adapted(model: Any, folder: Path, **config: Any) -> Any:
    """The model with a random adapter, saved to `folder`. `config`: of peft's LoraConfig."""
    import peft
    import torch

    torch.manual_seed(3)
    chosen = peft.LoraConfig(r=3, lora_alpha=7, task_type="CAUSAL_LM", **config)
    result = peft.get_peft_model(model, chosen).eval()
    with torch.no_grad():
        for key, parameter in result.named_parameters():
            if "lora_" in key:
                parameter.normal_(std=0.2)
    result.save_pretrained(folder)
    return result


def without_patterns(folder: Path) -> Path:
    """The adapter without patterns of experts, which peft writes of families that may have some."""
    path = folder / "adapter_config.json"
    none = {"rank_pattern": {}, "alpha_pattern": {}, "target_parameters": None}
    path.write_text(json.dumps(json.loads(path.read_text()) | none))
    return folder
