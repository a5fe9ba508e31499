"""gather_head: rows with a head row go there, the others nowhere."""

from __future__ import annotations

import numpy as np
from harness import NONE, On, assert_same_bits, pack_params, plain_step, poisoned, run


def test_copies_rows_to_their_head_rows(target, rng):
    data = rng.standard_normal((5, 37)).astype(np.float32)
    step = plain_step(5)
    step.rows["head_row"] = [NONE, 2, NONE, 0, NONE]
    out = poisoned((4, 37))
    run("gather_head", [data, out], pack_params("gather_head", 37), step, On(target, 2))
    assert_same_bits(out[[2, 0]], data[[1, 3]])
    assert (out[[1, 3]].view(np.uint8) == 0xFF).all()
