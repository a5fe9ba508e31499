"""Which number format each tensor of a file gets.

A name as `llama-quantize` takes it (Q4_K_M, Q8_0, F16 ...) is a recipe: most matrices get its base
format, some are given more bits. The rules here are those of llama.cpp for dense models with up to
70 billion parameters, without an importance matrix; tests/oracle compares them with llama.cpp's own
choice. `pure` gives every matrix the base format.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.make_synthetic.shapes import Shape, Tensor

# Weights in a block.
BLOCK_SIZES: dict[str, int] = {
    "F32": 1, "F16": 1, "BF16": 1,
    "Q4_0": 32, "Q4_1": 32, "Q5_0": 32, "Q5_1": 32, "Q8_0": 32,
    "Q2_K": 256, "Q3_K": 256, "Q4_K": 256, "Q5_K": 256, "Q6_K": 256,
    "IQ4_NL": 32, "IQ4_XS": 256, "MXFP4": 32, "NVFP4": 64,
    "IQ2_XXS": 256, "IQ2_XS": 256, "IQ2_S": 256, "IQ3_XXS": 256, "IQ3_S": 256,
}  # fmt: skip

# Recipe: the base format and llama.cpp's number of the recipe, general.file_type.
RECIPES: dict[str, tuple[str, int]] = {
    "F32": ("F32", 0),
    "F16": ("F16", 1),
    "Q4_0": ("Q4_0", 2),
    "Q4_1": ("Q4_1", 3),
    "Q8_0": ("Q8_0", 7),
    "Q5_0": ("Q5_0", 8),
    "Q5_1": ("Q5_1", 9),
    "Q2_K": ("Q2_K", 10),
    "Q3_K_S": ("Q3_K", 11),
    "Q3_K_M": ("Q3_K", 12),
    "Q3_K_L": ("Q3_K", 13),
    "Q4_K_S": ("Q4_K", 14),
    "Q4_K_M": ("Q4_K", 15),
    "Q5_K_S": ("Q5_K", 16),
    "Q5_K_M": ("Q5_K", 17),
    "Q6_K": ("Q6_K", 18),
    "BF16": ("BF16", 32),
    "MXFP4_MOE": ("MXFP4", 38),
}
# Recipes whose rules are not here: every matrix gets the base format.
PURE: dict[str, tuple[str, int]] = {
    "IQ2_XXS": ("IQ2_XXS", 19),
    "IQ2_XS": ("IQ2_XS", 20),
    "IQ3_XXS": ("IQ3_XXS", 23),
    "IQ4_NL": ("IQ4_NL", 25),
    "IQ3_S": ("IQ3_S", 26),
    "IQ2_S": ("IQ2_S", 28),
    "IQ4_XS": ("IQ4_XS", 30),
    "MXFP4": ("MXFP4", 38),
    "NVFP4": ("NVFP4", 39),
}
ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}

# Where rows are no multiple of 256 weights.
_NARROWER = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


def recipe_name(name: str) -> str:
    """The recipe of that name, in any case and with llama.cpp's short names; or ValueError."""
    upper = name.upper()
    found = ALIASES.get(upper, upper)
    if found not in RECIPES and found not in PURE:
        known = ", ".join([*RECIPES, *PURE, *ALIASES])
        raise ValueError(f"there is no format {name!r}; there are {known}")
    return found


def base_and_number(recipe: str) -> tuple[str, int]:
    """The base format of a recipe, and llama.cpp's number of the recipe."""
    return RECIPES.get(recipe) or PURE[recipe]


def _gets_more_bits(layer: int, n_layers: int) -> bool:
    """The first and the last eighth of the layers, and every third between."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def _attention_v(recipe: str, base: str, layer: int, shape: Shape) -> str:
    shared_by_many = shape.n_heads // shape.n_kv_heads >= 4
    match recipe:
        case "Q2_K":
            return "Q4_K" if shared_by_many else "Q3_K"
        case "Q3_K_M":
            return "Q5_K" if layer < 2 else "Q4_K"
        case "Q3_K_L":
            return "Q5_K"
        case "Q4_K_S":
            return "Q5_K" if layer < 4 else base
        case "Q4_K_M" | "Q5_K_M":
            return "Q6_K" if _gets_more_bits(layer, shape.n_layers) else base
    return base


def _ffn_down(recipe: str, base: str, layer: int, shape: Shape) -> str:
    n_layers = shape.n_layers
    match recipe:
        case "Q2_K":
            return "Q3_K"
        case "Q3_K_M":
            return "Q5_K" if layer < n_layers // 16 else "Q4_K"
        case "Q3_K_L":
            return "Q5_K"
        case "Q4_K_S":
            return "Q5_K" if layer < n_layers // 8 else base
        case "Q4_K_M" | "Q5_K_M":
            return "Q6_K" if _gets_more_bits(layer, n_layers) else base
    return base


def _attention_output(recipe: str, base: str, layer: int, shape: Shape) -> str:
    return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(recipe, base)


_RULES: dict[str, Callable[[str, str, int, Shape], str]] = {
    "attn_v": _attention_v,
    "ffn_down": _ffn_down,
    "attn_output": _attention_output,
}


def tensor_format(recipe: str, tensor: Tensor, shape: Shape, *, pure: bool = False) -> str:
    """The number format of `tensor` in a file of that recipe.

    Vectors stay F32. Raises ValueError where no format fits the length of a row.
    """
    if not tensor.is_matrix or tensor.is_bias or "ffn_gate_inp" in tensor.name:
        return "F32"
    base = base_and_number(recipe)[0]
    if BLOCK_SIZES[base] == 1:
        return base
    if recipe == "MXFP4_MOE" and tensor.n_matrices == 1:
        base = "Q8_0"  # as in the published files of gpt-oss
    chosen = base
    if not pure and recipe not in PURE:
        if tensor.name == "output.weight" or (shape.tied and tensor.name == "token_embd.weight"):
            fits = tensor.k % BLOCK_SIZES[base] == 0
            chosen = "Q6_K" if base != "Q8_0" and fits else "Q8_0"
        elif tensor.name.startswith("blk."):
            _, layer, kind, _ = tensor.name.split(".")
            if kind.removesuffix("_exps") in _RULES:
                chosen = _RULES[kind.removesuffix("_exps")](recipe, base, int(layer), shape)
    if tensor.k % BLOCK_SIZES[chosen] != 0:
        chosen = _NARROWER.get(chosen, chosen)
    if tensor.k % BLOCK_SIZES[chosen] != 0:
        return "F16"
    return chosen
