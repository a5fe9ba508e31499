"""Checkpoint to model files: `python -m ember.export CHECKPOINT TOKENIZER OUT`.

Writes ember-f32.gguf, ember-f16.gguf, ember-q8_0.gguf and ember-q4_0.gguf, and with `--hf` a
Hugging Face directory that transformers loads as Qwen3ForCausalLM.
"""

import argparse
import json
from pathlib import Path

import gguf
from torch import Tensor

from . import checkpoint
from .chat_template import CHAT_TEMPLATE
from .model import Shape
from .tokenizer import END_OF_TEXT, SPECIAL, TURN_END

FORMATS = {
    "f32": gguf.GGMLQuantizationType.F32,
    "f16": gguf.GGMLQuantizationType.F16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}
FILE_TYPES = {
    "f32": gguf.LlamaFileType.ALL_F32,
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
}
DESCRIPTION = (
    "A very small model that ships with akunu: small sums, spelling, tables, dates, "
    "JSON and tool calls. A demonstration and an instrument, not a capable assistant."
)
# ours: (the name in GGUF, the name in Hugging Face), inside a layer
LAYER_NAMES = {
    "attention_norm.weight": ("attn_norm.weight", "input_layernorm.weight"),
    "query": ("attn_q.weight", "self_attn.q_proj.weight"),
    "key": ("attn_k.weight", "self_attn.k_proj.weight"),
    "value": ("attn_v.weight", "self_attn.v_proj.weight"),
    "query_norm.weight": ("attn_q_norm.weight", "self_attn.q_norm.weight"),
    "key_norm.weight": ("attn_k_norm.weight", "self_attn.k_norm.weight"),
    "attention_out": ("attn_output.weight", "self_attn.o_proj.weight"),
    "ffn_norm.weight": ("ffn_norm.weight", "post_attention_layernorm.weight"),
    "gate": ("ffn_gate.weight", "mlp.gate_proj.weight"),
    "up": ("ffn_up.weight", "mlp.up_proj.weight"),
    "down": ("ffn_down.weight", "mlp.down_proj.weight"),
}


def names(ours: str) -> tuple[str, str]:
    """A parameter's name in GGUF and in a Hugging Face directory."""
    if ours == "embedding":
        return "token_embd.weight", "model.embed_tokens.weight"
    if ours == "norm.weight":
        return "output_norm.weight", "model.norm.weight"
    _, layer, rest = ours.split(".", 2)
    in_gguf, in_hf = LAYER_NAMES[rest]
    return f"blk.{layer}.{in_gguf}", f"model.layers.{layer}.{in_hf}"


def write_gguf(
    path: Path, weights: dict[str, Tensor], shape: Shape, tokenizer: dict, stored: str
) -> None:
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name("Ember")
    writer.add_description(DESCRIPTION)
    writer.add_license("Apache-2.0")
    writer.add_languages(["en"])
    writer.add_file_type(FILE_TYPES[stored])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.dim)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.ffn_dim)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_sampling_temp(0.0)
    _add_tokenizer(writer, tokenizer)
    kind = FORMATS[stored]
    for ours, weight in weights.items():
        values = weight.float().numpy()
        of_this = kind if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(values, of_this)
        writer.add_tensor(names(ours)[0], data, raw_dtype=of_this)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: dict) -> None:
    vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__)
    types = [gguf.TokenType.CONTROL if t in SPECIAL else gguf.TokenType.NORMAL for t in vocabulary]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(vocabulary)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(TURN_END)
    writer.add_pad_token_id(END_OF_TEXT)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def write_hf(folder: Path, weights: dict[str, Tensor], shape: Shape, tokenizer: dict) -> None:
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": TURN_END,
        "pad_token_id": END_OF_TEXT,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.dim,
        "intermediate_size": shape.ffn_dim,
        "max_position_embeddings": shape.context,
        "num_attention_heads": shape.n_heads,
        "num_hidden_layers": shape.n_layers,
        "num_key_value_heads": shape.n_kv_heads,
        "rms_norm_eps": shape.norm_epsilon,
        "rope_theta": shape.rope_base,
        "tie_word_embeddings": True,
        "dtype": "float32",
        "use_sliding_window": False,
        "vocab_size": shape.vocabulary,
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": SPECIAL[TURN_END],
        "pad_token": SPECIAL[END_OF_TEXT],
        "model_max_length": shape.context,
        "add_bos_token": False,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    generation = {"eos_token_id": TURN_END, "pad_token_id": END_OF_TEXT, "do_sample": False}
    for name, content in (
        ("config", config),
        ("tokenizer", tokenizer),
        ("generation_config", generation),
        ("tokenizer_config", tokenizer_config),
    ):
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    tensors = {names(ours)[1]: weight.float().contiguous() for ours, weight in weights.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="folder with ember.ckpt.00 …")
    parser.add_argument("tokenizer", type=Path, help="tokenizer.json")
    parser.add_argument("out", type=Path)
    parser.add_argument("--hf", action="store_true", help="write OUT/hf as well")
    options = parser.parse_args()
    state = checkpoint.load(options.checkpoint)
    shape, weights = Shape(**state["shape"]), state["model"]
    tokenizer = json.loads(options.tokenizer.read_text(encoding="utf-8"))
    options.out.mkdir(parents=True, exist_ok=True)
    for stored in FORMATS:
        path = options.out / f"ember-{stored}.gguf"
        unfinished = path.with_suffix(".tmp")
        write_gguf(unfinished, weights, shape, tokenizer, stored)
        unfinished.replace(path)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    if options.hf:
        write_hf(options.out / "hf", weights, shape, tokenizer)


if __name__ == "__main__":
    main()
