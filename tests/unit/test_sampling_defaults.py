"""What a file says of sampling becomes options; what it cannot become is noted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from akunu.options.sampling_defaults import read_sampling_defaults, sampling_defaults_of
from lines import each_line


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


@each_line(
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


@each_line(
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
        "general.sampling.sequence is ignored: akunu's samplers have their own order",
        "general.sampling.dry_base is ignored: akunu has no such sampler",
    )


def test_samplers_that_are_off_need_no_note() -> None:
    assert read(xtc_probability=0.0, xtc_threshold=0.1, mirostat=0, mirostat_tau=5.0) == ({}, ())


# --- generation_config.json ----------------------------------------------------------------------

BESIDE = "sampling defaults are those of generation_config.json, next to the model file"


def beside(folder: Path, config: object, **values: object) -> tuple[dict[str, float | int], object]:
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "generation_config.json").write_text(text)
    metadata = {f"general.sampling.{name}": value for name, value in values.items()}
    return sampling_defaults_of(metadata, folder / "m.gguf")


def test_the_configuration_beside_the_file_becomes_options(tmp_path: Path) -> None:
    qwen3 = {  # as published with Qwen3
        "bos_token_id": 151643,
        "do_sample": True,
        "eos_token_id": [151645, 151643],
        "pad_token_id": 151643,
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
        "transformers_version": "4.51.0",
    }
    assert beside(tmp_path, qwen3) == ({"temperature": 0.6, "top_k": 20, "top_p": 0.95}, (BESIDE,))


def test_what_the_file_itself_says_comes_first(tmp_path: Path) -> None:
    assert beside(tmp_path, {"temperature": 0.6}, top_k=4) == ({"top_k": 4}, ())


def test_a_configuration_that_does_not_sample_takes_the_most_likely(tmp_path: Path) -> None:
    config = {"do_sample": False, "temperature": 0.6, "top_k": None}
    assert beside(tmp_path, config) == ({"temperature": 0.0}, (BESIDE,))


def test_a_penalty_for_repetition_is_about_the_whole_text_there(tmp_path: Path) -> None:
    options, _ = beside(tmp_path, {"repetition_penalty": 1.05})
    assert options == {"repetition_penalty": 1.05, "penalty_window": 2**31 - 1}
    options, _ = beside(tmp_path, {"repetition_penalty": 1.0})
    assert options == {"repetition_penalty": 1.0}


def test_what_cannot_be_taken_from_the_configuration_is_noted(tmp_path: Path) -> None:
    options, notes = beside(
        tmp_path, {"top_p": 0.9, "top_k": "x", "typical_p": 0.9, "num_beams": 1}
    )
    assert options == {"top_p": 0.9}
    assert notes == (
        BESIDE,
        "generation_config.json: typical_p is ignored: akunu has no such sampler",
        "generation_config.json: top_k is ignored: top_k is 'x'; it must be an integer from 0 to "
        "4294967295",
    )
    assert beside(tmp_path, {"eos_token_id": 2}) == ({}, ())


@each_line("text", ["", "{", "[1]", "[" * 100_000, "\xff", " " * (1 << 21) + "{}"])
def test_a_configuration_that_is_none_is_noted_and_ignored(tmp_path: Path, text: str) -> None:
    options, notes = beside(tmp_path, text)
    assert options == {}
    assert notes == (f"{tmp_path / 'generation_config.json'} is ignored: it is not a JSON object",)


def test_without_any_of_them_there_are_no_defaults(tmp_path: Path) -> None:
    assert sampling_defaults_of({}, tmp_path / "m.gguf") == ({}, ())
