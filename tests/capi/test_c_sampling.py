"""Options of sampling in C choose what they choose in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
from c_library import (
    ARGUMENT,
    CError,
    GenerateOptions,
    Handle,
    Library,
    LoadOptions,
    Sampling,
    TokenBias,
)
from test_c_models import EMBER, generate, tokens_of

import akunu
from akunu.options.sampling_options import declared_options
from lines import each_line

PROMPT = "user\nTell me: one two three, one two three, one two\nassistant\n"
SAMPLED: dict[str, Any] = {"temperature": 2.5, "seed": 11, "min_tokens": 24}

# Fields of akunu_sampling, and what Python calls the same.
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(
        (options, options)
        for options in (
            {"top_k": 5},
            {"top_p": 0.7},
            {"min_p": 0.2},
            {"typical_p": 0.6},
            {"top_n_sigma": 1.0},
            {"xtc_probability": 0.7},
            {"xtc_probability": 0.7, "xtc_threshold": 0.3, "temperature": 0.7},
            {"repetition_penalty": 1.5},
            {"frequency_penalty": 2.0, "presence_penalty": 1.0, "penalty_window": 9},
            {"dry_multiplier": 3.0, "temperature": 1.4},
            {
                **{"dry_multiplier": 9.0, "dry_base": 3.0, "dry_allowed_length": 1},
                **{"dry_penalty_last_n": 16, "temperature": 1.2},  # changes the text at every level
            },
            {"min_tokens": 30},
        )
    ),
    (
        {"repetition_penalty": 1.5, "no_prompt_penalties": True},
        {"repetition_penalty": 1.5, "penalize_prompt": False},
    ),
    (
        {"samplers": b"temperature,top_p", "top_p": 0.8},
        {"samplers": ["temperature", "top_p"], "top_p": 0.8},
    ),
]


@pytest.fixture(scope="module")
def model(library: Library) -> Iterator[Handle]:
    options = LoadOptions(device=b"cpu", context=512, threads=1)
    opened = library.new("load_model", str(EMBER).encode(), ctypes.byref(options))
    yield opened
    library.call("close_model", opened)


@pytest.fixture(scope="module")
def known() -> Iterator[akunu.Model]:
    with akunu.load(EMBER, device="cpu", context=512, threads=1) as loaded:
        yield loaded


@each_line(("fields", "options"), CASES, ids=str)
def test_each_option_is_pythons(
    library: Library,
    model: Handle,
    known: akunu.Model,
    fields: dict[str, Any],
    options: dict[str, Any],
) -> None:
    usual = {**SAMPLED, "temperature": options.get("temperature", SAMPLED["temperature"])}
    expected = known.generate(PROMPT, max_tokens=40, **{**SAMPLED, **options})
    assert expected.token_ids != known.generate(PROMPT, max_tokens=40, **usual).token_ids
    sampling = ctypes.pointer(Sampling(**{**SAMPLED, **fields}))
    ids = known.tokenizer.encode(PROMPT)
    taken, _, _ = generate(library, model, ids, max_tokens=40, sampling=sampling)
    assert taken == list(expected.token_ids)


def test_every_number_is_tested_here() -> None:
    numbers = {name for name, each in declared_options().items() if each.packed}
    assert numbers == {*SAMPLED, *(name for _, options in CASES for name in options)}


def test_biases_bans_and_breakers_are_pythons(
    library: Library, model: Handle, known: akunu.Model
) -> None:
    ids = known.tokenizer.encode(PROMPT)
    sampling = ctypes.pointer(Sampling(**SAMPLED))
    usual = known.generate(PROMPT, max_tokens=40, **SAMPLED)
    banned = {usual.token_ids[0]: float("-inf"), usual.token_ids[3]: 2.5}
    biases = (TokenBias * 2)(*banned.items())
    taken, _, _ = generate(
        library, model, ids, max_tokens=40, sampling=sampling, logit_bias=biases, n_logit_bias=2
    )
    expected = known.generate(PROMPT, max_tokens=40, logit_bias=banned, **SAMPLED)
    assert taken == list(expected.token_ids) != list(usual.token_ids)
    taken, _, _ = generate(library, model, ids, max_tokens=60, sampling=sampling, ignore_eos=True)
    expected = known.generate(PROMPT, max_tokens=60, ignore_eos=True, **SAMPLED)
    assert taken == list(expected.token_ids)
    assert len(taken) == 60
    for breakers in ([], ["two"], ["e t", ", ", "é!"]):
        dry = {**SAMPLED, "dry_multiplier": 3.0}
        listed = (ctypes.c_char_p * max(1, len(breakers)))(*(each.encode() for each in breakers))
        taken, _, _ = generate(
            library, model, ids, max_tokens=40, sampling=ctypes.pointer(Sampling(**dry)),
            dry_sequence_breakers=listed, n_dry_sequence_breakers=len(breakers),
        )  # fmt: skip
        expected = known.generate(PROMPT, max_tokens=40, dry_sequence_breakers=breakers, **dry)
        assert taken == list(expected.token_ids), breakers


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"typical_p": 1.5}, {}, r"sampling\.typical_p is 1\.5"),
    ({"dry_base": 0.5}, {}, r"sampling\.dry_base is 0\.5\d*, expected 1"),
    ({"penalty_window": 2**31}, {}, r"sampling\.penalty_window is 2147483648"),
    ({"samplers": b"top_k"}, {}, r"sampling\.samplers is 'top_k', expected .*temperature"),
    ({"samplers": b"temperature,temperature"}, {}, "each once"),
    ({"samplers": b"temperature,mirostat"}, {}, "mirostat"),
    ({"samplers": b"temperature", "top_k": 3}, {}, r"sampling\.top_k is set, and sampling\.sam"),
    ({"min_tokens": 9}, {"max_tokens": 8}, r"sampling\.min_tokens is 9"),
    ({}, {"n_logit_bias": 1}, r"options\.logit_bias is null"),
    ({}, {"logit_bias": (TokenBias * 1)((1, float("nan"))), "n_logit_bias": 1}, r"\]\.bias is nan"),
    ({}, {"logit_bias": (TokenBias * 2)((1, 1), (1, 2)), "n_logit_bias": 2}, "is there before"),
    (
        {"dry_multiplier": 1.0},
        {"dry_sequence_breakers": (ctypes.c_char_p * 1)(b""), "n_dry_sequence_breakers": 1},
        r"options\.dry_sequence_breakers\[0\] has 0 bytes",
    ),
]


@each_line(("fields", "options", "message"), REFUSED, ids=str)
def test_what_makes_no_sense_is_refused(
    library: Library, model: Handle, fields: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    given = GenerateOptions(sampling=ctypes.pointer(Sampling(**fields)), **options)
    with pytest.raises(CError, match=message) as caught:
        library.call(
            "generate", model, tokens_of([1]), ctypes.c_size_t(1), ctypes.byref(given),
            None, None, None,
        )  # fmt: skip
    assert caught.value.status == ARGUMENT
