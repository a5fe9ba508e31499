"""A text on transformers that loses a run of its tokens: keys are turned by the model's own code.

text = Text(model, kv_type="f16")
text.read(tokens)
text.drop(first=20, by=100)
logits = text.read(more)
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray


class _Halves(transformers.DynamicCache):
    """Keys and values rounded to halves; keys before the factor of YaRN, as akunu has them."""

    def __init__(self, factors: Sequence[float]) -> None:
        super().__init__()
        self._factors = factors  # of each layer

    def update(
        self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **more: Any
    ) -> Any:
        kept = _rounded(key_states, self._factors[layer_idx]), _rounded(value_states)
        return super().update(*kept, layer_idx, *args, **more)


def _rounded(data: Any, factor: float = 1.0) -> Any:
    return (data / factor).half().float() * factor


class Text:
    """A model's cache of one text. Windows are masks here: no key is ever forgotten for one."""

    def __init__(self, model: Any, kv_type: str = "f32") -> None:
        """Begin an empty text; of "f16", what is cached and what is turned is rounded to halves."""
        self._model = model
        self._body = model.model
        self._factors = None
        self._cache = transformers.DynamicCache()
        if kv_type == "f16":
            self._factors = [self._factor(i) for i in range(len(self._body.layers))]
            self._cache = _Halves(self._factors)
        self._n = 0
        accepted = inspect.signature(model.forward).parameters
        self._name = "cache" if "cache" in accepted else "past_key_values"  # before 5.24

    def read(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Read more tokens; float32 logits `[n, vocab_size]`."""
        n = len(tokens)
        with torch.inference_mode():
            out = self._model(
                input_ids=torch.tensor([list(tokens)]),
                position_ids=torch.arange(self._n, self._n + n)[None],
                use_cache=True,
                **{self._name: self._cache},
            )
        self._n += n
        result: NDArray[np.float32] = out.logits[0].numpy()
        return result

    def drop(self, first: int, by: int, *, turned_by: int | None = None) -> None:
        """Drop `by` tokens from `first` on: what is behind them moves down.

        `turned_by`: its keys turn by so many positions instead, a mistake.
        """
        for i, layer in enumerate(self._cache.layers):
            attention = self._body.layers[i].self_attn
            if is_latent := hasattr(attention, "kv_lora_rank"):
                # `keys` are what keys and values are made of; `values` are what rotates of keys.
                layer.keys = _without(layer.keys, first, by)
            else:
                layer.values = _without(layer.values, first, by)
            name = "values" if is_latent else "keys"
            rotated = getattr(layer, name)
            moved = rotated[:, :, first + by :]
            if _rotates(self._body, attention):
                by_here = by if turned_by is None else turned_by
                moved = _turned(self._body, attention, i, moved, by_here)
                if self._factors is not None:
                    moved = _rounded(moved, self._factors[i])
            setattr(layer, name, torch.cat([rotated[:, :, :first], moved], dim=-2))
        self._n -= by

    def _factor(self, i: int) -> float:
        """What multiplies cached keys of layer i once they are rotated."""
        attention = self._body.layers[i].self_attn
        if hasattr(attention, "kv_lora_rank") or not _rotates(self._body, attention):
            return 1.0
        return _attention_scaling(self._body, i)


def _without(data: Any, first: int, by: int) -> Any:
    return torch.cat([data[:, :, :first], data[:, :, first + by :]], dim=-2)


def _rotates(body: Any, attention: Any) -> bool:
    if getattr(body, "rotary_emb", None) is None:
        return False
    if type(attention).__name__ == "Cohere2Attention":
        return attention.sliding_window is not None
    if type(attention).__name__ == "Exaone4Attention" and attention.sliding_window is not None:
        return bool(attention.is_sliding)
    return bool(getattr(attention, "use_rope", True))


def _kind(body: Any, i: int) -> list[str]:
    """What the rotary function of a model with two of them wants to know of layer i."""
    has_kinds = "layer_type" in inspect.signature(body.rotary_emb.forward).parameters
    return [body.config.layer_types[i]] if has_kinds else []


def _attention_scaling(body: Any, i: int) -> float:
    return float(getattr(body.rotary_emb, "_".join([*_kind(body, i), "attention_scaling"])))


def _turned(body: Any, attention: Any, i: int, keys: Any, by: int) -> Any:
    """Keys `[1, heads, n, dim]` of layer i, turned `by` positions back."""
    positions = torch.tensor([[-by]])
    rotary, kind = body.rotary_emb, _kind(body, i)
    # YaRN and LongRoPE multiply cosine and sine by attention_scaling; cached keys have it already.
    factor = _attention_scaling(body, i)
    of_model = vars(sys.modules[type(attention).__module__])
    with torch.inference_mode():
        turn = rotary(keys, positions, *kind)
        if isinstance(turn, torch.Tensor):  # complex numbers, of pairs side by side (DeepSeek-V2)
            return of_model["apply_rotary_emb"](keys, keys, turn / factor)[1]
        cosine, sine = (each / factor for each in turn)
        rotate = of_model["apply_rotary_pos_emb"]
        if "k" in inspect.signature(rotate).parameters:
            return rotate(keys, keys, cosine, sine)[1]
        return rotate(keys, cosine, sine)  # Gemma 4
