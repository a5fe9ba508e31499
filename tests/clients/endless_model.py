"""The packaged model as judges want one: it seldom ends a text, and it can fill in."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "e2e"))  # edited_model

# What akunu takes for the end of a turn; spelled in another way, these are tokens like all others.
ENDS = {"<|im_end|>": "<|im_over|>", "<|endoftext|>": "<|textover|>"}
FILLING_IN = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]


def endless_model(target: Path) -> Path:
    """Write the model to `target`, and return that; three unused tokens become others."""
    import gguf
    from edited_model import edited

    import akunu

    ember = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
    fields = gguf.GGUFReader(ember).fields
    names = [ENDS.get(each, each) for each in fields["tokenizer.ggml.tokens"].contents()]
    merges = fields["tokenizer.ggml.merges"].contents()
    replaced = set(names[-3:])
    names[-3:] = FILLING_IN
    template = fields["tokenizer.chat_template"].contents()
    for name, other in ENDS.items():
        template = template.replace(name, other)
    changes = {
        "tokenizer.ggml.tokens": names,
        "tokenizer.ggml.merges": [e for e in merges if e.replace(" ", "") not in replaced],
        "tokenizer.ggml.eos_token_id": len(names) - 4,
        "tokenizer.chat_template": template,
    }
    return edited(ember, target, changes)
