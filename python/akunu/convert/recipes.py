"""Which number format each tensor of a quantised file gets, by llama.cpp's rules, as tables.

A recipe (`Q4_K_M`) gives most matrices its base format, and some more bits: those that a model's
text depends on more. The rules are those of llama.cpp, tests/oracle compares; which tensors of an
architecture they name follows from the tensors' names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from akunu import _core
from akunu.convert.gguf_writer import TensorPlan
from akunu.convert.sources import ModelSource
from akunu.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Recipe:
    """A name that llama-quantize knows, and MXFP4."""

    name: str
    base: str
    """The format of most matrices."""
    number: int
    """llama.cpp's number of it: general.file_type."""


RECIPES: Final = {
    name: Recipe(name, base, number)
    for name, base, number in (
        ("F32", "F32", 0),
        ("F16", "F16", 1),
        ("BF16", "BF16", 32),
        ("Q4_0", "Q4_0", 2),
        ("Q4_1", "Q4_1", 3),
        ("Q5_0", "Q5_0", 8),
        ("Q5_1", "Q5_1", 9),
        ("Q8_0", "Q8_0", 7),
        ("Q2_K_S", "Q2_K", 21),
        ("Q2_K", "Q2_K", 10),
        ("Q3_K_S", "Q3_K", 11),
        ("Q3_K_M", "Q3_K", 12),
        ("Q3_K_L", "Q3_K", 13),
        ("Q4_K_S", "Q4_K", 14),
        ("Q4_K_M", "Q4_K", 15),
        ("Q5_K_S", "Q5_K", 16),
        ("Q5_K_M", "Q5_K", 17),
        ("Q6_K", "Q6_K", 18),
        ("IQ4_NL", "IQ4_NL", 25),
        ("IQ4_XS", "IQ4_XS", 30),
        ("MXFP4_MOE", "Q8_0", 38),
        ("MXFP4", "MXFP4", 38),
    )
}
_SHORT: Final = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
_UNMADE: Final = re.compile(r"(IQ[123]|TQ|Q1_0|NVFP4|Q8_1|Q8_K)")

