"""A small random SmolVLM that reads images.

    folder = write(tmp_path / "model")
    messages = [question(drawn(1))]

Tensors have the names of the published directories.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import gguf
import hf_directory
from dense_golden import VOCAB, tensor_of
from image_models import write_tokenizer

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES, is_quantised

DIM, N_LAYERS, FFN_DIM = 96, 2, 160
N_HEADS, N_KV_HEADS, HEAD_DIM = 6, 2, 16
ROWS = 4  # of tiles, at most
SPECIAL: Final = (
    *("<end_of_utterance>", "<|im_start|>", "<fake_token_around_image>", "<global-img>"),
    *(f"<row_{row}_col_{column}>" for row in range(1, ROWS + 1) for column in range(1, ROWS + 1)),
    "<image>",
)
IMAGE: Final = VOCAB - 1
TEMPLATE: Final = (
    "<|im_start|>{% for message in messages %}"
    "{{ message['role'] | capitalize }}{% if message['content'][0]['type'] == 'image' %}{{ ':' }}"
    "{% else %}{{ ': ' }}{% endif %}{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for line in message['content'] %}{% if line['type'] == 'text' %}"
    "{{ line['text'] }}{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}"
    "{% endif %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
TEXT: Final[dict[str, Any]] = {
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_size": DIM,
    "intermediate_size": FFN_DIM,
    "num_attention_heads": N_HEADS,
    "num_key_value_heads": N_KV_HEADS,
    "num_hidden_layers": N_LAYERS,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 0.03,
    "rope_theta": 10000.0,
    "bos_token_id": None,
    "eos_token_id": VOCAB - len(SPECIAL),
    "pad_token_id": None,
    "tie_word_embeddings": False,
}
_TOWER: Final[dict[str, Any]] = {
    "hidden_size": 144,
    "intermediate_size": 200,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
}
# 8 x 8 patches of which 4 become a token, and 6 x 6 of which 9 do.
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "smolvlm": {
        "vision_config": {**_TOWER, "image_size": 56, "patch_size": 7},
        "scale_factor": 2,
    },
    "idefics3": {
        "vision_config": {**_TOWER, "image_size": 48, "patch_size": 8, "hidden_size": 64},
        "scale_factor": 3,
    },
}


def side_of(kind: str) -> int:
    """The pixels of a tile's side."""
    side: int = SHAPES[kind]["vision_config"]["image_size"]
    return side


def n_tokens_of(kind: str) -> int:
    """The tokens of a tile."""
    vision = SHAPES[kind]["vision_config"]
    side: int = vision["image_size"] // vision["patch_size"] // SHAPES[kind]["scale_factor"]
    return side * side


def write_settings(folder: Path, kind: str, **changes: object) -> None:
    """Write preprocessor_config.json; `changes`: what takes the place of the usual settings."""
    side = side_of(kind)
    settings = {
        "do_convert_rgb": True,
        "do_image_splitting": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5, 0.4, 0.6],
        "image_std": [0.5, 0.3, 0.2],
        "max_image_size": {"longest_edge": side},
        "resample": 1,
        "rescale_factor": 1 / 255,
        "size": {"longest_edge": ROWS * side},
        **changes,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))


