"""cross_weights: the softmax of cross_attention, of the heads that are wanted, against float64."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import NONE, On, Run, assert_same_bits, pack_params, run
from reference import AttentionShape
from tables import table
from test_cross_attention import Setting

HEADS = [0b1, 0b1010, 0b110001]


def weights(target, setting: Setting, heads: int, *, first=0, n_out=None, threads=1, **part):
    shape, step, n = setting.shape, setting.step, setting.n_positions
    n_out = bin(heads).count("1") if n_out is None else n_out
    out = np.full((int((step.rows["head_row"] != NONE).sum()), n_out, n), -1, np.float32)
    sizes = (shape.n_heads, shape.n_kv_heads, shape.head_dim, n, shape.scale, heads, first, n_out)
    run(
        "cross_weights",
        [setting.query, setting.keys, out],
        pack_params("cross_weights", *sizes, step.page_stride, step.page_base),
        step,
        On(target, threads, cache=setting.cache, row_class="many"),
        **part,
    )
    return out


@table(cache=["f32", "f16"], heads=HEADS, n_positions=[1, 300, 1500])
def test_agrees_with_float64(target, rng, heads, cache, n_positions):
    shape = AttentionShape(6, 3, 40)
    setting = Setting(rng, shape, [Run(0, 5, 4), Run(1, 0, 3)], cache, n_positions)
    rows = setting.step.rows
    rows["head_row"] = [1, 0, NONE, 2, NONE, 3, 4]
    out = weights(target, setting, heads)
    for row in rows:
        if row["head_row"] == NONE:
            continue
        r = int(np.flatnonzero(rows["head_row"] == row["head_row"])[0])
        positions = np.arange(n_positions)
        pages, places = ref.page_offsets(setting.step, int(row["sequence"]), positions)
        for i, head in enumerate(h for h in range(6) if heads >> h & 1):
            q = setting.query[r, head * 40 : (head + 1) * 40].astype(np.float64)
            k = setting.keys[pages, head // 2, places].astype(np.float64)
            scores = (k @ q) * shape.scale
            exact = np.exp(scores - scores.max())
            exact /= exact.sum()
            error = ref.growth(40 + 6) * (np.abs(k) @ np.abs(q)) * shape.scale
            relative = (
                error + error[scores.argmax()] + ref.growth(2) * np.abs(scores - scores.max())
            )
            relative = relative + ref.growth(n_positions / 8 + 40)
            found = out[int(row["head_row"]), i]
            assert (np.abs(found - exact) <= exact * relative + 2 * ref.TINY).all()


def test_layers_write_beside_each_other(target, rng):
    setting = Setting(rng, AttentionShape(2, 2, 16), [Run(0, 0, 2)], "f32", 40)
    setting.step.rows["head_row"] = [0, 1]
    alone = weights(target, setting, 0b11)
    beside = weights(target, setting, 0b11, first=1, n_out=4)
    assert_same_bits(np.ascontiguousarray(beside[:, 1:3]), alone)
    assert (beside[:, [0, 3]] == -1).all()


def test_rows_and_threads_change_no_bit(target, rng):
    setting = Setting(rng, AttentionShape(2, 2, 16), [Run(0, 0, 9)], "f16", 300)
    setting.step.rows["head_row"] = np.arange(9)
    together = weights(target, setting, 0b11, threads=3)
    part = weights(target, setting, 0b11, first_row=4, n_rows=1)
    assert_same_bits(part[4], together[4])
