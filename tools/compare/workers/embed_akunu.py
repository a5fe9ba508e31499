"""akunu's encoders: `embed_akunu.py MODEL LONGEST THREADS`; speaks `protocol`."""

from __future__ import annotations

import sys

from embedding_requests import serve_embeddings

import akunu
from akunu import _core


def main(path: str, threads: int) -> None:
    model = akunu.load(path, threads=threads)
    device = _core.devices()[0]
    serve_embeddings(
        f"akunu {akunu.__version__}, instruction set level {device['level']}",
        lambda texts: model.embed(texts, truncate=True),
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
