"""How close a test or a kernel comes to what the machine can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from akunu import _core
from akunu.cli.measuring.operation_counts import OperationCounts
from akunu.options.text_options import LoadOptions


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
    """Peak of int16, which multiplies prompts by 16-bit weights and an F16 cache; 0: unused."""
    bfloat_operations_per_second: float
    """Peak of the matrix unit, which multiplies prompts; 0: unused."""

    def seconds(self, work: OperationCounts) -> tuple[float, float]:
        """Return how long reading and computing take at the limits."""
        floats, codes, computing = work.float_operations, work.byte_operations, 0.0
        if self.bfloat_operations_per_second > 0:
            floats -= work.prompt_float_operations
            codes -= work.prompt_byte_operations
            computing = work.prompt_tile_operations / self.bfloat_operations_per_second
        elif self.pair_operations_per_second > 0:
            floats -= work.prompt_float_operations
            computing = work.prompt_float_operations / self.pair_operations_per_second
        computing += floats / self.float_operations_per_second
        computing += codes / self.byte_operations_per_second
        return work.read_bytes / self.read_bytes_per_second, computing


@dataclass(frozen=True, slots=True)
class Share:
    """What a test or a kernel achieved."""

    read_gb_per_s: float
    gop_per_s: float
    bandwidth_share: float
    """Share of the measured bandwidth; nothing was read in the rest of the time."""
    compute_share: float
    """Share of the measured peak, for the arithmetic that the weights' formats use."""

    def cells(self) -> list[str]:
        """Return the cells of a table, under `SHARE_HEADER`."""
        return [
            f"{self.read_gb_per_s:.1f}",
            f"{self.bandwidth_share:.0%}",
            f"{self.gop_per_s:.1f}",
            f"{self.compute_share:.0%}",
        ]


SHARE_HEADER = ("GB/s", "of reads", "Gop/s", "of peak")


def measure_limits(options: LoadOptions) -> Limits:
    """Measure the limits of a device, which takes about two seconds."""
    return Limits(**_core.measure_roofline(options.device, int(options.threads or 0)))


def share_of(work: OperationCounts, limits: Limits, seconds: float) -> Share:
    """Return what was achieved in `seconds`."""
    reading, computing = limits.seconds(work)
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
