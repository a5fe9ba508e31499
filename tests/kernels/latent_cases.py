"""What the tests of multi-head latent attention share."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import (
    On,
    Run,
    pack_params,
    plain_step,
    poisoned,
    run,
)

DTYPE = {"f32": np.float32, "f16": np.float16}
RUNS = [Run(1, 254, 4), Run(0, 0, 1), Run(2, 600, 2)]
FLOATS = ["f32", "f16", "bf16"]
STYLES = [pytest.param(0, id="interleaved"), pytest.param(1, id="halves")]


def angles_of(rng, n_rows, n_pairs):
    turn = rng.uniform(0, 6, (n_rows, n_pairs))
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1).reshape(n_rows, -1).astype(np.float32)


def turned_or_not(heads, angles, n_pairs, style):
    """Rotated heads and their bound; without angles they are as they were."""
    if angles is None:
        return heads, np.zeros(heads.shape)
    return ref.rope(heads, angles, n_pairs, style)


SHAPES = [
    pytest.param((1, 8, 1, 1, 1), id="1"),
    pytest.param((3, 20, 5, 40, 12), id="odd"),
    pytest.param((6, 32, 16, 64, 24), id="6x32"),
    pytest.param((5, 9, 4, 100, 32), id="rest"),
    pytest.param((2, 128, 32, 512, 128), id="deepseek"),
]


class Heads:
    """Queries and what absorbs them: kv_b [heads, n_plain + value_dim, rank], or its parts."""

    def __init__(self, rng, shape, form, number):
        self.n_heads, self.n_plain, self.n_pairs, self.rank, self.value_dim = shape
        self.is_transposed = form == "k_b"
        k = rng.standard_normal((self.n_heads, self.n_plain, self.rank))
        v = rng.standard_normal((self.n_heads, self.value_dim, self.rank))
        scale = 1 / np.sqrt(self.rank)
        if self.is_transposed:
            rows = k.swapaxes(1, 2).reshape(-1, self.n_plain) * scale
            self.w_k = ref.float_weight(number, rows)
            self.w_v = ref.float_weight(number, v.reshape(-1, self.rank) * scale)
            self.head_rows, self.first_row = (self.rank, self.value_dim), 0
            self.k = self.w_k.values.reshape(self.n_heads, self.rank, -1).swapaxes(1, 2)
            self.v = self.w_v.values.reshape(self.n_heads, -1, self.rank)
        else:
            both = np.concatenate([k, v], axis=1)
            self.w_k = self.w_v = ref.float_weight(number, both.reshape(-1, self.rank) * scale)
            self.head_rows, self.first_row = (both.shape[1],) * 2, self.n_plain
            values = self.w_k.values.reshape(both.shape)
            self.k, self.v = values[:, : self.n_plain], values[:, self.n_plain :]

    def query(self, target, rows, angles, style, threads=1, **part):
        out = poisoned((len(rows), self.n_heads * (self.rank + 2 * self.n_pairs)))
        sizes = (self.n_heads, self.n_plain, self.n_pairs, self.rank, style, self.head_rows[0])
        run(
            "latent_query",
            [rows, self.w_k, angles, out],
            pack_params("latent_query", *sizes, int(self.is_transposed)),
            plain_step(len(rows)),
            On(target, threads, row_class="many"),
            **part,
        )
        return out

    def expected_query(self, rows, angles, style):
        heads = rows.astype(np.float64).reshape(len(rows), self.n_heads, -1)
        plain = heads[..., : self.n_plain]
        absorbed = np.einsum("rhj,hji->rhi", plain, self.k)
        magnitude = np.einsum("rhj,hji->rhi", np.abs(plain), np.abs(self.k))
        turned, bound = turned_or_not(heads[..., self.n_plain :], angles, self.n_pairs, style)
        n = len(rows)
        return (
            np.concatenate([absorbed, turned], axis=2).reshape(n, -1),
            np.concatenate([ref.growth(self.n_plain + 2) * magnitude, bound], axis=2).reshape(n, -1)
            + self.n_plain * ref.TINY,
        )

    def value(self, target, rows, kind, threads=1, **part):
        out = ref.activation_array(kind, len(rows), self.n_heads * self.value_dim)
        sizes = (self.n_heads, self.rank, self.value_dim, self.head_rows[1], self.first_row)
        run(
            "latent_value",
            [rows, self.w_v, out],
            pack_params("latent_value", *sizes),
            plain_step(len(rows)),
            On(target, threads, kind, row_class="many"),
            **part,
        )
        return out

    def expected_value(self, rows):
        heads = rows.astype(np.float64).reshape(len(rows), self.n_heads, self.rank)
        magnitude = np.einsum("rhi,hji->rhj", np.abs(heads), np.abs(self.v))
        return (
            np.einsum("rhi,hji->rhj", heads, self.v).reshape(len(rows), -1),
            (ref.growth(self.rank / ref.LANES + 7) * magnitude).reshape(len(rows), -1)
            + self.rank * ref.TINY,
        )

    def rows(self, rng, n):
        width = self.n_heads * (self.n_plain + 2 * self.n_pairs)
        return rng.standard_normal((n, width)).astype(np.float32)
