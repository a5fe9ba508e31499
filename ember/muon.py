"""Muon for the layers' matrices: momentum whose matrix is made orthogonal before it is applied."""

import torch
from torch import Tensor, nn


def orthogonal(matrices: Tensor) -> Tensor:
    """Five Newton-Schulz steps to the nearest orthogonal matrix. matrices: [n, rows, columns]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(
        self,
        matrices: list[nn.Parameter],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.05,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for matrix in group["params"]:
                by_shape.setdefault(matrix.shape, []).append(matrix)
            for shape, same in by_shape.items():
                state = [self.state[matrix] for matrix in same]
                for matrix, kept in zip(same, state, strict=True):
                    if "momentum" not in kept:
                        kept["momentum"] = torch.zeros_like(matrix)
                moving = [kept["momentum"] for kept in state]
                gradients = [matrix.grad for matrix in same]
                torch._foreach_lerp_(moving, gradients, 1 - momentum)
                ahead = torch._foreach_lerp(gradients, moving, momentum)
                updates = orthogonal(torch.stack(ahead)) * max(1.0, shape[0] / shape[1]) ** 0.5
                torch._foreach_mul_(same, 1 - lr * group["weight_decay"])
                torch._foreach_add_(same, list(updates.float().unbind()), alpha=-lr)
