"""predict_streams: what each of a row's streams will be behind a layer, by a router (AltUp)."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, run
from streams_cases import Streams
from tables import table


def predict(target, streams, threads=1, first_row=0, n_rows=None):
    """The streams then, and the active one."""
    stream, others = streams.operands()
    active = ref.activation_array("f32", streams.rows, streams.dim)
    run(
        "predict_streams",
        [
            stream,
            others,
            streams.norm,
            streams.router.reshape(-1),
            streams.coefficients.reshape(-1),
            active,
        ],
        pack_params("predict_streams", streams.dim, streams.n, streams.active, streams.epsilon),
        plain_step(streams.rows),
        On(target, threads),
        first_row=first_row,
        n_rows=n_rows,
    )
    return streams.together(stream, others), active


def made(rng, rows, dim, n_streams, active=0):
    return Streams(rng, rows, dim, n_streams, active, n_streams * n_streams)


@table(active=[0, 1], n_streams=[2, 3, 4], dim=[1, 37, 64, 416, 2080])
def test_agrees_with_float64(target, rng, dim, n_streams, active):
    streams = made(rng, 3, dim, n_streams, active)
    found, found_active = predict(target, streams)
    by, apart = streams.factors(streams.x[active])
    by = by.reshape(3, n_streams, n_streams)
    apart = apart.reshape(by.shape)
    x = streams.x.astype(np.float64)
    expected = x + np.einsum("rst,trd->srd", by, x)
    bound = np.einsum("rst,trd->srd", apart, np.abs(x))
    bound += (np.abs(x) + np.einsum("rst,trd->srd", np.abs(by), np.abs(x))) * ref.growth(6)
    assert_within(found, expected, bound)
    assert_same_bits(found_active, found[active])


def test_rows_and_threads_change_no_bit(target, rng):
    streams = made(rng, 9, 416, 4)
    together, active = predict(target, streams)
    again, active_again = predict(target, streams, threads=3)
    assert_same_bits(again, together)
    assert_same_bits(active_again, active)
    part, active_part = predict(target, streams, first_row=4, n_rows=2)
    assert_same_bits(part[:, 4:6], together[:, 4:6])
    assert_same_bits(active_part[4:6], active[4:6])
    assert_same_bits(np.delete(part, [4, 5], axis=1), np.delete(streams.x, [4, 5], axis=1))
