"""Ember's greedy replies are those of Hugging Face transformers, on the same weights in float32.

The packaged file is dequantised; the engine reads what came out as a file in F32, transformers gets
the same tensors. The dialogues are from the held-out side of what Ember is trained from: another
seed than the evaluation's. A reply is followed to its end, or to the first token where the two
best logits are so close that the errors that both may make could swap them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, finished, opened, relative_error, start
from gguf.quants import dequantize
from gguf_file import gguf_name
from random_models import ModelSpec, Weights, random_weights

import akunu
from akunu.templates.chat_template import ChatTemplate

sys.path.insert(0, str(Path(__file__).parents[2]))

from ember import mixture
from ember.dialogue import Dialogue, Draw
from tools.compare.quantise import dequantise

pytestmark = pytest.mark.oracle

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
N_DIALOGUES = 30
MOST_TOKENS = 120
# Each of the two sides may err by the bound in each of the two logits.
MARGIN = 4 * BOUND_F32_CACHE

Measured = Callable[[str, str, float], None]


def specification(reader: gguf.GGUFReader) -> ModelSpec:
    """What the file says of the model's shape."""
    meta = {name: field.contents() for name, field in reader.fields.items()}
    assert meta["general.architecture"] == "qwen3"
    return ModelSpec(
        architecture="qwen3",
        dim=meta["qwen3.embedding_length"],
        n_layers=meta["qwen3.block_count"],
        n_heads=meta["qwen3.attention.head_count"],
        n_kv_heads=meta["qwen3.attention.head_count_kv"],
        head_dim=meta["qwen3.attention.key_length"],
        ffn_dim=meta["qwen3.feed_forward_length"],
        vocab_size=len(meta["tokenizer.ggml.tokens"]),
        context_length=meta["qwen3.context_length"],
        norm_epsilon=meta["qwen3.attention.layer_norm_rms_epsilon"],
        rope_theta=meta["qwen3.rope.freq_base"],
        tied=all(tensor.name != "output.weight" for tensor in reader.tensors),
        qk_norm=True,
    )


def weights_of(reader: gguf.GGUFReader, spec: ModelSpec) -> Weights:
    """The file's tensors in float32, under Hugging Face's names; there are no others in it."""
    stored = {
        tensor.name: dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])
        for tensor in reader.tensors
    }
    names = random_weights(spec, seed=0).keys()
    weights = {name: stored.pop(gguf_name(name)).astype(np.float32) for name in names}
    assert not stored
    return weights


@pytest.fixture(scope="module")
def ember(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine, on Ember's weights in F32."""
    path = tmp_path_factory.mktemp("ember") / "ember-f32.gguf"
    dequantise(EMBER, path)
    with opened(path, kv_type="f32") as model:
        yield model


@pytest.fixture(scope="module")
def transformers_ember(oracle: Any) -> Any:
    """The same weights in transformers."""
    reader = gguf.GGUFReader(EMBER)
    spec = specification(reader)
    return oracle.load(spec, weights_of(reader, spec))


def dialogues() -> list[Dialogue]:
    draw = Draw("Hugging Face", held_out=True)
    return [mixture.one(draw) for _ in range(N_DIALOGUES)]


def prompt_of(model: Any, dialogue: Dialogue) -> list[int]:
    """Everything before the last reply."""
    asked = ChatTemplate.of(model.tokenizer).render(dialogue.messages[:-1], tools=dialogue.tools)
    ids: list[int] = model.tokenizer.encode(asked, add_special=False, parse_special=True)
    return ids


def certain(logits: Any) -> int:
    """How many positions of `[n, vocab_size]` come before the first that is too close to call."""
    second, first = np.sort(logits, axis=1)[:, -2:].T
    close = first - second < MARGIN * np.abs(logits).max(axis=1)
    return int(close.argmax()) if close.any() else len(logits)


def test_replies_are_those_of_hugging_face(
    ember: Any,
    oracle: Any,
    transformers_ember: Any,
    measured: Measured,
    told: Callable[[str], None],
) -> None:
    stop_ids = sorted(ember.tokenizer.stop_ids)
    n_compared = n_cut = 0
    families = set()
    for at, dialogue in enumerate(dialogues()):
        prompt = prompt_of(ember, dialogue)
        mine = finished(start(ember, prompt, MOST_TOKENS, stop_ids=stop_ids))
        theirs, logits = oracle.greedy(transformers_ember, prompt, MOST_TOKENS, stop_ids)
        n = min(certain(logits), len(theirs))
        ended = [token for token in theirs if token not in stop_ids]
        if n == len(theirs):
            assert mine == ended, dialogue.messages[-2]["content"]
        else:
            n_cut += 1
            assert mine[:n] == theirs[:n], dialogue.messages[-2]["content"]
        n_compared += n
        families.add(dialogue.family)
        read = prompt + theirs[:-1]
        error = relative_error(ember.logits(read)[len(prompt) - 1 :], logits)
        measured("Ember in F32, f32 cache", f"dialogue {at}", error)
        assert error <= BOUND_F32_CACHE
    told(f"Ember's replies: {n_compared} tokens compared, {n_cut} of {N_DIALOGUES} cut short")
    # The comparison has something to say.
    assert len(families) >= 8
    assert n_cut <= N_DIALOGUES // 10
    assert n_compared >= 10 * N_DIALOGUES
