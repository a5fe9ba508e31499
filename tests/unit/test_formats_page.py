"""docs/reference/formats.md: fields and formulas of the page against the `gguf` package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType, quants

from lines import each_line

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/formats.md").read_text()
ROW = re.compile(
    r"^\| (\w+) \| (\d+) \| `([^`]*)` \| (?:`([^`]*)` )?\| `([^`]*)` \|$", re.MULTILINE
)
FORMATS = {match[1]: match.groups()[1:] for match in ROW.finditer(PAGE.replace(r"\|", "|"))}
DTYPES = {"u8": "<u1", "i8": "<i1", "u16": "<u2", "u32": "<u4", "f16": "<f2", "f32": "<f4"}


def names_of_the_page() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(code, names)
    return names


def layout(fields: str) -> np.dtype[Any]:
    found = re.findall(r"(\w+) (\w+)(?:\[(\d+)\])?(?:; |$)", fields)
    return np.dtype([(name, DTYPES[kind], (int(n),) if n else ()) for kind, name, n in found])


def test_the_page_has_the_formats_that_akunu_reads() -> None:
    table = (ROOT / "src/core/format.cpp").read_text()
    named = set(re.findall(r'made_of\(Format::\w+, "(\w+)"', table)) - {"mlx_mxfp4"}
    assert set(FORMATS) == {name.upper() for name in named}


@each_line("name", FORMATS)
def test_fields_and_formulas_are_those_of_gguf(name: str) -> None:
    n_weights, fields, code, weight = FORMATS[name]
    kind = GGMLQuantizationType[name]
    dtype = layout(fields)
    assert (int(n_weights), dtype.itemsize) == gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (40, dtype.itemsize), np.uint8)
    blocks = data.view(dtype)[:, 0]
    for field in dtype.names or ():  # finite numbers of usual sizes
        if dtype[field] in (np.float16, np.float32):
            blocks[field] = rng.standard_normal(len(blocks))
    if name == "MXFP4":
        blocks["e"] = rng.integers(100, 150, len(blocks))
    if name == "NVFP4":
        blocks["d"] = rng.integers(0, 127, blocks["d"].shape)
    if name == "BF16":
        blocks["b"] = rng.standard_normal(len(blocks)).astype(np.float32).view(np.uint32) >> 16
    expected = quants.dequantize(data, kind)
    names = names_of_the_page()
    reader = quants._type_traits.get(kind)
    if "grid" in weight:
        assert reader is not None
        reader.init_grid()  # type: ignore[attr-defined]
        names["grid"] = reader.grid.reshape(reader.grid_shape)  # type: ignore[attr-defined]
    names["i"] = np.arange(int(n_weights))
    for block, values in zip(blocks, expected, strict=True):
        for field in dtype.names or ():
            is_float = np.issubdtype(dtype[field].base, np.floating)
            names[field] = block[field].astype(np.float64 if is_float else np.int64)
        names["q"] = eval(code, names) if code else None
        got = np.broadcast_to(eval(weight, names), values.shape)
        np.testing.assert_allclose(got, values, rtol=1e-5, atol=1e-6)
