"""What the tests of models by name share."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

import akunu
from akunu.hub.watch import Watch

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Impatient(Watch):
    """Presses Ctrl-C after five megabytes."""

    came = 0

    def advance(self, n_bytes: int) -> None:
        self.came += n_bytes
        if self.came > 5_000_000:
            raise KeyboardInterrupt


def of_architecture(ember: bytes, name: bytes) -> bytes:
    """Return Ember with another architecture of as many letters."""
    assert len(name) == 5
    return ember.replace(struct.pack("<Q", 5) + b"qwen3", struct.pack("<Q", 5) + name)


def split(
    source: Path, folder: Path, parts: int, more: Mapping[str, NDArray[np.float32]] | None = None
) -> list[Path]:
    """Write a model in so many parts, with `more` tensors, and return their paths."""
    reader = gguf.GGUFReader(source)
    most = -(-len(reader.tensors) // parts) if parts > 1 else 0
    architecture = str(reader.fields["general.architecture"].contents())
    writer = gguf.GGUFWriter(folder / "ember-Q8_0.gguf", architecture, split_max_tensors=most)
    for name, entry in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            is_array = entry.types[0] == gguf.GGUFValueType.ARRAY
            inner = entry.types[-1] if is_array else None
            writer.add_key_value(name, entry.contents(), entry.types[0], sub_type=inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name, values in (more or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = sorted(folder.glob("ember-Q8_0*.gguf"))
    assert len(found) == parts
    return found


def ollama_has(root: Path, name: str, content: bytes, kind: str = "model") -> Path:
    """Put a model where Ollama would: a manifest that names a blob by its checksum."""
    digest = hashlib.sha256(content).hexdigest()
    blob = root / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    manifest = root / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [
        {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"},
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:00"},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blob
