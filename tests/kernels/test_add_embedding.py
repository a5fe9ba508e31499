"""add_embedding: a row of a table by the row's position, or by its token type."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import NONE, On, Run, assert_same_bits, make_step, pack_params, run
from tables import table

POSITION, TOKEN_TYPE = 0, 1


@table(format_name=ref.FLOAT_FORMATS, dim=[1, 7, 40, 384])
def test_adds_the_row_of_the_position(target, rng, format_name, dim):
    step = make_step([Run(0, 3, 4), Run(1, 0, 2)])
    table = ref.random_weight(format_name, 9, dim, rng)
    data = rng.standard_normal((6, dim)).astype(np.float32)
    out = data.copy()
    run(
        "add_embedding",
        [out, table],
        pack_params("add_embedding", dim, 9, POSITION, 2),
        step,
        On(target, 2),
    )
    assert_same_bits(out, data + table.values[[5, 6, 7, 8, 2, 3]].astype(np.float32))


def test_token_types_change_where_the_second_segment_begins(target, rng):
    step = make_step([Run(0, 0, 4), Run(1, 0, 3)])
    step.rows["second_segment"] = [2] * 4 + [NONE] * 3
    table = ref.random_weight("f32", 2, 40, rng)
    data = np.zeros((7, 40), np.float32)
    params = pack_params("add_embedding", 40, 2, TOKEN_TYPE, 0)
    run("add_embedding", [data, table], params, step, On(target))
    assert_same_bits(data, table.values[[0, 0, 1, 1, 0, 0, 0]].astype(np.float32))
