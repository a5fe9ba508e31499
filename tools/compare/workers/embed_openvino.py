"""sentence-transformers' OpenVINO backend: `embed_openvino.py DIRECTORY LONGEST THREADS`.

Speaks `protocol`. DIRECTORY is one of `export_encoder.py`, with weights and activations in int8.
Where optimum-intel is not installed, OpenVINO is called directly, on the same file and with the
same texts in a batch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openvino
from embedding_requests import serve_embeddings
from pooled_rows import batches, normalised_means

FILE = "openvino_model_qint8_quantized.xml"


def by_sentence_transformers(path: Path, threads: int) -> tuple[str, Callable[[list[str]], Any]]:
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(
        str(path), backend="openvino", device="cpu",
        model_kwargs={
            "file_name": f"openvino/{FILE}", "ov_config": {"INFERENCE_NUM_THREADS": str(threads)},
        },
    )  # fmt: skip
    version = f"sentence-transformers {sentence_transformers.__version__}, "

    def embed(texts: list[str]) -> Any:
        return model.encode(texts, show_progress_bar=False, normalize_embeddings=True)

    return version, embed


def directly(path: Path, threads: int) -> tuple[str, Callable[[list[str]], Any]]:
    core = openvino.Core()
    compiled = core.compile_model(
        path / "openvino" / FILE, "CPU", {"INFERENCE_NUM_THREADS": threads}
    )
    names = {name for each in compiled.inputs for name in each.names}

    def run(batch: dict[str, Any]) -> Any:
        return compiled({name: values for name, values in batch.items() if name in names})[0]

    return "", lambda texts: normalised_means(batches(path, texts), run)


def main(path: Path, threads: int) -> None:
    try:
        import optimum.intel.openvino  # noqa: F401, whether it is there
    except ImportError:
        version, embed = directly(path, threads)
    else:
        version, embed = by_sentence_transformers(path, threads)
    serve_embeddings(f"{version}OpenVINO {openvino.__version__}, int8", embed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[3]))
