"""onnxruntime: `embed_onnx.py DIRECTORY LONGEST THREADS`; DIRECTORY is one of `export_encoder.py`.

Speaks `protocol`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnxruntime
from embedding_requests import serve_embeddings
from pooled_rows import batches, normalised_means


def main(path: Path, threads: int) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        path / "onnx" / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    names = {each.name for each in session.get_inputs()}

    def run(batch: dict[str, Any]) -> Any:
        wanted = {name: values for name, values in batch.items() if name in names}
        return session.run(None, wanted)[0]

    serve_embeddings(
        f"onnxruntime {onnxruntime.__version__}",
        lambda texts: normalised_means(batches(path, texts), run),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[3]))
