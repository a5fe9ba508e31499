"""How close a test comes to what the machine can do: bytes read and operations, against limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from akunu import _core
from akunu.cli.bench_plan import Test
from akunu.model import ModelConfig

# Weights in these formats are multiplied as floats, all others as int8.
_FLOAT_FORMATS = frozenset({"F64", "F32", "F16", "BF16"})
_TILE_PRODUCTS = {"F16": 3, "BF16": 2}
"""Products of a matrix unit for one; 1 for block formats (docs/kernels.md). F32 does not use it."""
_KV_BYTES = {"f16": 2, "f32": 4}
_EMBEDDING = "token_embd.weight"
_HEAD = "output.weight"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the machine can do, as measured."""

    level: str
    workers: int
    buffer_bytes: int
    read_bytes_per_second: float
    float_operations_per_second: float
    byte_operations_per_second: float
    pair_operations_per_second: float
    """Of int16, in which prompts meet 16-bit weights and a cache of halves; 0 where they don't."""
    bfloat_operations_per_second: float
    """Of a matrix unit, which takes the prompts; 0 where none is in use."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a test has to do at least."""

    read_bytes: float
    float_operations: float
    byte_operations: float
    prompt_float_operations: float
    """Of the float operations, those that a matrix unit or int16 would take."""
    prompt_byte_operations: float
    """Of the byte operations, likewise."""
    prompt_tile_operations: float
    """How many it makes of those: several for one where numbers are sums of two in bf16."""

    def seconds(self, limits: Limits) -> tuple[float, float]:
        """Return how long reading and computing take at the limits."""
        floats, codes, computing = self.float_operations, self.byte_operations, 0.0
        if limits.bfloat_operations_per_second > 0:
            floats -= self.prompt_float_operations
            codes -= self.prompt_byte_operations
            computing = self.prompt_tile_operations / limits.bfloat_operations_per_second
        elif limits.pair_operations_per_second > 0:
            floats -= self.prompt_float_operations
            computing = self.prompt_float_operations / limits.pair_operations_per_second
        computing += floats / limits.float_operations_per_second
        computing += codes / limits.byte_operations_per_second
        return self.read_bytes / limits.read_bytes_per_second, computing


@dataclass(frozen=True, slots=True)
class Share:
    """What a test achieved."""

    read_gb_per_s: float
    gop_per_s: float
    bandwidth_share: float
    """Of the measured bandwidth; the rest of the time nothing was read."""
    compute_share: float
    """Of the measured peak of the arithmetic that the weights' formats use."""


def measure_limits(device: str, threads: int | None) -> Limits:
    """Measure the limits of a device, which takes about two seconds."""
    return Limits(**_core.measure_roofline(device, threads or 0))


