"""How llama.cpp's server (the wheel xllamacpp) ranks, in a process of its own.

ranking_peer.py MODEL QUERY DOCUMENT…   JSON on standard output: a score for each document
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def scores(python: str, model: Path, query: str, documents: list[str]) -> list[float]:
    """The relevance that llama.cpp gives each document, in the order in which they are given."""
    done = subprocess.run(
        [python, __file__, model, query, *documents], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [float(each) for each in json.loads(done.stdout.splitlines()[-1])]


def main(path: str, query: str, documents: list[str]) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_gpu_layers = 0
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    params.port = 0
    server = xllamacpp.Server(params)
    answer = server.handle_rerank({"query": query, "documents": documents})
    found = {each["index"]: each["relevance_score"] for each in answer["results"]}
    print(json.dumps([found[index] for index in range(len(documents))]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
