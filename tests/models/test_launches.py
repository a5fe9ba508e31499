"""How many commands a layer is: what `fuse` makes of each architecture, on each device.

A layer that grows a norm or a bias must not fall apart into what it was before fusing. Each number has
its reason beside it; a change of one is a change of speed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine import GPUS, opened
from random_models import KINDS, ModelCase

Cases = Callable[..., ModelCase]

# On the CPU: norm | q, k, v with biases | Q/K norms, RoPE and cache | attention | output and add |
# norm | gate, up and activation | down and add. Prompts rotate and store q, k and v where they are
# made. On a GPU one row is: norm with q, k, v | all of attention | output and add | norm with gate, up
# and activation | down and add. Its prompts norm once for all tiles, keep the cache's writing apart
# from attention, which reads it from memory, and the activation from gate and up.
ROW_CLASSES = ("single", "few", "many")
CPU = dict(zip(ROW_CLASSES, (8, 8, 7), strict=True))
GPU = dict(zip(ROW_CLASSES, (5, 5, 9), strict=True))
# More than those: `output_bias` and biases of down keep their additions, two each, from the matmul;
# biases of gate and up keep the activation from it, where it would be there.
MORE_ON_CPU = {"llama-linear": {"single": 5, "few": 5, "many": 5}}
MORE_ON_GPU = {"llama-linear": {"single": 5, "few": 5, "many": 4}}

ARCHITECTURES = sorted(kind for kind in KINDS if not kind.endswith(("-32", "-256")))


def launches(case: ModelCase, device: str, row_class: str) -> list[list[str]]:
    """The labels of each layer's commands."""
    with opened(case.path, device=device, kv_type="f16") as model:
        labels = model._native.labels(row_class)
    layers = range(case.spec.n_layers)
    return [[label for label in labels if label.startswith(f"layer {i} ")] for i in layers]


@pytest.mark.parametrize("row_class", ROW_CLASSES)
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_layer_on_the_cpu_is_as_many_commands(
    model_case: Cases, kind: str, row_class: str
) -> None:
    expected = CPU[row_class] + MORE_ON_CPU.get(kind, {}).get(row_class, 0)
    for layer in launches(model_case(kind, "f16"), "cpu", row_class):
        assert len(layer) == expected, layer


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("row_class", ROW_CLASSES)
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_layer_on_a_gpu_is_as_many_commands(
    model_case: Cases, kind: str, row_class: str, gpu: str
) -> None:
    expected = GPU[row_class] + MORE_ON_GPU.get(kind, {}).get(row_class, 0)
    for layer in launches(model_case(kind, "f16"), gpu, row_class):
        assert len(layer) == expected, layer
