"""Writes SentencePiece's `precompiled_charsmap`: a double array of bytes, and what it leads to.

The form is that of darts-clone (https://github.com/s-yata/darts-clone), which SentencePiece and the
`tokenizers` library read.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

HAS_LEAF = 1 << 8


def precompiled(mapping: Mapping[str, str]) -> bytes:
    """Return the table that replaces each key, which is not empty, by its value."""
    texts, places = b"", {}
    for text in dict.fromkeys(mapping.values()):
        places[text] = len(texts)
        texts += text.encode() + b"\0"
    keys = {key.encode(): places[value] for key, value in mapping.items()}
    units: dict[int, int] = {}
    _put(units, 0, b"", keys, 0)
    table = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(max(units) + 257))
    return struct.pack("<I", len(table)) + table + texts


def _put(units: dict[int, int], node: int, path: bytes, keys: dict[bytes, int], label: int) -> None:
    """Place the children of a node, whose own unit this writes."""
    below = [key for key in keys if key.startswith(path) and key != path]
    follow = sorted({key[len(path)] for key in below})
    is_key = path in keys
    offset = 1
    # A child lies at the node XOR the offset XOR its byte; 0 is the place of the value.
    wanted = [*([0] if is_key else []), *follow]
    while any((node ^ offset ^ byte) in units or (node ^ offset ^ byte) == 0 for byte in wanted):
        offset += 1
    for byte in wanted:
        units[node ^ offset ^ byte] = 0  # taken
    units[node] = offset << 10 | (HAS_LEAF if is_key else 0) | label
    if is_key:
        units[node ^ offset] = 1 << 31 | keys[path]
    for byte in follow:
        _put(units, node ^ offset ^ byte, path + bytes([byte]), keys, byte)
