"""A small random Gemma 3 that reads images, and images and messages for it.

    folder = write(tmp_path / "model")
    messages = conversation(png(drawn(1)))

Tensors have the names of the published directories.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import gguf
import hf_directory
import numpy as np
from dense_golden import TOKENS, VOCAB, tensor_of
from numpy.typing import NDArray
from PIL import Image

from akunu.images.reader import ImageReader

SIDE, PATCH, PER_SIDE = 112, 14, 4  # 8 x 8 patches, 4 of which become one of 16 tokens
N_TOKENS = PER_SIDE**2
IMAGE, BOI, EOI = VOCAB - 1, VOCAB - 2, VOCAB - 3
DIM, N_LAYERS, HEAD_DIM, FFN_DIM = 96, 4, 32, 160
VISION: Final[dict[str, Any]] = {
    "model_type": "siglip_vision_model",
    "hidden_size": 144,
    "intermediate_size": 200,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": PATCH,
    "vision_use_head": False,
}
TEXT: Final[dict[str, Any]] = {
    "model_type": "gemma3_text",
    "vocab_size": VOCAB,
    "hidden_size": DIM,
    "intermediate_size": FFN_DIM,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "num_hidden_layers": N_LAYERS,
    "max_position_embeddings": 4096,
    "bos_token_id": VOCAB - 5,
    "eos_token_id": VOCAB - 5,
    "pad_token_id": None,
    "sliding_window": 24,
    "query_pre_attn_scalar": 32,
    "head_dim": HEAD_DIM,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}
OF_IMAGES: Final[dict[str, Any]] = {
    "mm_tokens_per_image": N_TOKENS,
    "boi_token_index": BOI,
    "eoi_token_index": EOI,
}
SPECIAL: Final = (
    *("<end_of_turn>", "<start_of_turn>"),
    *("<end_of_image>", "<start_of_image>", "<image_soft_token>"),
)
TEMPLATE: Final = (
    "{% for message in messages %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' }}"
    "{% if message['content'] is string %}{{ message['content'] | trim }}"
    "{% else %}{% for item in message['content'] %}{% if item['type'] == 'image' %}"
    "{{ '<start_of_image>' }}{% elif item['type'] == 'text' %}{{ item['text'] | trim }}"
    "{% endif %}{% endfor %}{% endif %}{{ '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


def write(
    folder: Path,
    *,
    config: dict[str, Any] | None = None,
    has_encoder: bool = True,
    stored: Callable[[str, NDArray[np.float32]], NDArray[np.float32]] = lambda _, tensor: tensor,
) -> Path:
    """Write the directory; `config`: keys of config.json to replace."""
    folder.mkdir(parents=True, exist_ok=True)
    whole: dict[str, Any] = {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "text_config": TEXT,
        "vision_config": VISION,
        "image_token_index": IMAGE,
        **OF_IMAGES,
        **(config or {}),
    }
    (folder / "config.json").write_text(json.dumps(whole))
    shapes = {**_text_shapes(), **(_encoder_shapes() if has_encoder else {})}
    numbers = {name: stored(name, tensor_of(name, shape)) for name, shape in shapes.items()}
    tensors = {name: ("F32", each.shape, each.tobytes()) for name, each in numbers.items()}
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    write_tokenizer(folder)
    return folder


def _text_shapes() -> dict[str, tuple[int, ...]]:
    queries, keys = TEXT["num_attention_heads"] * HEAD_DIM, TEXT["num_key_value_heads"] * HEAD_DIM
    of_layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (queries, DIM),
        "self_attn.k_proj": (keys, DIM),
        "self_attn.v_proj": (keys, DIM),
        "self_attn.o_proj": (DIM, queries),
        "self_attn.q_norm": (HEAD_DIM,),
        "self_attn.k_norm": (HEAD_DIM,),
        "mlp.gate_proj": (FFN_DIM, DIM),
        "mlp.up_proj": (FFN_DIM, DIM),
        "mlp.down_proj": (DIM, FFN_DIM),
        "input_layernorm": (DIM,),
        "post_attention_layernorm": (DIM,),
        "pre_feedforward_layernorm": (DIM,),
        "post_feedforward_layernorm": (DIM,),
    }
    model = "language_model.model"
    return {
        f"{model}.embed_tokens.weight": (VOCAB, DIM),
        f"{model}.norm.weight": (DIM,),
        **{
            f"{model}.layers.{layer}.{name}.weight": shape
            for layer in range(N_LAYERS)
            for name, shape in of_layer.items()
        },
    }


def _encoder_shapes() -> dict[str, tuple[int, ...]]:
    dim, ffn_dim = VISION["hidden_size"], VISION["intermediate_size"]
    tower = "vision_tower.vision_model"
    shapes: dict[str, tuple[int, ...]] = {
        f"{tower}.embeddings.patch_embedding.weight": (dim, 3, PATCH, PATCH),
        f"{tower}.embeddings.patch_embedding.bias": (dim,),
        f"{tower}.embeddings.position_embedding.weight": ((SIDE // PATCH) ** 2, dim),
        f"{tower}.post_layernorm.weight": (dim,),
        f"{tower}.post_layernorm.bias": (dim,),
        "multi_modal_projector.mm_input_projection_weight": (dim, DIM),
        "multi_modal_projector.mm_soft_emb_norm.weight": (dim,),
    }
    of_layer = {
        **{f"self_attn.{letter}_proj": (dim, dim) for letter in ("q", "k", "v", "out")},
        "layer_norm1": (dim,),
        "layer_norm2": (dim,),
        "mlp.fc1": (ffn_dim, dim),
        "mlp.fc2": (dim, ffn_dim),
    }
    for layer in range(VISION["num_hidden_layers"]):
        for name, shape in of_layer.items():
            shapes[f"{tower}.encoder.layers.{layer}.{name}.weight"] = shape
            shapes[f"{tower}.encoder.layers.{layer}.{name}.bias"] = shape[:1]
    return shapes


def write_mmproj(
    path: Path,
    *,
    dtype: type[np.floating[Any]] = np.float32,
    swaps_ffn: bool = False,
    projector: str = "gemma3",
    more: str | None = None,
    **numbers: object,
) -> Path:
    """Write the encoder as llama.cpp's converter does; `swaps_ffn`: as its first files had it.

    `more`: the name of one more tensor. `numbers`: what takes the place of the model's own.
    """
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, VISION["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(projector)
    all_numbers = {
        "projection_dim": DIM,
        "image_size": SIDE,
        "patch_size": PATCH,
        "embedding_length": VISION["hidden_size"],
        "feed_forward_length": VISION["intermediate_size"],
        "block_count": VISION["num_hidden_layers"],
        "head_count": VISION["num_attention_heads"],
        "attention_layernorm_eps": 1e-6,
        "projector_scale_factor": SIDE // PATCH // PER_SIDE,
        "use_gelu": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        **numbers,
    }
    for name, value in all_numbers.items():
        getattr(writer, f"add_vision_{name}")(value)
    if more is not None:
        writer.add_tensor(more, np.ones(4, np.float32))
    for name, shape in _encoder_shapes().items():
        tensor = tensor_of(name, shape)
        if "soft_emb_norm" in name:
            tensor = tensor + np.float32(1)
        found = names.get_name(name.replace("_weight", ".weight"), (".weight", ".bias"))
        assert found is not None
        if swaps_ffn and "ffn_" in found:
            found = found.replace("up", "down") if "up" in found else found.replace("down", "up")
        writer.add_tensor(found, tensor.astype(dtype) if tensor.ndim > 1 else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_tokenizer(
    folder: Path, special: Sequence[str] = SPECIAL, template: str = TEMPLATE
) -> None:
    """As the other tests have it; the family's own tokens are at the end, the first ends a text."""
    first = VOCAB - len(special)
    hf_directory.write_tokenizer(folder, first + 1)
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text())
    (end,) = whole["added_tokens"]
    assert end["id"] == first
    added = enumerate(special, first)
    whole["added_tokens"] = [{**end, "id": index, "content": name} for index, name in added]
    path.write_text(json.dumps(whole))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": special[0], "chat_template": template})
    )