def write(folder: Path, kind: str = "smolvlm", **changes: object) -> Path:
    """Write the directory; `changes`: keys of config.json to replace."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": kind,
        "text_config": TEXT,
        **SHAPES[kind],
        "image_token_id": IMAGE,
        "tie_word_embeddings": False,
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {**_text_shapes(), **_encoder_shapes(kind)}
    numbers = {name: tensor_of(name, shape) for name, shape in shapes.items()}
    tensors = {name: ("F32", each.shape, each.tobytes()) for name, each in numbers.items()}
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    write_tokenizer(folder, SPECIAL, TEMPLATE)
    write_settings(folder, kind)
    return folder


def write_gguf(folder: Path, made: Path, kind: str = "smolvlm") -> None:
    """Write a directory's text model and its encoder as text.gguf and mmproj.gguf.

    Its settings must be those that files take for granted: numbers around 0.5.
    """
    source = DirectorySource(folder)
    kept = {plan.name: plan.type_name for plan in source.plans if is_quantised(plan)}
    wishes = Wishes(recipe=RECIPES["F32"], tensor_types=kept)
    Quantization(source, wishes).write(made / "text.gguf")
    vision = SHAPES[kind]["vision_config"]
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, vision["num_hidden_layers"])
    writer = gguf.GGUFWriter(made / "mmproj.gguf", "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type("idefics3")
    for name, value in {
        "projection_dim": DIM,
        "image_size": vision["image_size"],
        "patch_size": vision["patch_size"],
        "embedding_length": vision["hidden_size"],
        "feed_forward_length": vision["intermediate_size"],
        "block_count": vision["num_hidden_layers"],
        "head_count": vision["num_attention_heads"],
        "attention_layernorm_eps": 1e-6,
        "projector_scale_factor": SHAPES[kind]["scale_factor"],
        "preproc_image_size": ROWS * vision["image_size"],
        "use_gelu": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }.items():
        getattr(writer, f"add_vision_{name}")(value)
    for name, shape in _encoder_shapes(kind).items():
        found = names.get_name(name, (".weight", ".bias"))
        assert found is not None
        writer.add_tensor(found, tensor_of(name, shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _text_shapes() -> dict[str, tuple[int, ...]]:
    queries, keys = N_HEADS * HEAD_DIM, N_KV_HEADS * HEAD_DIM
    of_layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (queries, DIM),
        "self_attn.k_proj": (keys, DIM),
        "self_attn.v_proj": (keys, DIM),
        "self_attn.o_proj": (DIM, queries),
        "mlp.gate_proj": (FFN_DIM, DIM),
        "mlp.up_proj": (FFN_DIM, DIM),
        "mlp.down_proj": (DIM, FFN_DIM),
        "input_layernorm": (DIM,),
        "post_attention_layernorm": (DIM,),
    }
    text = "model.text_model"
    shapes: dict[str, tuple[int, ...]] = {
        f"{text}.embed_tokens.weight": (VOCAB, DIM),
        f"{text}.norm.weight": (DIM,),
        "lm_head.weight": (VOCAB, DIM),
    }
    for layer in range(N_LAYERS):
        for name, shape in of_layer.items():
            shapes[f"{text}.layers.{layer}.{name}.weight"] = shape
    return shapes


def _encoder_shapes(kind: str) -> dict[str, tuple[int, ...]]:
    vision, scale = SHAPES[kind]["vision_config"], SHAPES[kind]["scale_factor"]
    dim, ffn_dim, patch = (
        vision[key] for key in ("hidden_size", "intermediate_size", "patch_size")
    )
    n_patches = (vision["image_size"] // patch) ** 2
    tower = "model.vision_model"
    shapes: dict[str, tuple[int, ...]] = {
        f"{tower}.embeddings.patch_embedding.weight": (dim, 3, patch, patch),
        f"{tower}.embeddings.patch_embedding.bias": (dim,),
        f"{tower}.embeddings.position_embedding.weight": (n_patches, dim),
        f"{tower}.post_layernorm.weight": (dim,),
        f"{tower}.post_layernorm.bias": (dim,),
        "model.connector.modality_projection.proj.weight": (DIM, dim * scale * scale),
    }
    of_layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (dim, dim),
        "self_attn.k_proj": (dim, dim),
        "self_attn.v_proj": (dim, dim),
        "self_attn.out_proj": (dim, dim),
        "layer_norm1": (dim,),
        "layer_norm2": (dim,),
        "mlp.fc1": (ffn_dim, dim),
        "mlp.fc2": (dim, ffn_dim),
    }
    for layer in range(vision["num_hidden_layers"]):
        for name, shape in of_layer.items():
            shapes[f"{tower}.encoder.layers.{layer}.{name}.weight"] = shape
            shapes[f"{tower}.encoder.layers.{layer}.{name}.bias"] = shape[:1]
    return shapes
