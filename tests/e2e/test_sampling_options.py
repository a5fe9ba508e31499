"""What options of sampling do to a text."""

from __future__ import annotations

from typing import Any

import pytest

import akunu
from akunu.options.dry_breakers import breaker_words
from lines import each_line

PROMPT = "user\nTell me something about the sea.\nassistant\n"


@pytest.fixture(scope="module")
def usual(ember: akunu.Model) -> akunu.Completion:
    """What the model says if nobody chooses anything; it ends its text itself."""
    text = ember.generate(PROMPT)
    assert text.finish_reason == "stop"
    return text


def test_a_text_ends_before_a_stop_token(ember: Any, usual: Any) -> None:
    token = usual.token_ids[3]
    assert token not in usual.token_ids[:3]
    text = ember.generate(PROMPT, stop_token_ids={token})
    assert text.token_ids == usual.token_ids[:3]
    assert (text.finish_reason, text.stop) == ("stop", None)


def test_stop_tokens_outside_the_vocabulary_and_too_many_are_refused(ember: Any) -> None:
    size = ember.config.vocab_size
    with pytest.raises(akunu.ArgumentError, match=rf"^stop_token_ids\[1\] is {size}; token ids of"):
        ember.generate(PROMPT, stop_token_ids=[3, size])
    with pytest.raises(akunu.ArgumentError, match=r"^\d+ stop ids; at most 24 are possible"):
        ember.generate(PROMPT, stop_token_ids=range(100, 140))


def test_a_text_with_min_tokens_does_not_end_before(ember: Any, usual: Any) -> None:
    n = len(usual.token_ids)
    assert ember.generate(PROMPT, min_tokens=n) == usual
    longer = ember.generate(PROMPT, min_tokens=n + 5, max_tokens=n + 20)
    assert longer.token_ids[:n] == usual.token_ids
    assert len(longer.token_ids) >= n + 5
    assert longer.token_ids[n] not in ember.tokenizer.stop_ids
    third = usual.token_ids[2]
    held_up = ember.generate(PROMPT, min_tokens=3, max_tokens=3, stop_token_ids=[third])
    assert held_up.token_ids[:2] == usual.token_ids[:2]
    assert third not in held_up.token_ids
    assert held_up.finish_reason == "length"


def test_a_stop_text_ends_a_text_before_min_tokens(ember: Any, usual: Any) -> None:
    text = ember.generate(PROMPT, min_tokens=10, max_tokens=40, stop=usual[4:8])
    assert (text.finish_reason, text.stop) == ("stop", usual[4:8])


def test_without_the_model_s_own_end_a_text_goes_on(ember: Any, usual: Any) -> None:
    n = len(usual.token_ids)
    text = ember.generate(PROMPT, ignore_eos=True, max_tokens=n + 10)
    assert text.token_ids[:n] == usual.token_ids
    assert (len(text.token_ids), text.finish_reason) == (n + 10, "length")
    assert not ember.tokenizer.stop_ids & set(text.token_ids)


def test_penalties_may_spare_what_the_prompt_says(ember: Any) -> None:
    prompt = ember.tokenizer.encode(PROMPT)
    wanted = {"logit_bias": {prompt[3]: 50.0}, "presence_penalty": 100.0, "max_tokens": 2}
    assert prompt[3] not in ember.generate(PROMPT, **wanted).token_ids
    spared = ember.generate(PROMPT, **wanted, penalize_prompt=False)
    assert spared.token_ids[0] == prompt[3]
    assert spared.token_ids[1] != prompt[3]


def test_dry_keeps_a_text_from_going_round_in_circles(ember: Any) -> None:
    chosen = {"max_tokens": 20, "ignore_eos": True}
    circle = ember.generate("one two three four ", **chosen)
    assert circle.token_ids[:15] == circle.token_ids[5:], "five tokens, again and again"
    without = ember.generate("one two three four ", **chosen, dry_multiplier=10.0)
    assert without.token_ids[:7] == circle.token_ids[:7], "two may be said again"
    assert without.token_ids[7] != circle.token_ids[7]
    # Behind a breaker nothing is a repetition yet.
    breakers = {"dry_sequence_breakers": ember.tokenizer.decode(circle.token_ids[:1])}
    assert (
        ember.generate("one two three four ", **chosen, dry_multiplier=10.0, **breakers) == circle
    )


