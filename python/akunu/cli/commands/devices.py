"""`akunu devices`: what akunu can compute on here."""

from __future__ import annotations

from typing import Any

from akunu import _core
from akunu.cli.terminal.tables import write_facts
from akunu.errors import ArgumentError

_ALL_LEVELS = "pip install --config-settings cmake.define.AKUNU_CPU_LEVELS=all ."


def show_devices() -> int:
    """Write one table per device to stdout; return the exit code."""
    for number, device in enumerate(_core.devices()):
        if number > 0:
            print()
        facts = [_described(key, value) for key, value in device.items()]
        missing = missing_levels() if device.get("backend") == "cpu" else ""
        write_facts("", [*facts, *([("missing levels", missing)] if missing else [])])
    if unused := unused_gpu():
        print(f"\n{unused}")
    return 0


def unused_gpu() -> str:
    """Return that an NVIDIA GPU is here whose kernels are not, and how to get them, or ""."""
    levels = _core.levels("cuda") if "cuda" in _core.backends() else []
    if not any(level["is_available"] and not level["is_built"] for level in levels):
        return ""
    return "akunu's kernels for this machine's NVIDIA GPU are missing: `pip install akunu-cuda`."


def missing_levels() -> str:
    """Return which levels of CPU kernels this machine could run but this build lacks, or ""."""
    levels = _core.levels("cpu")
    missing = [str(x["name"]) for x in levels if x["is_available"] and not x["is_built"]]
    if not missing:
        return ""
    found = ", ".join(missing)
    return f"{found}: this build does not have them; a wheel or `{_ALL_LEVELS}` has them"


def _described(key: str, value: object) -> tuple[str, str]:
    """Return a fact's name and value as a person reads them."""
    if key.endswith("_bytes"):
        shown = f"{value / 2**30:.1f} GiB" if isinstance(value, int) else "unknown"
        return key.removesuffix("_bytes").replace("_", " "), shown
    return key.replace("_", " "), str(value)


def device_of(name: str) -> dict[str, Any]:
    """Return what is known of the device that a load with this name takes.

    Raises what such a load raises where there is none.
    """
    for device in _core.devices():
        if name in ("auto", device["backend"]):
            return device
    _core.activation_kind(name, "F32")  # opens the device, and so says why it is not there
    raise ArgumentError(f"there is no device {name!r}")