def drawn(seed: int, size: tuple[int, int] = (90, 130)) -> Image.Image:
    """An image of large squares; another one for each seed."""
    numbers = np.random.default_rng(seed).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    return Image.fromarray(numbers).resize(size, Image.Resampling.NEAREST)


def encoded(image: Image.Image, file_format: str = "PNG", **options: Any) -> bytes:
    """The file that an image is."""
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def url_of(image: Image.Image) -> str:
    """The data: URL that an image is."""
    return "data:image/png;base64," + base64.b64encode(encoded(image)).decode()


def question(*images: object, text: str = "What is this?") -> dict[str, Any]:
    """A message with the first image in front of a text, and the others behind it."""
    parts = [{"type": "image", "image": each} for each in images]
    return {"role": "user", "content": [*parts[:1], {"type": "text", "text": text}, *parts[1:]]}


def text(*n_between: int) -> list[int]:
    """Tokens with an image behind each so many, and some at the end."""
    tokens, at = [], 0
    for n in n_between:
        tokens += [*TOKENS[at : at + n], BOI, *[IMAGE] * N_TOKENS, EOI]
        at += n
    return tokens + TOKENS[at : at + 7]


def placed(model: Any, tokens: list[int], images: list[Image.Image]) -> Any:
    reader = ImageReader(model._native, model.path, model.tokenizer)
    places = reader.places(tokens, [reader.open(each) for each in images])
    return [(first, reader.read(tile)) for first, tile in places]
