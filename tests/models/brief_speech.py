"""A random Whisper model whose texts are soon over: for tests of what is around it.

Of noise, a plain random model (`speech_models.random_tensors`) hears segments of 20 ms, and finds
each of its texts unlikely: seconds of audio would take minutes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import speech_models as sm

SPEC = sm.SpeechSpec()


def write(folder: Path) -> str:
    """The directory of the model."""
    tensors = sm.random_tensors(SPEC)
    embedding, bias = (
        tensors[f"model.decoder.{name}"] for name in ("embed_tokens.weight", "layer_norm.bias")
    )
    towards = bias / np.square(bias).sum()  # what adds 1 to a token's logit
    embedding *= 4.0  # logits that differ by more: likely texts
    embedding[SPEC.token("<|endoftext|>")] += 14.0 * towards
    embedding[SPEC.first_timestamp :] -= 6.0 * towards
    return str(sm.write(folder, SPEC, tensors))
