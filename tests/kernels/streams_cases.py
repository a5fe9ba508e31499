"""What AltUp (Gemma 3n) has around a layer, in float64, by the formulas of its paper's authors."""

from __future__ import annotations

import numpy as np
import reference as ref


class Streams:
    """The streams of some rows, and a layer's router and coefficients."""

    def __init__(self, rng, rows, dim, n_streams, active=0, n_coefficients=None):
        self.rows, self.dim, self.n, self.active = rows, dim, n_streams, active
        self.epsilon = 1e-6
        self.x = rng.standard_normal((n_streams, rows, dim)).astype(np.float32)
        self.norm = rng.uniform(0.5, 1.5, dim).astype(np.float32)
        self.router = (rng.standard_normal((n_streams, dim)) * dim**0.5).astype(np.float32)
        shape = (n_coefficients or n_streams, n_streams)
        self.coefficients = rng.standard_normal(shape).astype(np.float32)

    def operands(self):
        """`stream` and `others` as they lie in memory, copies of them."""
        others = self.x[1:].transpose(1, 0, 2).reshape(self.rows, -1).copy()
        return self.x[0].copy(), others

    def together(self, stream, others):
        """The other way round: [streams, rows, dim]."""
        rest = others.reshape(self.rows, self.n - 1, self.dim).transpose(1, 0, 2)
        return np.concatenate([stream[None], rest])

    def factors(self, y):
        """coefficients @ tanh(router @ (norm(y) / dim)), and how far float32 may be off."""
        normed, _ = ref.rms_norm(y, self.norm, self.epsilon)
        products = normed[:, None, :] * self.router.astype(np.float64) / self.dim
        routed = np.tanh(products.sum(axis=-1))
        apart = np.abs(products).sum(axis=-1) * ref.growth(self.dim + 8) + 8 * ref.UNIT
        by = self.coefficients.astype(np.float64)
        sizes = np.abs(routed) @ np.abs(by).T
        return routed @ by.T, apart @ np.abs(by).T + sizes * ref.growth(self.n + 2)
