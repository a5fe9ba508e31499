"""Where prompt rows are computed as generated ones are, and where not."""

from __future__ import annotations

from akunu import _core


def available_levels() -> list[str]:
    """The levels of the CPU that this build has and this machine can run, the worst first."""
    levels = _core.levels("cpu")
    return [str(level["name"]) for level in levels if level["is_built"] and level["is_available"]]


def is_one_arithmetic(weight_format: str, level: str = "", kv_type: str = "f32") -> bool:
    """Whether prompt rows have the bits of generated ones, at that level or the one in use."""
    kinds = [
        _core.activation_kind("cpu", weight_format, role, level) for role in ("single", "many")
    ]
    halves_in_codes = _core.activation_kind("cpu", "f16", "many", level) == "q16_32"
    attends_in_codes = halves_in_codes and kv_type == "f16" and weight_format != "f32"
    return kinds[0] == kinds[1] and not attends_in_codes


def rows_are_streamed(device: str) -> bool:
    """Whether a device rounds the inputs of 1 to 16 rows to halves (docs/architecture.md)."""
    if device != "cuda":
        return False
    return any(
        "rows are streamed" in d["reason"] for d in _core.devices() if d["backend"] == "cuda"
    )


def prompts_on_warpgroups(device: str) -> bool:
    """Whether a device rounds the inputs of a prompt's matmuls to halves (docs/architecture.md)."""
    if device != "cuda":
        return False
    return any("warpgroups" in d["reason"] for d in _core.devices() if d["backend"] == "cuda")
