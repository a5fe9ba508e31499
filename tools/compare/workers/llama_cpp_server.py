"""llama.cpp's server from the wheel xllamacpp: `llama_cpp_server.py MODEL CONTEXT THREADS SLOTS`.

With its defaults otherwise. Says where it listens, and ends when it is told to (SIGTERM).
"""

from __future__ import annotations

import signal
import sys


def main(path: str, context: int, threads: int, slots: int) -> None:
    try:
        import xllamacpp
    except ImportError as error:
        sys.exit(f"{sys.executable} has no xllamacpp ({error}); or pass --llama-server")
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_gpu_layers = 0
    params.n_ctx = context
    params.n_parallel = slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.port = 0
    server = xllamacpp.Server(params)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print(f"listening at {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
