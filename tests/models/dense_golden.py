"""Small random models of the dense families, by the shapes of their tensors, and what they compute.

    golden = load("granite")
    write(tmp_path / "granite", golden)

A file of `golden_families` holds what transformers wrote into config.json, the shapes of the
tensors, and some logits. The tensors' numbers follow from their names, so that these tests need no
PyTorch; `tests/oracle/make_dense_golden.py` writes the files.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hf_directory
import numpy as np
from golden_values import N_TOKENS
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "golden_families"
VOCAB = 331
TOKENS: list[int] = np.random.RandomState(7).randint(0, VOCAB, N_TOKENS).tolist()
# Both sides of the windows' and the page's ends, and the text's.
POSITIONS = (0, 1, 15, 69, 70, 71, 128, 255, 256, 306)
N_COLUMNS = 24
FAMILIES = sorted(path.stem for path in FOLDER.glob("*.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseGolden:
    """What one file says."""

    config: dict[str, Any]
    shapes: dict[str, list[int]]
    largest: float  # of all logits, beside which errors are measured
    logits: list[list[float]]  # [POSITIONS, N_COLUMNS], of the first tokens
    transformers: str
    # Where no test's table has the family: what a small model of it is (a Family of
    # tests/oracle/random_family.py).
    described: dict[str, Any] | None = None


def tensor_of(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The numbers of a tensor, large enough that every part of a model matters."""
    return _drawn(name, shape).copy()


@cache  # many tests write the same models
def _drawn(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    # transformers writes Nemotron-H's under their published names.
    name = name.replace("backbone.", "model.", 1)
    # And Kimi-Linear's.
    name = name.replace("forget_gate.", "").replace("block_sparse_moe.", "mlp.")
    # RandomState's streams are frozen by NumPy's compatibility policy.
    stream = np.random.RandomState([3, zlib.crc32(name.encode())])
    if len(shape) == 1 and name.endswith(("weight", "scalar")):
        values = stream.uniform(0.5, 1.5, shape)
    elif len(shape) == 1:
        values = 0.3 * stream.standard_normal(shape)
    elif "embed" in name:
        values = 0.5 * stream.standard_normal(shape)
    else:
        values = 1.5 / np.sqrt(shape[1]) * stream.standard_normal(shape)
    if name.endswith("modality_router.weight"):  # it reads a normed row divided by its length
        values *= shape[1]
    elif name.endswith("_coefs.weight"):  # larger ones grow the roundings of float32
        values *= 0.3
    return values.astype(np.float32)


def load(family: str) -> DenseGolden:
    """The golden values of a family."""
    return DenseGolden(**json.loads((FOLDER / f"{family}.json").read_text()))


def descriptions() -> dict[str, dict[str, Any]]:
    """Of the families that their golden values describe. There may be nothing else of them yet."""
    read = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    return {name: each["described"] for name, each in read.items() if "described" in each}


def save(family: str, golden: DenseGolden) -> None:
    """Write them: a line for each tensor and each row of logits."""
    FOLDER.mkdir(exist_ok=True)
    described = asdict(golden)
    if golden.described is None:
        del described["described"]
    text = json.dumps({**described, "shapes": None, "logits": None}, indent=1, sort_keys=True)
    for key in ("shapes", "logits"):
        value = described[key]
        lines = (
            [f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in value.items()]
            if isinstance(value, dict)
            else [f"  {json.dumps(row)}" for row in value]
        )
        ends = "{}" if isinstance(value, dict) else "[]"
        body = f"{ends[0]}\n" + ",\n".join(lines) + f"\n {ends[1]}"
        text = text.replace(f'"{key}": null', f'"{key}": {body}')
    (FOLDER / f"{family}.json").write_text(text + "\n")


def write(folder: Path, golden: DenseGolden) -> Path:
    """The model as a directory."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(golden.config))
    tensors = {}
    for name, shape in golden.shapes.items():
        data = tensor_of(name, tuple(shape))
        tensors[name] = ("F32", data.shape, hf_directory.stored(data, "F32"))
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    hf_directory.write_tokenizer(folder, VOCAB)
    return folder


def changed(folder: Path, **keys: Any) -> Path:
    """The directory with other keys in its config.json; None leaves one out."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | keys
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return folder
