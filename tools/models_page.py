"""Writes docs/models.md out of benchmarks/models.jsonl: python -m tools.models_page [RESULTS...]

Results are what tests/models/test_every_format.py measured (AKUNU_MODELS_RESULTS=RESULTS). Those
that are named go into benchmarks/models.jsonl first, in the place of older ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

# Of one architecture, format and device: the largest difference beside the largest number.
Errors: TypeAlias = dict[tuple[str, str, str], float]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "models.jsonl"
DOCUMENT = ROOT / "docs" / "models.md"

DEVICES = {"cpu": "CPU", "metal": "Metal", "metal-emulated": "Metal, emulated", "cuda": "CUDA"}

_HEAD = """# Models: every architecture in every format, measured

`tools/models_page.py` writes this page from what `tests/models/test_every_format.py`,
`tests/models/test_speech.py` and `tests/oracle/test_dense_families.py` measured.

A number is the largest difference of logits (of encoders: of a pooled vector) from those that NumPy
computes in double with the same weights (of modern-bert, eurobert, gemma-embedding and from
mistral3 to hunyuan-moe: those of transformers; of deepseek: those of llama.cpp), beside the largest
of them. The models are small and random, which is harder than trained ones are: their logits follow
every weight. What a number says of the arithmetic:

- about 1e-6: everything in float32;
- 1e-4 to 1e-3: weights of 16 bits beside rows rounded to 16 bits; MLX's beside rows of 14 bits;
- about 1e-2: weights in blocks beside rows rounded to 8 bits, as the CPU multiplies them.

An empty cell was not measured: encoders are tested in fewer formats, and a device is in the table
where its tests ran. Formats: [GGUF](gguf.md), [safetensors and MLX](directories.md) (groups of 64).
The last measurements beside transformers, llama.cpp and MLX are in those pages.

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
    return _HEAD + "\n".join(_table(read_results(RESULTS))) + "\n"


def _ordered(names: Iterable[str], first: tuple[str, ...]) -> list[str]:
    return sorted(set(names), key=lambda name: (first.index(name) if name in first else 99, name))


def _table(errors: Errors) -> Iterator[str]:
    from_first = (
        *("llama", "qwen2", "qwen3", "phi3", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4"),
        *("mistral3", "granite"),
        *("smollm3", "olmo2", "glm4", "ernie4_5", "seed_oss", "hunyuan-dense", "exaone4"),
        *("starcoder2", "command-r", "cohere2", "deepseek2", "minicpm3", "lfm2"),
        *("granitehybrid", "nemotron_h", "qwen35"),
        *("qwen2moe", "qwen3moe", "qwen35moe", "qwen3next", "olmoe", "granitemoe", "glm4moe"),
        *("gpt-oss", "ernie4_5-moe"),
        *("hunyuan-moe", "deepseek"),
    )
    architectures = _ordered((key[0] for key in errors), from_first)
    devices = [device for device in DEVICES if any(key[2] == device for key in errors)]
    yield f"| format | device | {' | '.join(f'`{name}`' for name in architectures)} |"
    yield "|---|---|" + "---|" * len(architectures)
    for number_format in _ordered((key[1] for key in errors), ()):
        for device in devices:
            if all(key[1:] != (number_format, device) for key in errors):
                continue
            cells = [_cell(errors, each, number_format, device) for each in architectures]
            yield f"| {number_format} | {DEVICES[device]} | {' | '.join(cells)} |"


def _cell(errors: Errors, architecture: str, number_format: str, device: str) -> str:
    error = errors.get((architecture, number_format, device))
    if error is None:
        return ""
    return f"{error:.1e}".replace("e-0", "e-")


def main() -> None:
    """Take new results in, and write the page."""
    errors = read_results(RESULTS) if RESULTS.exists() else {}
    for path in sys.argv[1:]:
        errors |= read_results(Path(path))
    write_results(errors)
    DOCUMENT.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