def test_breakers_are_found_in_tokens_and_across_them(ember: Any) -> None:
    tokenizer = ember.tokenizer
    words = breaker_words(tokenizer, ("ab",))
    spelled = [tokenizer.token_bytes(token) for token in range(tokenizer.vocab_size)]
    entries = []
    while words:
        n_tail, n_heads = words[:2]
        tail, heads = words[2 : 2 + n_tail], words[2 + n_tail : 2 + n_tail + n_heads]
        entries.append((b"".join(spelled[t] for t in tail), heads))
        words = words[2 + n_tail + n_heads :]
    assert entries == [
        (b"b", [t for t, spelling in enumerate(spelled) if spelling.endswith(b"a")]),
        (b"", [t for t, spelling in enumerate(spelled) if b"ab" in spelling]),
    ]


def test_the_limit_of_biases_says_who_takes_part_of_it(ember: Any) -> None:
    """There are 4096 words: two for a bias, the rest for the table of breakers."""
    biases = dict.fromkeys(range(1000, 3049), 1.0)
    with pytest.raises(akunu.ArgumentError, match=r"2049 tokens; at most 2048 are possible$"):
        ember.generate("Hi", logit_bias=biases, max_tokens=1)
    del biases[3048]
    ember.generate("Hi", logit_bias=biases, max_tokens=1)
    ends = len(ember.tokenizer.stop_ids)
    assert ends
    assert not ember.tokenizer.stop_ids & biases.keys()
    with pytest.raises(akunu.ArgumentError, match=rf"2048 tokens, and ignore_eos bans {ends} more"):
        ember.generate("Hi", logit_bias=biases, ignore_eos=True, max_tokens=1)
    room = -(-len(breaker_words(ember.tokenizer, ("\n",))) // 2)
    message = (
        rf"at most {2048 - room} .* with these dry_sequence_breakers, which take the .* {room} "
    )
    with pytest.raises(akunu.ArgumentError, match=message):
        ember.generate(
            "Hi", logit_bias=biases, dry_multiplier=1.0, dry_sequence_breakers="\n", max_tokens=1
        )


def test_breakers_that_are_too_many_or_too_long_are_refused(ember: Any) -> None:
    for breakers, message in (
        (["x" * 1025], "a text of 1025 bytes; each may have 1024"),
        ([f"a{number}" for number in range(101)], "101 texts; at most 100 are allowed"),
    ):
        with pytest.raises(akunu.ArgumentError, match=f"dry_sequence_breakers has {message}"):
            ember.generate("Hi", dry_multiplier=1.0, dry_sequence_breakers=breakers)
    many = [f"{number} the sea" * 50 for number in range(100)]
    with pytest.raises(akunu.ArgumentError, match="name fewer"):
        ember.generate("Hi", dry_multiplier=1.0, dry_sequence_breakers=many)


@each_line(
    "options",
    [
        {"typical_p": 0.5},
        {"top_n_sigma": 1.0},
        {"xtc_probability": 0.5},
        {"dry_multiplier": 1.0, "top_p": 0.9},
        {"samplers": ["top_p", "temperature", "penalties"], "top_p": 0.9, "presence_penalty": 0.5},
    ],
    ids=str,
)
def test_a_text_is_reproducible_and_another_one_with_another_seed(ember: Any, options: Any) -> None:
    chosen = {"temperature": 1.5, "max_tokens": 24, "ignore_eos": True, **options}
    texts = [ember.generate(PROMPT, seed=seed, **chosen) for seed in (1, 2, 1)]
    assert texts[0] == texts[2]
    assert texts[0] != texts[1]
