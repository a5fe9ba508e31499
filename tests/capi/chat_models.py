"""GGUF files that hold a chat template and a small vocabulary: as much as a conversation needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from akunu.tokenizers.pretokenizers import byte_alphabet

# Names of tokens that templates write; each becomes one, whatever the template.
CONTROL = (
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|begin_of_text|>", "<|eot_id|>",
    "<|start_header_id|>", "<|end_header_id|>", "<start_of_turn>", "<end_of_turn>", "[INST]",
    "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<|system|>", "<|user|>", "<|assistant|>",
    "<|end|>", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>",
    "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<|start|>", "<|message|>",
    "<|channel|>", "<|return|>", "<|im_system|>", "<|im_user|>", "<|im_assistant|>",
    "<|im_middle|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>",
)  # fmt: skip


def write_chat_model(path: Path, template: str) -> Path:
    """Write a file with a vocabulary of single bytes, the control tokens, and this template."""
    gguf = pytest.importorskip("gguf")
    tokens = [*byte_alphabet(), "he", "ll", *CONTROL]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    n_bytes = len(tokens) - len(CONTROL)
    writer.add_token_types([1] * n_bytes + [3] * len(CONTROL))
    writer.add_token_merges(["h e", "l l"])
    writer.add_bos_token_id(tokens.index("<s>"))
    writer.add_eos_token_id(tokens.index("</s>"))
    writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path
