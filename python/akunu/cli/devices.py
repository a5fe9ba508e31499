"""`akunu devices`: what akunu can compute on here."""

from __future__ import annotations

from typing import Any

from akunu import _core
from akunu.cli.tables import write_facts
from akunu.errors import ArgumentError


def show_devices() -> int:
    """Write one table per device to stdout; return the exit code."""
    for number, device in enumerate(_core.devices()):
        if number > 0:
            print()
        write_facts("", [_shown(key, value) for key, value in device.items()])
    return 0


def _shown(key: str, value: object) -> tuple[str, str]:
    """Return a fact's name and value as a person reads them."""
    if key.endswith("_bytes"):
        shown = f"{value / 2**30:.1f} GiB" if isinstance(value, int) else "unknown"
        return key.removesuffix("_bytes").replace("_", " "), shown
    return key.replace("_", " "), str(value)


def device_of(name: str) -> dict[str, Any]:
    """Return what is known of the device that a load with this name takes."""
    devices = _core.devices()
    for device in devices:
        if name in ("auto", device["backend"]):
            return device
    raise ArgumentError(f"there is no device {name!r}")
