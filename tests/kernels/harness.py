"""Runs one operation on the device under test: NumPy arrays in, NumPy arrays changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from reference import ALL_FORMATS, Weight

from akunu import _core

NONE = 0xFFFFFFFF
ACTIVE, CHAINED, PROMPT, VECTOR_INPUT, MASKED = 1, 2, 4, 8, 16
SCORED = 32
PAGE = 256  # positions per page
MAX_FEW_ROWS = 16
ROW_CLASSES = ("single", "few", "many")
OPTION_WORDS = 4096  # of each sequence


def fields_of(layout: np.dtype, start: int = 0) -> list[tuple[str, np.dtype, int]]:
    """(path, type, offset) of every field, structs inside of it opened: `heads.style`."""
    found = []
    for name in layout.names or ():
        kind, offset = layout.fields[name][:2]
        inside = fields_of(kind, start + offset)
        found += [(f"{name}.{path}", *rest) for path, *rest in inside]
        found += [] if inside else [(name, kind, start + offset)]
    return found


def flat(layout: np.dtype) -> np.dtype:
    """The layout with structs inside of it opened. A field has its own name; where two structs have
    one of that name, the struct's before it: `biases_first`."""
    fields = fields_of(layout)
    own = [path.rpartition(".")[2] for path, _, _ in fields]
    names = [
        name if own.count(name) == 1 else path.replace(".", "_")
        for name, (path, _, _) in zip(own, fields, strict=True)
    ]
    return np.dtype(
        {
            "names": names,
            "formats": [kind for _, kind, _ in fields],
            "offsets": [offset for _, _, offset in fields],
            "itemsize": layout.itemsize,
        }
    )


ROW, SPAN, SEQUENCE = (flat(_core.step_dtypes()[name]) for name in ("row", "span", "sequence"))
PARAMS = {operation["name"]: operation["params"] for operation in _core.operations()}


