"""What a file says of sampling becomes options; what it cannot become is noted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from akunu.sampling_defaults import read_sampling_defaults


def read(**values: object) -> tuple[dict[str, float | int], tuple[str, ...]]:
    return read_sampling_defaults(
        {
            "general.architecture": "llama",
            **{f"general.sampling.{name}": value for name, value in values.items()},
        }
    )


def test_a_file_that_says_nothing_has_no_defaults() -> None:
    assert read() == ({}, ())


def test_llama_cpps_keys_become_options() -> None:
    options, notes = read(
        temp=0.7, top_k=20, top_p=0.8, min_p=0.05, penalty_repeat=1.05, penalty_last_n=128
    )
    assert options == {
        "temperature": 0.7,
        "top_k": 20,
        "top_p": 0.8,
        "min_p": 0.05,
        "repetition_penalty": 1.05,
        "penalty_window": 128,
    }
    assert notes == ()


def test_a_float32_is_shown_as_its_author_wrote_it() -> None:
    assert read(top_p=float(np.float32(0.95)))[0] == {"top_p": 0.95}


@pytest.mark.parametrize(
    ("name", "value", "option", "off"),
    [
        ("temp", -1.0, "temperature", 0.0),  # greedy
        ("top_k", -1, "top_k", 0),
        ("top_k", 0, "top_k", 0),
        ("top_p", 1.5, "top_p", 1.0),
        ("min_p", -0.5, "min_p", 0.0),
        ("penalty_last_n", -1, "penalty_window", 2**31 - 1),  # the whole text
    ],
)
def test_what_is_off_for_llama_cpp_is_off(name: str, value: float, option: str, off: float) -> None:
    assert read(**{name: value}) == ({option: off}, ())


@pytest.mark.parametrize(
    ("name", "value"),
    [("temp", math.nan), ("temp", "hot"), ("top_p", 0.0), ("top_k", 2.5), ("top_k", [1])],
)
def test_a_value_that_makes_no_sense_is_noted_and_ignored(name: str, value: object) -> None:
    options, notes = read(**{name: value}, min_p=0.1)
    assert options == {"min_p": 0.1}
    (note,) = notes
    assert note.startswith(f"general.sampling.{name} is ignored: ")
    assert "must be" in note


def test_samplers_that_akunu_does_not_have_are_noted() -> None:
    options, notes = read(
        xtc_probability=0.5, xtc_threshold=0.1, mirostat=2, sequence="kpt", dry_base=1.75, top_k=4
    )
    assert options == {"top_k": 4}
    assert notes == (
        "general.sampling.xtc_probability is ignored: akunu has no such sampler",
        "general.sampling.mirostat is ignored: akunu has no such sampler",
        "general.sampling.sequence is ignored: akunu's samplers have an order of their own",
        "general.sampling.dry_base is ignored: akunu has no such sampler",
    )


def test_samplers_that_are_off_need_no_note() -> None:
    assert read(xtc_probability=0.0, xtc_threshold=0.1, mirostat=0, mirostat_tau=5.0) == ({}, ())
