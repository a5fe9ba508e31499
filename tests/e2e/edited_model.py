"""A copy of a model's file with other metadata, byte for byte the same but for that."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # GGUF's numbers of value types


def string(text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def typed(value: object) -> bytes:
    """A value's type and bytes; an int is U32, bytes are a string that need not be UTF-8."""
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<Ii", I32, value) if value < 0 else struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, (str, bytes)):
        return struct.pack("<I", STRING) + string(value)
    assert isinstance(value, list)
    items = [typed(item) for item in value]
    return (
        struct.pack("<I", ARRAY)
        + items[0][:4]
        + struct.pack("<Q", len(items))
        + b"".join(item[4:] for item in items)
    )


def edited(source: Path, target: Path, changes: dict[str, object]) -> Path:
    """Write `source` as `target` with these keys set; None takes a key away. Return `target`."""
    reader = gguf.GGUFReader(source)
    data = source.read_bytes()
    spans = {
        key: (field.offset, field.offset + sum(part.nbytes for part in field.parts))
        for key, field in reader.fields.items()
        if not key.startswith("GGUF.")  # of the header
    }
    values = [data[start:end] for key, (start, end) in spans.items() if key not in changes]
    values += [string(key) + typed(value) for key, value in changes.items() if value is not None]
    tensors = data[reader.tensors[0].field.offset : tensors_end(reader)]
    header = data[:16] + struct.pack("<Q", len(values)) + b"".join(values) + tensors
    padding = bytes(-len(header) % reader.alignment)
    target.write_bytes(header + padding + data[reader.data_offset :])
    return target


def tensors_end(reader: gguf.GGUFReader) -> int:
    last = reader.tensors[-1].field
    return int(last.offset + sum(part.nbytes for part in last.parts))
