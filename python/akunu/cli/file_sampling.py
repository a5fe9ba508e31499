"""What a model's file recommends for sampling, where the person chose nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.model import Model
from akunu.options.text_options import SamplingOptions


def chat_sampling(model: Model, given: Mapping[str, Any]) -> SamplingOptions:
    """Return the options of a chat: what was passed, then what the file says, then the defaults.

    `given` is what the command line gave, as `options.given` returns it.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     chat_sampling(model, {"temperature": 0.5}).temperature
    0.5
    """
    return SamplingOptions(**{**model.sampling_defaults, **given})


def taken_from_file(model: Model, given: Mapping[str, Any]) -> str | None:
    """Return a line about the options that come from the file; None where it changes none.

    For people: "sampling settings from the model file: temperature 0.6, top_k 20".
    """
    plain = SamplingOptions()
    taken = [
        f"{name} {value:g}"
        for name, value in model.sampling_defaults.items()
        if name not in given and value != getattr(plain, name)
    ]
    return f"sampling settings from the model file: {', '.join(taken)}" if taken else None
