"""What a grammar rules, beside llguidance's own matcher in Python."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.grammar import FreeText, Grammar, from_choice, from_lark, from_schema, mistakes
from akunu.grammar.vocabulary import constraint_of, grammar_vocabulary
from lines import each_line

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


def begin(model, constraint, prompt="Say: ", max_tokens=80, logprobs=None, **sampling):
    return model._native.start(
        np.array(model.tokenizer.encode(prompt), np.uint32),
        max_tokens=max_tokens,
        stop_ids=sorted(model.tokenizer.stop_ids),
        sampling=akunu.SamplingOptions(**sampling).packed(seed=1),
        logit_bias={},
        logprobs=logprobs,
        constraint=constraint,
    )


def tokens_of(generation):
    tokens = []
    while (more := generation.next()) is not None:
        tokens += more
    return tokens


def is_allowed(mask, token):
    return bool(mask[token // 32] >> (token % 32) & 1)


@each_line("name", GRAMMARS)
def test_masks_have_the_bits_of_llguidances_own(model, vocabulary, their_tokenizer, name):
    """Along texts that are drawn among what is allowed."""
    rng = np.random.default_rng(5)
    vocab_size = model.config.vocab_size
    for _ in range(4):
        ours = constraint_of(vocabulary, from_lark(GRAMMARS[name]))
        theirs = their_matcher(their_tokenizer, GRAMMARS[name])
        for _ in range(120):
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


@each_line("name", GRAMMARS)
@each_line("temperature", [0.0, 1.0])
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


LONG = 'start: "The quick brown fox jumps over the lazy dog, " /[a-z]{3,9}/ ", and then the end."'


def raw(vocabulary, grammar, *, after=None, drafts=True):
    return _core.Constraint(vocabulary, grammar.llguidance, after, drafts)


@each_line("temperature", [0.0, 1.0])
@each_line("lark", [LONG, GRAMMARS["schema"], GRAMMARS["accents"]])
def test_drafted_rows_give_the_text_that_single_rows_give(model, vocabulary, lark, temperature):
    """Alone, and side by side with others that are free or ruled."""
    grammar = from_lark(lark)
    sampling = {"temperature": temperature, "repetition_penalty": 1.1}
    alone = begin(model, raw(vocabulary, grammar, drafts=False), **sampling)
    expected = tokens_of(alone)
    free_expected = tokens_of(begin(model, None, "Once upon a time", 40, temperature=temperature))
    assert tokens_of(begin(model, raw(vocabulary, grammar), **sampling)) == expected
    free = begin(model, None, "Once upon a time", 40, temperature=temperature)
    ruled = [begin(model, raw(vocabulary, grammar), **sampling) for _ in range(3)]
    assert [tokens_of(each) for each in ruled] == [expected] * 3
    assert tokens_of(free) == free_expected
    assert alone.finish_reason == ruled[0].finish_reason


def taken_together(generation, n):
    """How many of the first n tokens came in one step with the token before."""
    times = [generation.completion_seconds(i + 1) for i in range(n)]
    return sum(earlier == later for earlier, later in pairwise(times))


@each_line("temperature", [0.0, 1.0])
@each_line("lark", [LONG, GRAMMARS["schema"], GRAMMARS["rules"]])
def test_drafted_rows_have_the_logprobs_of_single_rows(model, vocabulary, lark, temperature):
    """Bit for bit, and of the token that was chosen, whatever was drafted in its place."""
    grammar = from_lark(lark)
    settings = {"temperature": temperature, "logprobs": 5}
    single = begin(model, raw(vocabulary, grammar, drafts=False), **settings)
    tokens = tokens_of(single)
    drafted = begin(model, raw(vocabulary, grammar), **settings)
    assert tokens_of(drafted) == tokens
    n = len(tokens)
    (chosen, *best), (single_chosen, *single_best) = drafted.logprobs(0, n), single.logprobs(0, n)
    np.testing.assert_array_equal(chosen, single_chosen)
    for ours, theirs in zip(best, single_best, strict=True):
        np.testing.assert_array_equal(ours[:, :5], theirs[:, :5])
    assert taken_together(single, n) == 0
    if lark != GRAMMARS["rules"]:
        assert taken_together(drafted, n) > 2, "tokens were drafted"


@pytest.mark.parametrize("stop", ["The", "wn f", "dog, ", ", and", "end"])
def test_stop_strings_end_drafted_text_as_they_end_other_text(model, monkeypatch, stop):
    options = {
        "regex": r"The quick brown fox jumps over the lazy dog, [a-z]{3,9}, and then the end\.",
        "stop": stop,
        "max_tokens": 60,
        "temperature": 1.0,
        "seed": 4,
        "logprobs": 2,
    }
    drafted = model.generate("Say: ", **options)
    pieces = list(model.generate("Say: ", stream=True, **options))
    with monkeypatch.context() as patch:
        patch.setattr(
            "akunu.grammar.vocabulary.constraint_of",
            lambda vocabulary, grammar: raw(vocabulary, grammar, drafts=False),
        )
        single = model.generate("Say: ", **options)
    assert drafted == single == "".join(pieces)
    assert stop not in single
    assert drafted.finish_reason == single.finish_reason == "stop"
    assert drafted.token_ids == single.token_ids
    assert drafted.logprobs == single.logprobs


def test_forced_tokens_end_where_max_tokens_does(model, vocabulary):
    whole = tokens_of(begin(model, raw(vocabulary, from_lark(LONG))))
    for n in (1, 2, 5, len(whole) - 1):
        generation = begin(model, raw(vocabulary, from_lark(LONG)), max_tokens=n)
        assert tokens_of(generation) == whole[:n]
        assert generation.finish_reason == "length"
    generation = begin(model, raw(vocabulary, from_lark(LONG)), max_tokens=len(whole))
    assert tokens_of(generation) == whole
    assert generation.finish_reason == "stop"  # nothing could follow


def test_a_text_is_free_up_to_the_place_where_its_grammar_begins(model, vocabulary):
    free = tokens_of(begin(model, None, "Hello", 30))
    trigger = model.tokenizer.decode(free[3:5])
    for until in ([trigger.encode()], []), ([], [tuple(free[3:5])]):
        constraint = raw(vocabulary, from_lark('start: " yes" | " no"'), after=(*until, None, ()))
        generation = begin(model, constraint, "Hello", 30)
        tokens = tokens_of(generation)
        text = model.tokenizer.decode(tokens)
        assert text.startswith(model.tokenizer.decode(free[:5]).split(trigger)[0] + trigger)
        assert text.split(trigger)[-1] in (" yes", " no")
        assert generation.finish_reason == "stop"


def test_what_a_token_has_behind_the_trigger_belongs_to_the_grammar(model, vocabulary):
    """A token's last byte is the grammar's first, and not free any more."""
    free = tokens_of(begin(model, None, "Hello", 30))
    text = model.tokenizer.token_bytes(free[2])
    assert len(text) >= 2
    constraint = raw(
        vocabulary,
        from_lark(f"start: {json.dumps(text[-1:].decode())} /[0-9]/"),
        after=([model.tokenizer.decode_bytes(free[:3])[-len(text) - 1 : -1]], [], None, ()),
    )
    tokens = tokens_of(begin(model, constraint, "Hello", 30))
    assert tokens[:3] == free[:3]
    assert model.tokenizer.decode(tokens[3:]).isdigit()


@pytest.mark.parametrize("most", [0, 1, 7])
def test_after_so_many_free_tokens_the_end_of_the_free_text_is_written(model, vocabulary, most):
    free = tokens_of(begin(model, None, "Hello", 30))
    then = tuple(vocabulary.tokens_of(b" stop here:"))
    constraint = raw(vocabulary, from_lark('start: "1" | "2"'), after=([], [then], most, then))
    tokens = tokens_of(begin(model, constraint, "Hello", 30))
    assert tokens[:most] == free[:most]
    assert tuple(tokens[most : most + len(then)]) == then
    assert model.tokenizer.decode(tokens[most + len(then) :]) in ("1", "2")


def test_a_budget_needs_no_grammar(model):
    free = tokens_of(begin(model, None, "Hello", 30))
    then = tuple(model.tokenizer.encode(" stop.", add_special=False))
    constraint = _core.Constraint(None, "", ([], [then], 4, then))
    tokens = tokens_of(begin(model, constraint, "Hello", 30))
    assert tokens[:4] == free[:4]
    assert tuple(tokens[4 : 4 + len(then)]) == then
    assert len(tokens) > 4 + len(then)
    # It goes on as any text with these tokens does.
    prompt = model.tokenizer.encode("Hello") + tokens[: 4 + len(then)]
    assert tokens[4 + len(then)] == int(model.logits(prompt, last=1)[0].argmax())


def test_a_dead_end_ends_its_own_text_with_an_error(model, vocabulary):
    banned = vocabulary.tokens_of(b"yes")
    assert len(banned) >= 1
    start = model._native.start
    constraint = raw(vocabulary, from_lark('start: "yes"'))
    mask = constraint.fill([], model.config.vocab_size)
    allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    dead = start(
        np.array(model.tokenizer.encode("Hi"), np.uint32),
        max_tokens=9,
        stop_ids=[],
        sampling=akunu.SamplingOptions().packed(1),
        logit_bias=dict.fromkeys(map(int, allowed), -np.inf),
        constraint=constraint,
    )
    other = begin(model, None, "Hello", 20)
    with pytest.raises(akunu.DeadEndError, match="no token to choose that the grammar allows"):
        tokens_of(dead)
    assert len(tokens_of(other)) == 20


def test_an_error_is_never_lost_between_two_looks(model, vocabulary):
    """A text may fail at any time, also while a look waits for the interpreter's lock."""
    grammar = from_lark('start: "yes"')
    mask = raw(vocabulary, grammar).fill([], model.config.vocab_size)
    allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    for _ in range(120):
        dead = model._native.start(
            np.array([1], np.uint32),
            max_tokens=2,
            stop_ids=[],
            sampling=akunu.SamplingOptions().packed(1),
            logit_bias=dict.fromkeys(map(int, allowed), -np.inf),
            constraint=raw(vocabulary, grammar),
        )
        with busy_interpreter(), pytest.raises(akunu.DeadEndError):
            looked_at_until_over(dead)