def n_params(operation: str) -> int:
    """How many values `pack_params` takes for it."""
    return sum(kind.itemsize // kind.base.itemsize for _, kind, _ in fields_of(PARAMS[operation]))


def pack_params(operation: str, *values: float) -> bytes:
    """The operation's parameters, its values in the order of core/kernel_params.h."""
    assert len(values) == n_params(operation), f"{operation} has {n_params(operation)} parameters"
    packed = np.zeros(1, flat(PARAMS[operation]))
    rest = list(values)
    for name in packed.dtype.names:
        count = packed[name].size
        packed[name] = rest[0] if count == 1 else rest[:count]
        del rest[:count]
    return packed.tobytes()


@dataclass
class Step:
    """What every kernel sees besides its operands (slots 26 to 28 and 30)."""

    rows: np.ndarray
    spans: np.ndarray
    pages: np.ndarray  # uint32 [base + sequences * stride]
    sequences: np.ndarray
    page_base: int = 0
    page_stride: int = 0
    n_pages: int = 0


@dataclass(frozen=True)
class Run:
    """`n_rows` rows of one sequence from `position` on."""

    sequence: int
    position: int
    n_rows: int
    is_image: bool = False  # all rows see each other, and their inputs are vectors


@dataclass(frozen=True)
class Target:
    """A device at one of its levels."""

    device: str
    level: str

    def __str__(self) -> str:
        return self.level if self.device == "cpu" else f"{self.device}-{self.level}"

    def kind_of(self, format_name: str, row_class: str = "single") -> str:
        """The activation kind that this device wants beside a weight in the format."""
        return activation_kind(self.device, format_name, row_class, self.level)

    @property
    def kinds(self) -> list[str]:
        """Every activation kind that it wants, of whatever weight."""
        return sorted({self.kind_of(name, c) for name in ALL_FORMATS for c in ROW_CLASSES})


activation_kind = cache(_core.activation_kind)  # which makes a device for each answer


@dataclass(frozen=True)
class On:
    """Where and how a kernel runs: the target, the threads, what a request to the device says."""

    target: Target
    threads: int = 1
    activation: str = "f32"
    cache: str = "f16"
    row_class: str = ""  # empty: by the number of rows


def row_class_of(n_rows: int) -> str:
    """The class of so many rows, where nothing else says which."""
    return "single" if n_rows == 1 else "few" if n_rows <= MAX_FEW_ROWS else "many"


def neutral_sequences(n: int) -> np.ndarray:
    """Records with every setting switched off."""
    records = np.zeros(n, SEQUENCE)
    records["version"] = 3
    records["top_p"] = records["typical_p"] = 1
    records["penalize_prompt"] = 1
    records["xtc_threshold"] = 0.1
    records["dry_base"] = 1.75
    records["dry_allowed_length"], records["dry_penalty_last_n"] = 2, 2**31 - 1
    records["samplers_low"], records["samplers_high"] = 0x87654321, 9
    records["repetition_penalty"] = 1
    return records


def make_step(runs: Sequence[Run], *, max_positions: int = 1024, seed: int = 0) -> Step:
    """A step with a span per run, and page tables that hand pages out in shuffled order."""
    n_sequences = 1 + max(run.sequence for run in runs)
    stride = -(-max_positions // PAGE)
    base = 3  # as if another cache group came before
    pages = np.full(base + n_sequences * stride, NONE, np.uint32)
    pages[base:] = np.random.default_rng(seed).permutation(n_sequences * stride)
    spans = np.zeros(len(runs), SPAN)
    rows = np.zeros(sum(run.n_rows for run in runs), ROW)
    first = 0
    for index, run in enumerate(runs):
        spans[index] = (run.sequence, first, run.n_rows)
        part = rows[first : first + run.n_rows]
        part["sequence"] = run.sequence
        part["position"] = run.position + np.arange(run.n_rows)
        part["kv_length"] = part["position"] + 1
        part["flags"] = ACTIVE
        if run.is_image:
            part["kv_length"] = run.position + run.n_rows
            part["flags"] |= VECTOR_INPUT
        part["span"] = index
        first += run.n_rows
    rows["head_row"] = NONE
    rows["adapter"] = NONE
    rows["last_position"] = max_positions - 1
    return Step(
        rows, spans, pages, neutral_sequences(n_sequences), base, stride, n_sequences * stride
    )


def plain_step(n_rows: int) -> Step:
    """For operations that look at nothing but their operands."""
    return make_step([Run(0, 0, n_rows)], max_positions=max(n_rows, PAGE))


def run(
    operation: str,
    operands: Sequence[np.ndarray | Weight | None],
    params: bytes,
    step: Step,
    on: On,
    *,
    first_row: int = 0,
    n_rows: int | None = None,
    first_span: int = 0,
    n_spans: int | None = None,
    extent: str = "rows",
) -> dict[int, tuple[int, int, int]]:
    """Runs the operation over some rows of the step; returns the statuses of those that are bad,
    {row: (code, position, detail)}.

    Operands stand in order of their slots; those that the operation writes, and the step's rows,
    change in place. With the extent "head_rows", `first_row` and `n_rows` count head rows.
    """
    bound: dict[int, object] = {}
    for slot, operand in enumerate(operands):
        if isinstance(operand, Weight):
            bound[slot] = (operand.format, *operand.values.shape, operand.data)
        elif operand is not None:
            bound[slot] = operand
    if n_rows is None:
        n_rows = len(step.rows) - first_row
    first, count = (
        ("first_row", "n_rows") if extent == "rows" else ("first_head_row", "n_head_rows")
    )
    result = _core.run_operation(
        operation,
        operands=bound,
        params=params,
        rows=step.rows.tobytes(),
        spans=step.spans.tobytes(),
        pages=step.pages,
        sequences=step.sequences.tobytes(),
        device=on.target.device,
        isa=on.target.level,
        row_class=on.row_class or row_class_of(n_rows),
        threads=on.threads,
        activation=on.activation,
        cache=on.cache,
        extent=extent,
        first_span=first_span,
        n_spans=len(step.spans) - first_span if n_spans is None else n_spans,
        **{first: first_row, count: n_rows},
    )
    for slot, operand in enumerate(operands):
        if isinstance(operand, np.ndarray) and slot in result:
            operand.view(np.uint8).reshape(-1)[:] = result[slot]
    step.rows.view(np.uint8)[:] = result["rows"]
    return result["statuses"]


def poisoned(shape: tuple[int, ...] | int, dtype: type = np.float32) -> np.ndarray:
    """An output nobody has written: all bits set, a NaN in every float format."""
    out = np.empty(shape, dtype)
    out.view(np.uint8)[...] = 0xFF
    return out


def assert_same_bits(actual: np.ndarray, expected: np.ndarray, what: str = "") -> None:
    """Equal bit for bit: NaNs and the sign of zero count."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    same = actual.view(np.uint8) == expected.view(np.uint8)
    assert same.all(), f"{what}: {np.count_nonzero(~same)} bytes differ"


def assert_within(actual: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> None:
    """|actual - expected| <= bound, element by element; a NaN is never within."""
    error = np.abs(actual.astype(np.float64) - expected)
    bad = ~(error <= bound)
    if bad.any():
        bound = np.broadcast_to(bound, error.shape)
        worst = np.unravel_index(np.argmax(np.where(bad, error / (bound + 1e-300), 0)), error.shape)
        place = ", ".join(map(str, worst))
        raise AssertionError(
            f"{np.count_nonzero(bad)} of {bad.size} outside the bound; at [{place}]: got "
            f"{actual[worst]}, expected {expected[worst]} within {bound[worst]}"
        )
