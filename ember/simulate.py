"""Weights as Q8_0 or Q4_0 will store them, so that the last steps train the file that ships."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from .model import Ember


def q8_0(weight: Tensor) -> Tensor:
    blocks = weight.reshape(-1, 32)
    scale = blocks.abs().amax(1, keepdim=True) / 127
    levels = (blocks / scale.clamp_min(1e-12)).round()
    return (levels * scale.half().float()).reshape(weight.shape)


def q4_0(weight: Tensor) -> Tensor:
    blocks = weight.reshape(-1, 32)
    largest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    scale = largest / -8
    inverse = torch.where(scale == 0, 0, 1 / scale)
    levels = (blocks * inverse + 8.5).floor().clamp(0, 15) - 8
    return (levels * scale.half().float()).reshape(weight.shape)


@contextmanager
def stored_as(model: Ember, rounding) -> Iterator[None]:
    """Inside, the weights are the rounded ones; after, the exact ones again: straight-through."""
    weights = [model.embedding, *model.matrices()]
    exact = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight in weights:
            weight.copy_(rounding(weight))
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, kept in zip(weights, exact, strict=True):
                weight.copy_(kept)
