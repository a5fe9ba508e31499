"""akunu beside llama.cpp, on the same file and the same machine.

    python -m tools.compare speed MODEL.gguf --peer PYTHON
    python -m tools.compare accuracy MODEL.gguf --peer PYTHON
    python -m tools.compare report compare-MODEL.json --write docs/reference/benchmarks.md

docs/reference/benchmarks.md says how to build the peer, what is timed, and how to read it.
"""
