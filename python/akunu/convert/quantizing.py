"""Quantising a model's file: which tensors change, and writing the file they make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from akunu import __version__, _core
from akunu.common.atomic_file import atomic_write
from akunu.convert.gguf_writer import GgufLayout, TensorPlan, Value
from akunu.convert.recipes import ModelShape, Recipe, chosen_format, fitting_format, is_quantised
from akunu.convert.sources import ModelSource, Tensor
from akunu.errors import ArgumentError

Importance = NDArray[np.float32]

_REPLACED: Final = frozenset(
    {
        "general.file_type",
        "general.quantization_version",
        "akunu.quantized_by",
        "quantize.imatrix.file",
        "quantize.imatrix.dataset",
        "quantize.imatrix.entries_count",
        "quantize.imatrix.chunks_count",
        "split.no",
        "split.count",
        "split.tensors.count",
    }
)
_QUANTIZATION_VERSION: Final = 2
"""The version of ggml's block formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a quantised file shall be."""

    recipe: Recipe
    output_type: str | None = None
    """For the output matrix, or the embedding that serves as it."""
    embedding_type: str | None = None
    tensor_types: Mapping[str, str] = field(default_factory=dict)
    """Formats of single tensors by their names, before all rules."""
    pure: bool = False
    """Every matrix gets the recipe's base."""
    allow_requantize: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One tensor of the file that is made."""

    source: Tensor
    plan: TensorPlan
    wished: str
    """The format that the rules chose; `plan` has another where rows are too short for it."""

    @property
    def is_changed(self) -> bool:
        """Whether the numbers are written anew."""
        return self.source.type_name != self.plan.type_name

    @property
    def fell_back(self) -> bool:
        """Whether rows are not whole blocks of the wished format."""
        return self.wished != self.plan.type_name


class Quantization:
    """A model's file in another number format, planned: what it will be is known before it is.

    >>> from akunu.convert.recipes import recipe_named
    >>> from akunu.loading import PACKAGED_MODELS
    >>> from akunu.convert.sources import GgufSource
    >>> file = GgufSource(PACKAGED_MODELS["ember"])
    >>> plan = Quantization(file, Wishes(recipe=recipe_named("Q4_K_M"), allow_requantize=True))
    >>> plan.steps[0].plan.name, plan.steps[0].plan.type_name
    ('token_embd.weight', 'Q6_K')
    """

    def __init__(
        self,
        file: ModelSource,
        wishes: Wishes,
        importance: Mapping[str, Importance] | None = None,
        values: Sequence[Value] = (),
    ) -> None:
        """Plan the file. `importance`: by tensor, how much its columns count, [k] or [matrices, k].

        `values` are keys to add. Raises ArgumentError for tensors that are quantised already
        without `allow_requantize`, formats that a tensor cannot have and importance that does not
        fit.
        """
        self.file = file
        self.wishes = wishes
        self._importance = importance or {}
        tensors = file.tensors
        shape = ModelShape.of(
            file, {tensor.name for tensor in tensors}, has_importance=importance is not None
        )
        _check_names(wishes.tensor_types, tensors)
        self.steps = [_step(tensor, file, shape, wishes) for tensor in tensors]
        self._check_importance()
        self._layout = GgufLayout(
            [*self._values(), *values],
            [step.plan for step in self.steps],
            alignment=file.alignment,
        )

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._layout.size

    @property
    def bits_per_weight(self) -> float:
        """Bits of all tensors over their numbers."""
        numbers = sum(step.plan.rows * step.plan.k for step in self.steps)
        return 8 * sum(step.plan.size for step in self.steps) / max(numbers, 1)

    def write(
        self,
        path: Path,
        *,
        threads: int = 1,
        force: bool = False,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        """Write the file, whole or not at all; `on_step` hears which tensor is next.

        Raises ArgumentError for numbers that cannot be quantised (NaN, infinity), ModelFormatError
        where the source is truncated meanwhile, and AkunuError for a disk that is full.
        """
        with atomic_write(path, self.size, force=force) as file:
            file.write(self._layout.head)
            for number, step in enumerate(self.steps):
                if on_step is not None:
                    on_step(number)
                data = self.data_of(step, threads=threads)
                self.file.check()
                self._layout.write_tensor(file, step.plan, data)

    def data_of(self, step: Step, *, threads: int) -> NDArray[np.uint8]:
        """Return the bytes of one tensor of the file."""
        source, plan = step.source, step.plan
        if not step.is_changed:
            return source.data
        return _core.quantize(
            source.name,
            source.data,
            source.type_name,
            (plan.rows, plan.k),
            plan.type_name,
            importance=self._importance.get(source.name),
            threads=threads,
        )

    def _values(self) -> list[Value]:
        return [
            *self.file.values(lambda key: key not in _REPLACED),
            Value.of("general.file_type", self.wishes.recipe.number),
            Value.of("general.quantization_version", _QUANTIZATION_VERSION),
            Value.of("akunu.quantized_by", f"akunu {__version__}"),
        ]

    def _check_importance(self) -> None:
        for step in self.steps:
            numbers = self._importance.get(step.plan.name)
            if numbers is None:
                continue
            shape, k = step.plan.shape, step.plan.k
            n_matrices = math.prod(shape[:-2])
            if numbers.size not in (k, n_matrices * k):
                matrices = f", in {n_matrices} matrices" if n_matrices > 1 else ""
                raise ArgumentError(
                    f"the importance of {step.plan.name} has {numbers.size} numbers, "
                    f"its rows have {k}{matrices}: it belongs to another model"
                )


def _step(tensor: Tensor, file: ModelSource, shape: ModelShape, wishes: Wishes) -> Step:
    plan = TensorPlan(tensor.name, tensor.shape, tensor.type_name)
    wished = wishes.tensor_types.get(tensor.name)
    if wished is not None:
        if len(plan.shape) < 2 and wished not in ("F32", "F16", "BF16"):
            raise ArgumentError(
                f"{tensor.name} cannot be {wished}: it is one-dimensional, and no engine reads "
                f"such a tensor quantised; use F32, F16 or BF16"
            )
        _, block, _ = _core.gguf_block(wished)
        if plan.k % block != 0:
            raise ArgumentError(
                f"{tensor.name} cannot be {wished}: its rows have {plan.k} numbers, "
                f"which is not a multiple of {block}"
            )
    elif not is_quantised(plan):
        return Step(tensor, plan, plan.type_name)
    elif wishes.pure:
        wished = wishes.recipe.base
    else:
        wished = chosen_format(
            plan,
            wishes.recipe,
            shape,
            output_type=wishes.output_type,
            embedding_type=wishes.embedding_type,
        )
    target = fitting_format(wished, plan.k)
    if target != tensor.type_name:
        check_source(tensor, file, target, allow_requantize=wishes.allow_requantize)
    return Step(tensor, TensorPlan(tensor.name, tensor.shape, target), wished)


def check_source(tensor: Tensor, file: ModelSource, target: str, *, allow_requantize: bool) -> None:
    """Refuse a tensor that cannot be read, or is quantised already and shall not be again."""
    if not _core.can_quantize(tensor.type_name):
        raise ArgumentError(f"{tensor.name} is {tensor.type_name}, which cannot be read here")
    known = file.quantised_as(tensor.name)
    if known is not None and not allow_requantize:
        raise ArgumentError(
            f"{tensor.name} is quantised already, as {known}: making it {target} adds "
            "to its errors. Start from F32, F16 or BF16, or add --allow-requantize"
        )


def _check_names(tensor_types: Mapping[str, str], tensors: Sequence[Tensor]) -> None:
    names = {tensor.name for tensor in tensors}
    for name in tensor_types:
        if name not in names:
            raise ArgumentError(f"--tensor names {name}, which the model does not have")
