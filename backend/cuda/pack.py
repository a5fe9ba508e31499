"""Write compiled kernels into one file: backend/cuda/packed/kernel_file.h describes it.

Run by CMake: `python pack.py --id ID --architectures "sm_80 sm_90a" FILE IMAGE.fatbin ...`.
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

HEAD = struct.Struct("<8sII64s64s")
ROW = struct.Struct("<48sQQ")
ALIGNMENT = 64


def packed(kernel_id: str, architectures: str, images: dict[str, bytes]) -> bytes:
    """Return the file's bytes."""
    long = [name for name in images if len(name.encode()) > 47]
    if long or len(kernel_id) > 64 or len(architectures.encode()) > 63:
        raise SystemExit(f"pack.py: too long for its place: {long or architectures or kernel_id}")
    rows, bodies = b"", b""
    begin = HEAD.size + ROW.size * len(images)
    for name, image in images.items():
        bodies += bytes(-(begin + len(bodies)) % ALIGNMENT)
        rows += ROW.pack(name.encode(), begin + len(bodies), len(image))
        bodies += image
    head = HEAD.pack(b"akunuGPU", 1, len(images), kernel_id.encode(), architectures.encode())
    return head + rows + bodies


def main() -> None:
    """Pack the images that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", required=True)
    parser.add_argument("--architectures", required=True)
    parser.add_argument("file", type=Path)
    parser.add_argument("images", type=Path, nargs="+")
    options = parser.parse_args()
    images = {path.stem: path.read_bytes() for path in options.images}
    options.file.write_bytes(packed(options.id, options.architectures, images))


if __name__ == "__main__":
    main()
