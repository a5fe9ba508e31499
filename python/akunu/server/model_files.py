"""What a model's file says of itself, read from its header: nothing is loaded for it."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from akunu import loading
from akunu.errors import AkunuError
from akunu.server.served_model import ServedModel
from akunu.storage.model_files import open_model_files

# What llama.cpp calls the mixtures of number formats that `general.file_type` counts.
_MIXTURES: Final = {
    **{0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K"},
    **{11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S"},
    **{17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS"},
    **{23: "IQ3_XXS", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M"},
    **{30: "IQ4_XS", 32: "BF16", 38: "MXFP4_MOE", 39: "NVFP4"},
}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """Facts about a file, or about all files of a split model."""

    size: int
    """In bytes."""
    n_parameters: int
    quantization: str
    """The number format, or mixture of formats, of its weights."""
    architecture: str
    digest: str
    """Tells files apart: SHA-256 of their length, metadata names and the table of their tensors."""

    @property
    def parameter_size(self) -> str:
        """The number of parameters as Ollama writes it.

        >>> ModelFile(1, 134_515_008, "Q4_1", "llama", "").parameter_size
        '134.52M'
        """
        for unit, letter, digits in ((1e9, "B", 1), (1e6, "M", 2), (1e3, "K", 0)):
            if self.n_parameters >= unit:
                number = self.n_parameters / unit
                return f"{number:.{0 if number == math.floor(number) else digits}f}{letter}"
        return str(self.n_parameters)


async def file_of(served: ServedModel) -> ModelFile | None:
    """Return the facts about a model's file; None where it is not on this machine yet."""
    return await asyncio.get_running_loop().run_in_executor(None, _file_of, served)


def _file_of(served: ServedModel) -> ModelFile | None:
    try:
        model = served.model
        if model is not None:
            path = model.path
        else:
            path = loading.find_model(served.source, served.options, local_only=True)
        seen = path.stat()
        return _read(path, seen.st_mtime_ns, seen.st_size)
    except (AkunuError, OSError):
        return None  # a request for the model says what is wrong with it


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> ModelFile:
    """`changed`, `size`: those of the file, so that another one in its place is read anew."""
    file = open_model_files(path)
    sizes = [Path(part).stat().st_size for part in file.parts]
    table = [(each.name, tuple(each.shape), each.type_name, each.offset) for each in file.tensors]
    by_format: Counter[str] = Counter()
    for each in file.tensors:
        by_format[each.type_name] += each.size
    kind = file.get("general.file_type")
    described = repr((sizes, sorted(file.keys()), table))
    return ModelFile(
        size=sum(sizes),
        n_parameters=sum(math.prod(each.shape) for each in file.tensors),
        quantization=_MIXTURES.get(kind if isinstance(kind, int) else -1)
        or by_format.most_common(1)[0][0],
        architecture=str(file.get("general.architecture") or file.get("model_type") or ""),
        digest=hashlib.sha256(described.encode()).hexdigest(),
    )