@dataclass(frozen=True, slots=True)
class WorkModel:
    """Counts the work of tests on one model, from its tensors and its shape."""

    config: ModelConfig
    kv_type: str
    prompt_rows: int
    """Rows of a prompt that share one reading of the weights."""
    layer_bytes: int
    head_bytes: int
    layer_float_numbers: int
    layer_byte_numbers: int
    layer_tile_floats: int
    """Of the float numbers, those that a matrix unit or int16 takes from prompts."""
    layer_tile_products: int
    """Products that it makes for a row, of all numbers that it takes."""
    head_numbers: int
    head_is_float: bool

    @classmethod
    def of(
        cls, tensors: list[_core.GgufTensor], config: ModelConfig, kv_type: str, prompt_rows: int
    ) -> WorkModel:
        """Count what a step reads and multiplies; the embedding is looked up, not multiplied."""
        by_name = {tensor.name: tensor for tensor in tensors}
        head = by_name.get(_HEAD, by_name[_EMBEDDING])
        inner = [tensor for name, tensor in by_name.items() if name not in (_EMBEDDING, _HEAD)]
        matrices = [tensor for tensor in inner if len(tensor.shape) > 1]
        as_floats = [tensor for tensor in matrices if tensor.type_name in _FLOAT_FORMATS]
        n_floats = sum(math.prod(tensor.shape) for tensor in as_floats)
        n_codes = sum(math.prod(tensor.shape) for tensor in matrices) - n_floats
        on_tiles = [tensor for tensor in as_floats if tensor.type_name in _TILE_PRODUCTS]
        products = sum(math.prod(t.shape) * _TILE_PRODUCTS[t.type_name] for t in on_tiles)
        return cls(
            config=config,
            kv_type=kv_type,
            prompt_rows=prompt_rows,
            layer_bytes=sum(tensor.size for tensor in inner),
            head_bytes=head.size,
            layer_float_numbers=n_floats,
            layer_byte_numbers=n_codes,
            layer_tile_floats=sum(math.prod(tensor.shape) for tensor in on_tiles),
            layer_tile_products=products + n_codes,
            head_numbers=math.prod(head.shape),
            head_is_float=head.type_name in _FLOAT_FORMATS,
        )

    def work(self, test: Test) -> Work:
        """Return what a test reads and computes at least."""
        config = self.config
        kv_row = 2 * config.n_layers * config.n_kv_heads * config.head_dim * _KV_BYTES[self.kv_type]
        # Of each pair of positions, one product for its score and one for its value, in every head.
        per_pair = 2 * 2 * config.n_layers * config.n_heads * config.head_dim
        prompt_steps = -(-test.n_prompt // self.prompt_rows)
        steps = prompt_steps + test.n_gen
        heads = (1 if test.n_prompt else 0) + test.n_gen  # a prompt needs logits of its last row
        # Row i of the test looks at all positions before it and at itself.
        last = test.n_depth + test.n_tokens
        pairs = (last * (last + 1) - test.n_depth * (test.n_depth + 1)) / 2
        # A prompt's step may read what is before it once; a generated row reads it all.
        begin = test.n_depth + test.n_prompt
        read_rows = sum(
            min(test.n_depth + (step + 1) * self.prompt_rows, begin) for step in range(prompt_steps)
        ) + sum(range(begin + 1, begin + test.n_gen + 1))
        prompt_pairs = (begin * (begin + 1) - test.n_depth * (test.n_depth + 1)) / 2
        if self.kv_type != "f16" or self.layer_tile_products == 0:
            prompt_pairs = 0  # attention stays where it is
        # Beside halves it takes sums of two numbers as well.
        pair_products = 1 if self.layer_byte_numbers > 0 else _TILE_PRODUCTS["F16"]
        float_numbers = self.layer_float_numbers * test.n_tokens
        byte_numbers = self.layer_byte_numbers * test.n_tokens
        if self.head_is_float:
            float_numbers += self.head_numbers * heads
        else:
            byte_numbers += self.head_numbers * heads
        return Work(
            read_bytes=self.layer_bytes * steps + self.head_bytes * heads + kv_row * read_rows,
            float_operations=2 * float_numbers + per_pair * pairs,
            byte_operations=2 * byte_numbers,
            prompt_float_operations=per_pair * prompt_pairs
            + 2 * self.layer_tile_floats * test.n_prompt,
            prompt_byte_operations=2 * self.layer_byte_numbers * test.n_prompt,
            prompt_tile_operations=per_pair * prompt_pairs * pair_products
            + 2 * self.layer_tile_products * test.n_prompt,
        )


def share_of(work: Work, limits: Limits, seconds: float) -> Share:
    """Return what was achieved in `seconds`."""
    reading, computing = work.seconds(limits)
    return Share(
        read_gb_per_s=work.read_bytes / seconds / 1e9,
        gop_per_s=(work.float_operations + work.byte_operations) / seconds / 1e9,
        bandwidth_share=reading / seconds,
        compute_share=computing / seconds,
    )


def limits_facts(limits: Limits) -> dict[str, Any]:
    """Return the limits for JSON."""
    return {
        "level": limits.level,
        "workers": limits.workers,
        "buffer_bytes": limits.buffer_bytes,
        "read_gb_per_s": limits.read_bytes_per_second / 1e9,
        "float_gop_per_s": limits.float_operations_per_second / 1e9,
        "int8_gop_per_s": limits.byte_operations_per_second / 1e9,
        "int16_gop_per_s": limits.pair_operations_per_second / 1e9,
        "bf16_gop_per_s": limits.bfloat_operations_per_second / 1e9,
    }


def limits_line(limits: Limits) -> str:
    """Return the limits as a person reads them."""
    int16 = limits.pair_operations_per_second / 1e9
    bf16 = limits.bfloat_operations_per_second / 1e9
    return (
        f"limits measured here ({limits.level}, {limits.workers} threads): "
        f"reads {limits.read_bytes_per_second / 1e9:.1f} GB/s "
        f"({limits.buffer_bytes >> 20} MiB), "
        f"int8 {limits.byte_operations_per_second / 1e9:.0f} Gop/s, "
        f"float {limits.float_operations_per_second / 1e9:.0f} Gop/s"
        + (f", int16 {int16:.0f} Gop/s" if int16 else "")
        + (f", bf16 of a matrix unit {bf16:.0f} Gop/s" if bf16 else "")
    )
