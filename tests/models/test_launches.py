"""How many commands a layer is: what `fuse` makes of each architecture, on each device.

A layer that grows a norm or a bias must not fall apart into what it was before fusing. Each number
has its reason beside it; a change of one is a change of speed.
"""

from __future__ import annotations

from collections.abc import Callable

from engine import GPUS, opened
from random_models import KINDS, ModelCase

from lines import each_line

Cases = Callable[..., ModelCase]

# On the CPU: norm | q, k, v with biases | Q/K norms, RoPE and cache | attention | output and add |
# norm | gate, up and activation | down and add. Prompts rotate and store q, k and v where they are
# made. On a GPU one row is: norm with q, k, v | all of attention | output and add | norm with gate,
# up and activation | down and add. Its prompts norm once for all tiles, keep the cache's writing
# apart from attention, which reads it from memory, and the activation from gate and up.
ROW_CLASSES = ("single", "few", "many")
CPU = dict(zip(ROW_CLASSES, (8, 8, 7), strict=True))
GPU = dict(zip(ROW_CLASSES, (5, 5, 9), strict=True))
# More than those, on the CPU and on a GPU. A bias of the output and one of down are an addition
# each, and keep that to the residual from the matmul; those of gate and up keep the activation from
# it, where it would be there (not in prompts on a GPU). A norm behind attention and one behind the
# feed-forward network are a `norm_add` each, in the place of the matmul's addition.
MORE = {
    "llama-linear": {
        "cpu": dict.fromkeys(ROW_CLASSES, 5),
        "gpu": {"single": 5, "few": 5, "many": 4},
    },
    "gemma2": {"cpu": dict.fromkeys(ROW_CLASSES, 2), "gpu": dict.fromkeys(ROW_CLASSES, 2)},
    "gemma3": {"cpu": dict.fromkeys(ROW_CLASSES, 2), "gpu": dict.fromkeys(ROW_CLASSES, 2)},
}

ARCHITECTURES = sorted(kind for kind in KINDS if not kind.endswith(("-32", "-256")))


def launches(case: ModelCase, device: str, row_class: str) -> list[list[str]]:
    """The labels of each layer's commands."""
    with opened(case.path, device=device, kv_type="f16") as model:
        labels = model._native.labels(row_class)
    layers = range(case.spec.n_layers)
    return [[label for label in labels if label.startswith(f"layer {i} ")] for i in layers]


@each_line("row_class", ROW_CLASSES)
@each_line("kind", ARCHITECTURES)
def test_a_layer_on_the_cpu_is_as_many_commands(
    model_case: Cases, kind: str, row_class: str
) -> None:
    expected = CPU[row_class] + (MORE[kind]["cpu"][row_class] if kind in MORE else 0)
    for layer in launches(model_case(kind, "f16"), "cpu", row_class):
        assert len(layer) == expected, layer


@each_line("gpu", GPUS)
@each_line("row_class", ROW_CLASSES)
@each_line("kind", ARCHITECTURES)
def test_a_layer_on_a_gpu_is_as_many_commands(
    model_case: Cases, kind: str, row_class: str, gpu: str
) -> None:
    expected = GPU[row_class] + (MORE[kind]["gpu"][row_class] if kind in MORE else 0)
    for layer in launches(model_case(kind, "f16"), gpu, row_class):
        assert len(layer) == expected, layer
