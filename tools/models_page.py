"""Writes docs/reference/models.md of benchmarks/models.jsonl: python -m tools.models_page [RESULTS]

Results are what tests/models/test_every_format.py measured (AKUNU_MODELS_RESULTS=RESULTS). Those
that are named go into benchmarks/models.jsonl first, in the place of older ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from tools.family_lists import architectures

# Of one architecture, format and device: the largest difference beside the largest number.
Errors: TypeAlias = dict[tuple[str, str, str], float]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "models.jsonl"
DOCUMENT = ROOT / "docs" / "reference" / "models.md"

DEVICES = {"cpu": "CPU", "metal": "Metal", "metal-emulated": "Metal, emulated", "cuda": "CUDA"}

# A format that more architectures than these were measured in is a column of the first table.
MANY = 12

_HEAD = """# Models by format

Each cell is a measured error: the largest difference of logits (for encoders, of a pooled vector)
from a reference with the same weights, divided by the largest logit. `tools/models_page.py` writes
this page from what `tests/models/test_every_format.py`, `tests/models/test_speech.py` and
`tests/oracle/test_dense_families.py` measured.

The reference is transformers; for llama, qwen2, qwen3, phi3, Gemma 1 to 4, bert, nomic-bert,
jina-bert-v2 and whisper it is NumPy in double, for deepseek llama.cpp. The models are small and
have random weights, which is harder than trained ones: their logits depend on every weight.

| error | arithmetic |
|---|---|
| about 1e-6 | everything in float32 |
| 1e-4 to 1e-3 | weights of 16 bits, inputs rounded to 16 bits; MLX's formats, inputs of 14 bits |
| 1e-2 to 1e-1 | weights in blocks, inputs rounded to 8 bits, as the CPU multiplies them |
| 1e-1 to 1, with experts | a rounded input chose another expert than the exact one |

Columns and rows without a device are the CPU's. An empty cell was not measured. [Model
files](model-files.md) has the keys of each architecture, [number formats](formats.md) the bytes.
MLX's formats have groups of 64. Vocabularies and chat templates are tested apart. A vocabulary and
template of falcon-h1 were not available.

## Every architecture
"""

_BETWEEN = """
## Every format
"""


def read_results(path: Path) -> Errors:
    """Read a file of results; the last one of each counts."""
    errors: Errors = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        errors[each["architecture"], each["format"], each["device"]] = float(each["error"])
    return errors


def write_results(errors: Errors) -> None:
    """Write all results in a fixed order, a line each."""
    lines = [
        json.dumps({"architecture": a, "format": f, "device": d, "error": float(f"{error:.2g}")})
        for (a, f, d), error in sorted(errors.items())
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def document() -> str:
    """The page for the results as they are."""
    errors = read_results(RESULTS)
    parts = [_HEAD, *_families(errors), _BETWEEN, *_formats(errors)]
    return "\n".join(parts) + "\n"


def _ordered(names: Iterable[str]) -> list[str]:
    found = set(names)
    return [name for name in architectures() if name in found]


def _families(errors: Errors) -> Iterator[str]:
    """A line for each architecture, in the formats that many were measured in."""
    columns = [
        (number_format, device)
        for number_format, device in _measured(errors)
        if _is_of_many(errors, number_format, device)
    ]
    yield f"| architecture | {' | '.join(_name(*each) for each in columns)} |"
    yield "|---|" + "---|" * len(columns)
    for architecture in _ordered(key[0] for key in errors):
        cells = [_cell(errors, architecture, *each) for each in columns]
        yield f"| `{architecture}` | {' | '.join(cells)} |"


def _formats(errors: Errors) -> Iterator[str]:
    """A line for each of the other formats, for the architectures that were measured in them."""
    lines = [each for each in _measured(errors) if not _is_of_many(errors, *each)]
    architectures = _ordered(key[0] for key in errors if key[1:] in lines)
    yield f"| format | {' | '.join(f'`{name}`' for name in architectures)} |"
    yield "|---|" + "---|" * len(architectures)
    for number_format, device in lines:
        cells = [_cell(errors, each, number_format, device) for each in architectures]
        yield f"| {_name(number_format, device)} | {' | '.join(cells)} |"


def _measured(errors: Errors) -> list[tuple[str, str]]:
    """Formats with the devices that they were measured on."""
    order = list(DEVICES)
    return sorted({key[1:] for key in errors}, key=lambda each: (each[0], order.index(each[1])))


def _is_of_many(errors: Errors, number_format: str, device: str) -> bool:
    return sum(key[1:] == (number_format, device) for key in errors) > MANY


def _name(number_format: str, device: str) -> str:
    return number_format if device == "cpu" else f"{number_format}, {DEVICES[device]}"


def _cell(errors: Errors, architecture: str, number_format: str, device: str) -> str:
    error = errors.get((architecture, number_format, device))
    if error is None:
        return ""
    return f"{error:.1e}".replace("e-0", "e-").removesuffix("e+00")


def main() -> None:
    """Take new results in, and write the page."""
    errors = read_results(RESULTS) if RESULTS.exists() else {}
    for path in sys.argv[1:]:
        errors |= read_results(Path(path))
    write_results(errors)
    DOCUMENT.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
