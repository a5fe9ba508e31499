"""GGUF files with random weights: any supported architecture, shape and number format.

    python -m tools.make_synthetic --preset Qwen3-0.6B --format Q4_K_M model.gguf

For speed, memory and numbers, where what a model says does not matter: a file has the tensors,
names, number formats and metadata of a real one, and values that are spread like a real one's, so
that its logits are finite and not all alike. The same arguments give the same bytes, everywhere.

`shapes` says which tensors a model has, `recipes` which number format each gets, `values` draws
them, `vocabulary` invents the tokens, `writer` puts all of it into a file.
"""

from tools.make_synthetic.shapes import PRESETS, RopeFactors, Shape
from tools.make_synthetic.writer import write

__all__ = ["PRESETS", "RopeFactors", "Shape", "write"]