def looked_at_until_over(generation):
    while generation.next(timeout_ms=0) == []:  # None: it is over, and ended well
        pass


@contextmanager
def busy_interpreter():
    """Another thread that wants the interpreter's lock all the time."""
    is_over = threading.Event()

    def work():
        while not is_over.is_set():
            pass

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_what_cannot_be_compiled_is_refused(vocabulary):
    with pytest.raises(akunu.ArgumentError, match=r"grammar cannot be compiled.*unknown name"):
        constraint_of(vocabulary, from_lark("start: nothing"))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("root ::= <nope>", 'no control token of that name; it has .* is written "<nope>"'),
        ("start: <im_end>", r"<im_end> is a token by its name.*it has <\|im_end\|>"),
    ],
)
def test_rules_with_a_token_that_the_model_lacks_are_refused_in_plain_words(model, rules, message):
    with pytest.raises(akunu.ArgumentError, match=message):
        model.generate("Hi", grammar=rules)


@each_line(
    ("make", "message"),
    [
        (lambda: Grammar(llguidance=5), "llguidance is 5; it must be a text"),
        (lambda: Grammar(llguidance="x", schema=5), "schema is 5; it must be a text"),
        (lambda: Grammar(after="x"), "after is 'x'; it must be a FreeText or None"),
        (lambda: Grammar(), "needs llguidance .rules. or after .free text."),
        (lambda: FreeText(most_tokens=-3), "most_tokens is -3; it must be an integer from 0 to"),
        (lambda: FreeText(most_tokens=1.5), "most_tokens is 1.5; it must be an integer from 0 to"),
        (lambda: FreeText(until="</think>"), "until is '</think>'; it must be a tuple of texts"),
        (lambda: FreeText(until=("",)), "until is ''; .* none of them empty"),
        (lambda: FreeText(until=("\ud800",)), "until is .*; it must be a tuple of texts"),
        (lambda: FreeText(until=((3, -1),)), "a token of until is -1; it must be an integer"),
        (lambda: FreeText(then="x", most_tokens=1), "then is 'x'; it must be a tuple of token ids"),
        (lambda: FreeText(then=(1,)), "then is set; it needs most_tokens"),
        (lambda: mistakes("a", "x"), "grammar is 'a'; it must be a Grammar that from_schema made"),
        (lambda: mistakes(from_schema({}), 5), "text is 5; it must be a str"),
        (lambda: mistakes(from_lark('start: "a"'), "a"), "not made from a schema"),
        (lambda: from_schema({}, weaken="x"), "weaken is 'x'; it must be True or False"),
        (lambda: from_schema({}, compact=None), "compact is None; it must be True or False"),
        (lambda: from_lark(5), "text is 5; it must be a str"),
        (lambda: from_choice({"a": 1}), "choice must be a list of texts, not {'a': 1}"),
    ],
)
def test_what_no_grammar_can_be_made_of_is_refused_at_once(make, message):
    with pytest.raises(akunu.ArgumentError, match=message):
        make()


def test_tokens_of_free_text_are_those_of_the_model(model):
    for free in (FreeText(until=((5, 99999),)), FreeText(then=(99999,), most_tokens=1)):
        with pytest.raises(akunu.ArgumentError, match="99999; token ids of this model go from 0"):
            model.generate("Hi", grammar=Grammar(after=free))


def test_free_text_may_be_given_in_lists():
    assert FreeText(until=["a", [1, 2]], then=[3], most_tokens=4) == FreeText(
        until=("a", (1, 2)), then=(3,), most_tokens=4
    )


def test_a_constraint_rules_one_text(model, vocabulary):
    constraint = raw(vocabulary, from_lark('start: "a"'))
    tokens_of(begin(model, constraint))
    with pytest.raises(akunu.ArgumentError, match="rules a text already"):
        begin(model, constraint)


def test_columns_without_a_token_are_never_allowed(model):
    wider = grammar_vocabulary(model.tokenizer, model.config.vocab_size + 70)
    constraint = constraint_of(wider, from_lark(r"start: /(.|\n)*/"))
    mask = constraint.fill([], model.config.vocab_size + 70)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    assert bits[: model.tokenizer.vocab_size].any()
    assert not bits[model.tokenizer.vocab_size :].any()
