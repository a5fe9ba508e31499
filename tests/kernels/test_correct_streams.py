"""correct_streams: what a layer made of one of a row's streams changes all of them (AltUp)."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, run
from streams_cases import Streams
from tables import table


def correct(target, streams, made, scale, threads=1, first_row=0, n_rows=None):
    """The streams then, and the active one, scaled."""
    stream, others = streams.operands()
    data = made.copy()
    run(
        "correct_streams",
        [
            stream,
            others,
            streams.norm,
            streams.router.reshape(-1),
            streams.coefficients.reshape(-1),
            scale,
            data,
        ],
        pack_params("correct_streams", streams.dim, streams.n, streams.active, streams.epsilon),
        plain_step(streams.rows),
        On(target, threads),
        first_row=first_row,
        n_rows=n_rows,
    )
    return streams.together(stream, others), data


@table(is_scaled=[True, False], active=[0, 1], n_streams=[2, 3, 4], dim=[1, 37, 64, 416, 2080])
def test_agrees_with_float64(target, rng, dim, n_streams, active, is_scaled):
    streams = Streams(rng, 3, dim, n_streams, active)
    made = rng.standard_normal((3, dim)).astype(np.float32)
    scale = rng.standard_normal(dim).astype(np.float32)
    found, data = correct(target, streams, made, scale if is_scaled else None)
    by, apart = streams.factors(made)
    x = streams.x.astype(np.float64)
    change = made.astype(np.float64) - x[active]
    expected = x + (1 + by).T[:, :, None] * change
    sizes = np.abs(made) + np.abs(x[active])
    bound = (apart + (2 + np.abs(by)) * ref.growth(4)).T[:, :, None] * sizes
    assert_within(found, expected, bound + np.abs(x) * ref.growth(2))
    scaled = found[active] * scale if is_scaled else found[active]
    assert_same_bits(data, scaled)


def test_rows_and_threads_change_no_bit(target, rng):
    streams = Streams(rng, 9, 416, 4)
    made = rng.standard_normal((9, 416)).astype(np.float32)
    scale = rng.standard_normal(416).astype(np.float32)
    together, data = correct(target, streams, made, scale)
    again, data_again = correct(target, streams, made, scale, threads=3)
    assert_same_bits(again, together)
    assert_same_bits(data_again, data)
    part, data_part = correct(target, streams, made, scale, first_row=4, n_rows=2)
    assert_same_bits(part[:, 4:6], together[:, 4:6])
    assert_same_bits(data_part[4:6], data[4:6])
    assert_same_bits(np.delete(part, [4, 5], axis=1), np.delete(streams.x, [4, 5], axis=1))
