"""Writes the grids of the IQ2 and IQ3 formats as C++ headers, from those of the gguf package.

    python tools/make_grids.py src/core/tables

A row of a grid is 8 weights of 3 magnitudes, or 4 of 8. It is written as one number of 16 bits: the
magnitude of weight i, as a place among them, in bits 2 i and 2 i + 1, or from bit 3 i on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np

FORMATS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")


def rows_of(name: str) -> tuple[list[int], list[int]]:
    """The rows as numbers, and the magnitudes that their places stand for."""
    quant = getattr(gguf.quants, name)
    quant.init_grid()
    grid = quant.grid.reshape(quant.grid_shape)
    places = np.searchsorted(quant.grid_map, grid).astype(np.uint32)
    shifts = np.arange(grid.shape[1]) * (2 if grid.shape[1] == 8 else 3)
    return (places << shifts).sum(axis=1).tolist(), list(quant.grid_map)


def header(name: str) -> str:
    rows, magnitudes = rows_of(name)
    weights, bits = (8, 2) if len(magnitudes) == 3 else (4, 3)
    lines = [", ".join(f"0x{row:04x}" for row in rows[i : i + 12]) for i in range(0, len(rows), 12)]
    symbol = "k" + "".join(part.capitalize() for part in name.split("_")) + "Grid"
    body = ",\n    ".join(lines)
    listed = ", ".join(map(str, magnitudes))
    return f"""// Made by tools/make_grids.py: the rows of {name}'s grid, {weights} weights
// of {bits} bits each, the first in the lowest ones. Magnitudes are {listed}.
#pragma once

#include "core/rows.h"

namespace akunu {{

// clang-format off
AKUNU_CONSTANT uint16_t {symbol}[{len(rows)}] = {{
    {body},
}};
// clang-format on

}}  // namespace akunu
"""


def main() -> None:
    folder = Path(sys.argv[1])
    for name in FORMATS:
        (folder / f"{name.lower()}_grid.h").write_text(header(name), encoding="utf-8")


if __name__ == "__main__":
    main()
