"""unfold: the inputs of a convolution along a span, row by row, whatever is beside it."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, Run, assert_same_bits, make_step, pack_params, run
from tables import table

SHAPES = [
    pytest.param((1, 1, 1, 0), id="1x1"),
    pytest.param((80, 3, 1, 1), id="whisper-first"),
    pytest.param((64, 3, 2, 1), id="whisper-second"),
    pytest.param((7, 5, 3, 2), id="odd"),
]


def unfold(target, kind, data, lengths, shape, *, threads=1, **part):
    n_channels, width, stride, padding = shape
    step = make_step([Run(i, 0, n) for i, n in enumerate(lengths)])
    out = ref.activation_array(kind, len(step.rows), n_channels * width)
    params = pack_params("unfold", n_channels, width, stride, padding)
    run("unfold", [data, out], params, step, On(target, threads, kind, row_class="many"), **part)
    return out


def expected(data, lengths, shape):
    """NumPy's windows over each span's input with zeros around it, channels first."""
    n_channels, width, stride, padding = shape
    found, first = [], 0
    for n in lengths:
        own = data[first * stride : (first + n) * stride]
        padded = np.pad(own, ((padding, padding + width), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0)
        found.append(windows[: n * stride : stride].reshape(n, n_channels * width))
        first += n
    return np.concatenate(found)


@table(shape=SHAPES, lengths=[[1], [4, 1, 30]])
def test_rows_are_the_inputs_of_a_convolution(target, rng, kind, shape, lengths):
    n_channels, width, stride, _ = shape
    if kind == "q8_32" and n_channels * width % 32:
        pytest.skip("rows of q8_32 are whole groups of 32")
    data = rng.standard_normal((sum(lengths) * stride, n_channels)).astype(np.float32)
    exact = expected(data, lengths, shape).astype(np.float64)
    out = unfold(target, kind, data, lengths, shape)
    ref.assert_activation(kind, out, exact, np.zeros_like(exact))


def test_a_span_has_the_same_bits_alone_and_beside_others(target, rng, kind):
    shape = (32, 3, 2, 1)
    data = rng.standard_normal((2 * 47, 32)).astype(np.float32)
    together = unfold(target, kind, data, [10, 30, 7], shape)
    assert_same_bits(unfold(target, kind, data, [10, 30, 7], shape, threads=3), together)
    for rows in (slice(0, 10), slice(10, 40), slice(40, 47)):
        own = data[2 * rows.start : 2 * rows.stop]
        alone = unfold(target, kind, own, [rows.stop - rows.start], shape)
        assert_same_bits(alone, together[rows])
