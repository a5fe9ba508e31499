"""A file of a given size: the errors of its tensors are measured in every format, then mixed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from akunu import _core
from akunu.convert.gguf_writer import TensorPlan
from akunu.convert.mixing import FORMATS, FormatChoice, Mixed, best_mix, dependence
from akunu.convert.quantizing import Importance, Quantization, Wishes, check_source
from akunu.convert.recipes import RECIPES, Recipe, is_quantised
from akunu.convert.sources import ModelSource
from akunu.errors import ArgumentError

_NUMBERS: Final = {
    "F16": 1, "Q2_K": 10, "Q3_K": 12, "Q4_0": 2, "Q4_K": 15, "Q5_0": 8, "Q5_1": 9, "Q5_K": 17,
    "Q6_K": 18, "Q8_0": 7,
}  # fmt: skip
"""What a file of this format alone, or nearly, has as its general.file_type."""


def wishes_for_size(
    file: ModelSource,
    wishes: Wishes,
    *,
    file_bytes: int | None = None,
    bits: float | None = None,
    importance: Mapping[str, Importance] | None = None,
    threads: int = 1,
    on_tensor: Callable[[int, int], None] | None = None,
) -> Wishes:
    """Return wishes with a format for each tensor: the mix of least error within a size.

    `file_bytes` is of the whole file, `bits` per weight of all tensors. Tensors that `wishes` name
    keep their format. `on_tensor` hears which of how many is measured. Raises ArgumentError where
    no mix is small enough, and what `Quantization` raises.
    """
    # What nothing can change: vectors, tensors with a format already, and all that is not data.
    plan = Quantization(file, replace(wishes, recipe=RECIPES["F16"], allow_requantize=True))
    free = [
        step
        for step in plan.steps
        if is_quantised(step.plan) and step.plan.name not in wishes.tensor_types
    ]
    numbers = sum(step.plan.rows * step.plan.k for step in plan.steps)
    if file_bytes is not None:
        fixed = plan.size - sum(_padded(step.plan, file) for step in free)
        most = file_bytes - fixed
    elif bits is not None:
        fixed = sum(step.plan.size for step in plan.steps) - sum(step.plan.size for step in free)
        most = int(bits * numbers / 8) - fixed
    else:
        raise ArgumentError("set a size, in bytes or bits")
    mixed = []
    for number, step in enumerate(free):
        if on_tensor is not None:
            on_tensor(number, len(free))
        check_source(step.source, file, "a mix", allow_requantize=wishes.allow_requantize)
        choices = []
        for name in (*FORMATS, "F16"):
            target = TensorPlan(step.plan.name, step.plan.shape, name)
            if target.k % _core.gguf_block(name)[1] != 0:
                continue
            squares, whole = _core.quantization_error(
                step.plan.name,
                step.source.data,
                step.source.type_name,
                (target.rows, target.k),
                name,
                importance=(importance or {}).get(step.plan.name),
                threads=threads,
            )
            error = dependence(step.plan.name) * squares / whole if whole > 0 else 0.0
            size = target.size if file_bytes is None else _padded(target, file)
            choices.append(FormatChoice(name, size, error))
        mixed.append(Mixed(step.plan.name, choices))
    least = fixed + sum(min(choice.size for choice in each.choices) for each in mixed)
    if least > fixed + most:
        raise _too_small(least, numbers, file_bytes, bits)
    chosen = best_mix(mixed, most)
    types = {each.tensor: choice.type_name for each, choice in zip(mixed, chosen, strict=True)}
    return replace(wishes, recipe=_recipe_of(chosen), tensor_types={**types, **wishes.tensor_types})


def _too_small(
    least: int, numbers: int, file_bytes: int | None, bits: float | None
) -> ArgumentError:
    """Say how large the smallest mix is, in the requested unit."""
    if file_bytes is not None:
        return ArgumentError(f"the smallest file has {least} bytes; the limit is {file_bytes}")
    smallest = math.ceil(800 * least / max(numbers, 1)) / 100
    return ArgumentError(
        f"the smallest mix has {smallest:.2f} bits per weight; the limit is {bits:g}"
    )


def _padded(plan: TensorPlan, file: ModelSource) -> int:
    return plan.size + -plan.size % file.alignment


def _recipe_of(chosen: list[FormatChoice]) -> Recipe:
    """The one whose format has most of the bytes."""
    sizes: dict[str, int] = {}
    for choice in chosen:
        sizes[choice.type_name] = sizes.get(choice.type_name, 0) + choice.size
    base = max(sizes, key=lambda name: sizes[name])
    return Recipe("a mix", base, _NUMBERS[base])