NARROWER: Final = {
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "IQ4_XS": "IQ4_NL",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
"""The replacement of a format with blocks of 256 for rows that are not a multiple of 256."""

_KEPT: Final = re.compile(
    r"_norm\.weight$|ffn_gate_inp(_shexp)?\.weight$|altup|laurel|per_layer_model_proj|"
    r"^(enc\.)?position_embd\.weight$|^token_types\.weight$|ssm_conv1d|shortconv\.conv|time_mix_|"
    r"attn_rel_b\.weight$"
)
"""Matrices that stay as they are: small, and models suffer from their errors."""


def recipe_named(name: str) -> Recipe:
    """Return the recipe of a name, in any case; ArgumentError for what there is not one of.

    >>> recipe_named("q4_k").name
    'Q4_K_M'
    """
    upper = name.upper()
    found = RECIPES.get(_SHORT.get(upper, upper))
    if found is not None:
        return found
    known = ", ".join(RECIPES)
    if _UNMADE.match(upper):
        raise ArgumentError(f"akunu does not write {name}; it writes {known}")
    raise ArgumentError(f"there is no type {name!r}; there are {known}")


def format_named(name: str, option: str) -> str:
    """Return the tensor format of a name, in any case; ArgumentError, which names the option.

    >>> format_named("q6_k", "--output-type")
    'Q6_K'
    """
    upper = name.upper()
    try:
        if _core.can_quantize(upper):
            return upper
    except ArgumentError:
        pass
    known = ", ".join(dict.fromkeys(recipe.base for recipe in RECIPES.values()))
    raise ArgumentError(f"{option} is {name!r}; tensors can be {known}")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the rules ask about a model."""

    n_layers: int
    n_encoder_layers: int
    """Layers of an encoder before the other layers."""
    n_experts: int
    shared_by: int
    """How many heads share a key and value."""
    is_70b: bool
    has_output: bool
    has_importance: bool

    @classmethod
    def of(cls, file: ModelSource, names: set[str], *, has_importance: bool) -> ModelShape:
        """Read it from a file's values; what is missing is as in the simplest model."""
        architecture = str(file.get("general.architecture", ""))

        def number(key: str, default: int) -> int:
            value = file.get(f"{architecture}.{key}", default)
            try:
                return int(value)
            except (TypeError, ValueError, OverflowError):  # one per layer, or no number
                return default

        heads = number("attention.head_count", 1)
        kv_heads = number("attention.head_count_kv", heads)
        n_layers = number("block_count", 0)
        return cls(
            n_layers=n_layers,
            n_encoder_layers=number("encoder.block_count", 0),
            n_experts=number("expert_count", 0),
            shared_by=max(heads // max(kv_heads, 1), 1),
            is_70b=architecture in ("llama", "qwen2") and n_layers == 80 and heads != kv_heads,
            has_output="output.weight" in names,
            has_importance=has_importance,
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """A matrix of a layer."""

    layer: int
    n_layers: int
    shape: ModelShape

    @property
    def gets_more_bits(self) -> bool:
        """The first and the last eighth of the layers, and every third between."""
        n, eighth = self.n_layers, self.n_layers // 8
        return self.layer < eighth or self.layer >= 7 * n // 8 or (self.layer - eighth) % 3 == 2

    def is_first(self, fraction: int) -> bool:
        return self.layer < self.n_layers // fraction


_Rule = Callable[[_Place], "str | None"]
"""The format that a matrix gets in place of the base, or None."""


def _always(name: str) -> _Rule:
    return lambda place: name


def _first(fraction: int, name: str, other: str | None = None) -> _Rule:
    return lambda place: name if place.is_first(fraction) else other


def _more_bits(name: str) -> _Rule:
    return lambda place: name if place.gets_more_bits else None


def _shared(name: str, other: str | None = None) -> _Rule:
    """Few rows that many heads share: their bits are cheap."""
    return lambda place: name if place.shape.shared_by >= 4 else other


def _below(layer: int, name: str, other: str | None = None) -> _Rule:
    return lambda place: name if place.layer < layer else other


def _first_without_importance(fraction: int, name: str) -> _Rule:
    return lambda p: name if p.is_first(fraction) and not p.shape.has_importance else None


def _first_with_importance(fraction: int, name: str) -> _Rule:
    return lambda p: name if p.is_first(fraction) and p.shape.has_importance else None


_RULES: Final[Mapping[str, Mapping[str, _Rule]]] = {
    "attn_v": {
        "Q2_K": _shared("Q4_K", "Q3_K"),
        "Q2_K_S": _shared("Q4_K"),
        "Q3_K_M": _below(2, "Q5_K", "Q4_K"),
        "Q3_K_L": _always("Q5_K"),
        "Q4_K_S": _below(4, "Q5_K"),
        "Q4_K_M": _more_bits("Q6_K"),
        "Q5_K_M": _more_bits("Q6_K"),
        "IQ4_NL": _shared("Q5_K"),
        "IQ4_XS": _shared("Q5_K"),
    },
    "attn_qkv": {
        "Q3_K_M": _always("Q4_K"),
        "Q3_K_L": _always("Q4_K"),
        "Q4_K_M": _always("Q5_K"),
        "Q5_K_M": _always("Q6_K"),
    },
    "attn_output": {
        "Q2_K": _always("Q3_K"),
        "Q3_K_M": _always("Q4_K"),
        "Q3_K_L": _always("Q5_K"),
    },
    "ffn_down": {
        "Q2_K": _always("Q3_K"),
        "Q2_K_S": _first(8, "Q4_K"),
        "Q3_K_M": _first(16, "Q5_K", "Q4_K"),
        "Q3_K_L": _always("Q5_K"),
        "Q4_K_S": _first(8, "Q5_K"),
        "Q4_K_M": _more_bits("Q6_K"),
        "Q5_K_M": _more_bits("Q6_K"),
        "IQ4_NL": _first_without_importance(8, "Q5_K"),
        "IQ4_XS": _first_without_importance(8, "Q5_K"),
        "Q4_0": _first_with_importance(8, "Q4_1"),
        "Q5_0": _first_with_importance(8, "Q5_1"),
    },
}
"""By the kind of matrix and the recipe."""

_RULED: Final = re.compile(
    r"(enc\.)?blk\.(\d+)\.(?:cross_)?((?:attn_v|attn_k)(?=\.)|attn_output|attn_qkv|ffn_down)"
)
"""Matrices that rules name; those of an encoder, and of attention to one, follow the same."""

_EIGHT_EXPERTS_OUTPUT: Final = frozenset(
    {"Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M", "IQ4_NL", "IQ4_XS"}
)


def is_quantised(tensor: TensorPlan) -> bool:
    """Whether recipes change a tensor: matrices do, but for a few small ones.

    >>> is_quantised(TensorPlan("blk.0.ffn_up.weight", (64, 32), "F16"))
    True
    """
    return (
        len(tensor.shape) >= 2
        and tensor.name.endswith("weight")
        and _KEPT.search(tensor.name) is None
    )


def chosen_format(
    tensor: TensorPlan,
    recipe: Recipe,
    shape: ModelShape,
    *,
    output_type: str | None = None,
    embedding_type: str | None = None,
) -> str:
    """Return the format that a matrix shall have, whether its rows are long enough or not."""
    base = recipe.base
    _, block, _ = _core.gguf_block(base)
    is_embedding = tensor.name in ("token_embd.weight", "per_layer_token_embd.weight")
    if tensor.name == "output.weight" or (
        not shape.has_output and tensor.name == "token_embd.weight"
    ):
        if output_type is not None:
            return output_type
        if embedding_type is not None and is_embedding:
            return embedding_type
        if block == 1:
            return base
        if recipe.number == RECIPES["MXFP4"].number or tensor.k % block != 0 or base == "Q8_0":
            return "Q8_0"
        return "Q6_K"
    if is_embedding and embedding_type is not None:
        return embedding_type
    if recipe.name == "MXFP4_MOE":
        return "MXFP4" if len(tensor.shape) > 2 else "Q8_0"
    found = _RULED.match(tensor.name)
    if found is None or block == 1:
        return base
    kind = found[3]
    n_layers = shape.n_layers if found[1] is None else shape.n_encoder_layers
    place = _Place(int(found[2]), n_layers, shape)
    if shape.n_experts == 8:
        if kind in ("attn_v", "attn_k"):
            return "Q8_0"
        if kind == "attn_output":
            return "Q5_K" if recipe.name in _EIGHT_EXPERTS_OUTPUT else base
    rule = _RULES.get(kind, {}).get(recipe.name)
    chosen = (rule(place) if rule is not None else None) or base
    if kind == "attn_v" and shape.is_70b and chosen in ("Q3_K", "Q4_K"):
        return "Q5_K"
    return chosen


def fitting_format(chosen: str, k: int) -> str:
    """Return a format whose blocks rows of `k` numbers are made of: `chosen`, or what replaces it.

    >>> fitting_format("Q4_K", 512), fitting_format("Q4_K", 576), fitting_format("Q4_K", 100)
    ('Q4_K', 'Q5_0', 'F16')
    """
    for name in (chosen, NARROWER.get(chosen)):
        if name is not None and k % _core.gguf_block(name)[1] == 0:
            return name
    return "F16"
