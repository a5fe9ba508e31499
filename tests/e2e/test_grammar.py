"""What a grammar rules, beside llguidance's own matcher in Python."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import akunu
from akunu.grammar import from_lark
from akunu.grammar.vocabulary import constraint_of, grammar_vocabulary

PERSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["new", "old", "überfällig"]}},
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": False,
    }
)
GRAMMARS = {
    "choice": 'start: "yes" | "no" | "yes, but not today"',
    "regex": r"start: /[0-9]{3}-[0-9]{4}( ext\. [0-9]+)?/",
    "schema": f"start: %json {PERSON}",
    "rules": 'start: item ("," item)*\nitem: /[a-z]+/ "=" value\nvalue: /[0-9]+/ | "(" start ")"',
    "accents": 'start: "Grüße aus Köln 😀" | /[äöü]{2,4}/',
}


@pytest.fixture(scope="module")
def model():
    with akunu.load() as model:
        yield model


@pytest.fixture(scope="module")
def vocabulary(model):
    return grammar_vocabulary(model.tokenizer, model.config.vocab_size)


@pytest.fixture(scope="module")
def their_tokenizer(model, vocabulary):
    """llguidance's tokenizer of the same tokens, by way of its Python classes."""
    import llguidance

    tokenizer = model.tokenizer
    ids = range(tokenizer.vocab_size)
    wrapped = SimpleNamespace(
        eos_token_id=min(tokenizer.stop_ids),
        bos_token_id=None,
        tokens=[tokenizer.token_bytes(id) for id in ids]
        + [b""] * (model.config.vocab_size - len(ids)),
        special_token_ids=sorted(tokenizer.control_ids),
    )

    class Callable(SimpleNamespace):
        def __call__(self, text: bytes) -> list[int]:
            return vocabulary.tokens_of(text)

    wrapper = llguidance._tokenizer.TokenizerWrapper(Callable(**vars(wrapped)))
    return llguidance.LLTokenizer(
        wrapper, n_vocab=model.config.vocab_size, eos_token=sorted(tokenizer.stop_ids)
    )


def their_matcher(their_tokenizer, lark):
    import llguidance

    matcher = llguidance.LLMatcher(their_tokenizer, llguidance.LLMatcher.grammar_from_lark(lark))
    assert not matcher.get_error()
    return matcher


def their_mask(matcher, vocab_size):
    import llguidance.numpy

    mask = llguidance.numpy.allocate_token_bitmask(1, vocab_size)
    llguidance.numpy.fill_next_token_bitmask(matcher, mask)
    return mask.view(np.uint32)


def begin(model, constraint, prompt="Say: ", max_tokens=80, **sampling):
    return model._native.start(
        np.array(model.tokenizer.encode(prompt), np.uint32),
        max_tokens=max_tokens,
        stop_ids=sorted(model.tokenizer.stop_ids),
        sampling=akunu.SamplingOptions(**sampling).packed(seed=1),
        logit_bias={},
        constraint=constraint,
    )


def tokens_of(generation):
    tokens = []
    while (more := generation.next()) is not None:
        tokens += more
    return tokens


def is_allowed(mask, token):
    return bool(mask[token // 32] >> (token % 32) & 1)


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_have_the_bits_of_llguidances_own(model, vocabulary, their_tokenizer, name):
    """Along texts that are drawn among what is allowed."""
    rng = np.random.default_rng(5)
    vocab_size = model.config.vocab_size
    for _ in range(4):
        ours = constraint_of(vocabulary, from_lark(GRAMMARS[name]))
        theirs = their_matcher(their_tokenizer, GRAMMARS[name])
        for _ in range(40):
            mask = ours.fill([], vocab_size)
            assert mask.tobytes() == their_mask(theirs, vocab_size).tobytes()
            forced = ours.forced(16)
            assert forced == theirs.compute_ff_tokens()[:16]
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            token = int(rng.choice(allowed))
            if token in model.tokenizer.stop_ids:
                break
            assert ours.accept(token)
            assert theirs.consume_token(token)
            assert ours.is_over == theirs.is_stopped()
            if ours.is_over:
                break


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_token_that_is_chosen_is_one_that_llguidance_takes(
    model, vocabulary, their_tokenizer, name, temperature
):
    constraint = constraint_of(vocabulary, from_lark(GRAMMARS[name]))
    generation = begin(model, constraint, temperature=temperature)
    tokens = tokens_of(generation)
    theirs = their_matcher(their_tokenizer, GRAMMARS[name])
    assert theirs.validate_tokens(tokens) == len(tokens)
    theirs.consume_tokens(tokens)
    assert generation.finish_reason == ("stop" if theirs.is_accepting() else "length")


def test_the_end_of_the_text_may_come_exactly_where_the_grammar_accepts(model, vocabulary):
    constraint = constraint_of(vocabulary, from_lark('start: "yes" | "yes, but"'))
    ends = sorted(model.tokenizer.stop_ids)
    seen = []
    for token in vocabulary.tokens_of(b"yes, but"):
        mask = constraint.fill([], model.config.vocab_size)[0]
        seen.append([is_allowed(mask, end) for end in ends])
        assert constraint.accept(token)
    text = b""
    for token, allowed in zip(vocabulary.tokens_of(b"yes, but"), seen, strict=True):
        assert allowed == [text == b"yes"] * len(ends)
        text += model.tokenizer.token_bytes(token)
    assert constraint.is_over  # nothing but the end can follow: the text ends without its token
    assert not constraint.error


def test_control_tokens_are_no_text(model, vocabulary):
    """A grammar of any text, their names included, allows them nowhere but at its end."""
    constraint = constraint_of(vocabulary, from_lark(r"start: /(.|\n)*/"))
    mask = constraint.fill([], model.config.vocab_size)[0]
    controls = model.tokenizer.control_ids
    assert {id for id in controls if is_allowed(mask, id)} == model.tokenizer.stop_ids
    assert is_allowed(mask, vocabulary.tokens_of(b"Hello")[0])
