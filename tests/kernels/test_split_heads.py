"""split_heads: queries, and the gates that lie beside each of them."""

from __future__ import annotations

import numpy as np
from harness import On, assert_same_bits, pack_params, plain_step, poisoned, run
from tables import table


@table({"heads, dim, rows": [(1, 1, 1), (6, 32, 3), (8, 256, 17)]})
def test_both_halves_of_each_head(target, rng, heads, dim, rows):
    numbers = rng.standard_normal((rows, heads, 2, dim)).astype(np.float32)
    out, rest = poisoned((rows, heads * dim)), poisoned((rows, heads * dim))
    params = pack_params("split_heads", heads, dim)
    run("split_heads", [numbers, out, rest], params, plain_step(rows), On(target))
    assert_same_bits(out, numbers[:, :, 0].reshape(rows, -1))
    assert_same_bits(rest, numbers[:, :, 1].reshape(rows, -1))
