"""Ember, the model inside the package, through the whole engine.

Its greedy answers are followed token by token by the forward pass in double on the dequantised
weights. Activations are rounded to int8 in the engine, so a token may differ from the reference's
where two logits are closer than that noise; the reference says how large the noise is, by running
with and without that rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import (
    BOUND_F16_CACHE,
    GPUS,
    chunked,
    finished,
    nightly_but,
    opened,
    random_chunks,
    relative_rms,
    start,
)
from numpy_forward import NumpyModel, Variant

import akunu
from akunu.templates.chat_template import ChatTemplate
from arithmetic import is_one_arithmetic
from lines import each_line

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"

QUESTIONS = [
    "Hello! Who are you?",
    "What is 12 + 7?",
    "Spell the word apple.",
    "What is the capital of Italy?",
]


# Asked as people ask, and what is right by arithmetic, spelling or the tables.
RIGHT = {
    "What is 358 + 467?": "358 + 467 = 825",
    "901 minus 14": "901 - 14 = 887",
    "What is 7 times 43?": "7 × 43 = 280 + 21 = 301",
    "Sort 71, 8, 350, 29": "8, 29, 71, 350",
    "Spell the word lantern.": "l-a-n-t-e-r-n",
    "What is the capital of Italy?": "The capital of Italy is Rome.",
    "What day comes 10 days after Friday?": "10 days = 1 × 7 + 3: Monday",
    "Who is the president of Peru?": "Sorry, I don't know that. I am a small model.",
}


@pytest.fixture(scope="module")
def reference() -> NumpyModel:
    return NumpyModel(EMBER)


@pytest.fixture(scope="module")
def ember() -> Iterator[Any]:
    with opened(EMBER, kv_type="f16") as model:
        yield model


def prompt_of(ember: Any, question: str) -> list[int]:
    text = ChatTemplate.of(ember.tokenizer).render([{"role": "user", "content": question}])
    ids: list[int] = ember.tokenizer.encode(text, add_special=False, parse_special=True)
    return ids


@pytest.mark.parametrize("question", nightly_but(QUESTIONS, QUESTIONS[:2]))
def test_every_token_of_an_answer_is_the_most_likely_one(
    ember: Any, reference: NumpyModel, question: str
) -> None:
    prompt = prompt_of(ember, question)
    answer = finished(start(ember, prompt, 60, stop_ids=sorted(ember.tokenizer.stop_ids)))
    assert answer, "the first token ended the answer"
    read = prompt + answer[:-1]
    exact = reference.logits(read)[len(prompt) - 1 :]
    rounded = reference.logits(read, Variant(int8_activations=True, f16_cache=True))
    noise = np.sqrt(np.mean((rounded[len(prompt) - 1 :] - exact) ** 2))
    # A difference of two logits carries twice the variance; five sigma.
    allowed = 5 * np.sqrt(2) * noise
    chosen = np.take_along_axis(exact, np.array(answer)[:, None], axis=1)[:, 0]
    behind = exact.max(axis=1) - chosen
    assert (behind <= allowed).all()
    # The comparison has something to say: most tokens have no rival that close.
    second, first = np.sort(exact, axis=1)[:, -2:].T
    assert np.mean(first - second > allowed) >= 0.5


def test_logits_err_by_the_noise_of_int8_activations(ember: Any, reference: NumpyModel) -> None:
    tokens = [token for question in QUESTIONS for token in prompt_of(ember, question)]
    exact = reference.logits(tokens)
    rounded = reference.logits(tokens, Variant(int8_activations=True, f16_cache=True))
    noise = relative_rms(rounded, exact)
    logits = ember.logits(tokens)
    # 1.003 of it was measured. Fewer logits than in test_quantised.py: the estimate is coarser.
    assert relative_rms(logits, exact) <= 1.15 * noise
    generated = chunked(ember, tokens, random_chunks(len(tokens), 16, seed=1), "generated")
    assert relative_rms(generated, exact) <= 1.15 * noise
    if is_one_arithmetic("q8_0", kv_type="f16"):
        np.testing.assert_array_equal(generated, logits)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("question", nightly_but(list(RIGHT)[:3], ["901 minus 14"]))
def test_a_gpu_gives_the_answer_of_the_exact_forward_pass(
    reference: NumpyModel, gpu: str, question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Activations stay float32 there, so only the cache's halves and rounding are left."""
    with opened(EMBER, device=gpu, kv_type="f16") as model:
        prompt = prompt_of(model, question)
        answer = finished(start(model, prompt, 40, stop_ids=sorted(model.tokenizer.stop_ids)))
        text = model.tokenizer.decode(answer)
    exact = reference.logits(prompt + answer[:-1])[len(prompt) - 1 :]
    second, first = np.sort(exact, axis=1)[:, -2:].T
    chosen = np.take_along_axis(exact, np.array(answer)[:, None], axis=1)[:, 0]
    with capsys.disabled():
        margin = (first - second).min()
        print(f"\n{question} {text.strip()} (closest rival {margin:.3f} behind)", end=" ")
    assert text.strip() == RIGHT[question]
    assert (first - chosen <= BOUND_F16_CACHE * np.abs(exact).max()).all()


@each_line("question", RIGHT)
def test_it_answers_what_it_was_trained_for(question: str) -> None:
    with akunu.load("ember") as model:
        assert model.chat([{"role": "user", "content": question}]).strip() == RIGHT[question]
