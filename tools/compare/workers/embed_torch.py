"""sentence-transformers on PyTorch: `embed_torch.py DIRECTORY LONGEST THREADS`.

Speaks `protocol`.
"""

from __future__ import annotations

import sys

import sentence_transformers
import torch
from embedding_requests import serve_embeddings


def main(path: str, threads: int) -> None:
    torch.set_num_threads(threads)
    model = sentence_transformers.SentenceTransformer(path, device="cpu")
    serve_embeddings(
        f"sentence-transformers {sentence_transformers.__version__}, PyTorch {torch.__version__}",
        lambda texts: model.encode(texts, show_progress_bar=False, normalize_embeddings=True),
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
