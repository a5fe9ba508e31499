"""Options refuse what makes no sense when they are made, and say what is allowed."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from typing import Any

import numpy as np
import pytest
from cli_support import CHECKOUT

import akunu
from akunu import ArgumentError, LoadOptions, SamplingOptions
from akunu.grammar.structure import STRUCTURE_DEFAULTS, StructureArguments
from akunu.options.arguments import SamplingArguments
from akunu.options.engine_limits import MAX_THREADS
from akunu.options.sampling_options import declared_options
from lines import each_line

NAN = math.nan
INF = math.inf

BAD_SAMPLING: list[tuple[str, Any]] = [
    ("max_tokens", -2),
    ("max_tokens", 1.5),
    ("max_tokens", True),
    ("max_tokens", "8"),
    ("temperature", -0.1),
    ("temperature", NAN),
    ("temperature", INF),
    ("temperature", -INF),
    ("temperature", 1e-9),
    ("temperature", 1e9),
    ("temperature", 10**400),
    ("temperature", "hot"),
    ("temperature", 1j),
    ("top_k", -2),
    ("top_k", 2.0),
    ("top_k", 2**32),
    ("top_p", 0),
    ("top_p", 1.01),
    ("top_p", NAN),
    ("min_p", -0.01),
    ("min_p", 1.01),
    ("min_p", NAN),
    ("repetition_penalty", 0),
    ("repetition_penalty", NAN),
    ("repetition_penalty", INF),
    ("frequency_penalty", NAN),
    ("frequency_penalty", 1e6),
    ("presence_penalty", INF),
    ("presence_penalty", False),
    ("penalty_window", -2),
    ("penalty_window", 2**31),
    ("seed", -2),
    ("seed", 2**64),
    ("seed", 0.5),
    ("stop", ""),
    ("stop", ("a", "")),
    ("stop", 7),
    ("stop", b"x"),
    ("stop", bytearray(b"x")),
    ("stop", {1}),
    ("stop", {"a": "b"}),
    ("stop", np.array(["a"])),
    ("logit_bias", 7),
    ("logit_bias", {-1: 1.0}),
    ("logit_bias", {1: NAN}),
    ("logit_bias", {1: INF}),
    ("logit_bias", {1.5: 1.0}),
    ("logit_bias", {"a": 1.0}),
    ("logit_bias", "ab"),
    ("top_k", np.array([-1, -1])),
    ("typical_p", 0),
    ("top_n_sigma", -0.5),
    ("xtc_probability", 1.5),
    ("xtc_threshold", NAN),
    ("penalize_prompt", 1),
    ("ignore_eos", "yes"),
    ("dry_multiplier", -1),
    ("dry_base", 0.5),
    ("dry_allowed_length", 0),
    ("dry_penalty_last_n", -2),
    ("dry_sequence_breakers", ["a", ""]),
    ("samplers", "temperature"),
    ("samplers", ["top_k"]),
    ("samplers", ["temperature", "top_k", "top_k"]),
    ("samplers", ["temperature", "mirostat"]),
    ("samplers", ["temperature", ["top_k"]]),
    ("min_tokens", -1),
    ("stop_token_ids", 7),
    ("stop_token_ids", "7"),
    ("stop_token_ids", [-1]),
    ("stop_token_ids", [0.5]),
    ("logprobs", 21),
    ("prompt_logprobs", -1),
    ("echo", 1),
    ("answer_index", -1),
    ("max_tokens", b"8"),
]

BAD_LOADING: list[tuple[str, Any]] = [
    ("device", ""),
    ("context", 0),
    ("context", -1),
    ("context", 2**31),
    ("context", "4k"),
    ("threads", 0),
    ("threads", True),
    ("threads", 10**6),
    ("kv_type", "q8"),
    ("kv_memory", 0),
    ("kv_memory", 1e9),
    ("kv_memory", 2**64),
    ("gpu_memory", 0),
    ("gpu_memory", 2**64),
    ("prefix_cache", 1),
    ("cache_dir", 3),
    ("cache_dir", ""),
    ("cache_size", 0),
    ("cache_size", "8GB"),
    ("max_waiting", 0),
    ("max_waiting", 2**32),
]


@each_line(("name", "value"), BAD_SAMPLING, ids=str)
def test_sampling_refuses_and_names_the_argument_and_the_value(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        SamplingOptions(**{name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} is ")
    assert repr(value)[:20] in message
    assert "must be" in message
    assert len(message) < 200


@each_line(("name", "value"), BAD_LOADING, ids=str)
def test_loading_refuses_and_names_the_argument_and_the_value(name: str, value: Any) -> None:
    for make in (LoadOptions, akunu.load):
        with pytest.raises(ArgumentError, match=f"^{name} is .*must be"):
            make(**{name: value})


def test_the_error_is_a_value_error_as_well() -> None:
    with pytest.raises(ValueError, match="top_p"):
        SamplingOptions(top_p=2)


def test_every_limit_itself_is_allowed() -> None:
    SamplingOptions(
        max_tokens=0, temperature=0, top_k=0, top_p=1, min_p=1, penalty_window=0, seed=2**64 - 1
    )
    SamplingOptions(temperature=1e-4, top_p=1e-9, min_p=0, seed=0, max_tokens=10**30)
    LoadOptions(context=1, threads=1, kv_memory=1)


def test_numpy_numbers_become_plain_ones() -> None:
    options = SamplingOptions(top_k=np.int64(5), temperature=np.float32(0.5), seed=np.uint64(7))
    assert (type(options.top_k), options.top_k) == (int, 5)
    assert (type(options.temperature), options.temperature) == (float, 0.5)
    assert (type(options.seed), options.seed) == (int, 7)


def test_options_are_frozen() -> None:
    options = SamplingOptions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.top_k = 3  # type: ignore[misc]


def test_minus_one_means_what_it_means_elsewhere() -> None:
    minus_one = SamplingOptions(max_tokens=-1, top_k=-1, seed=-1, penalty_window=-1)
    assert minus_one == SamplingOptions(
        max_tokens=None, top_k=0, seed=None, penalty_window=2**31 - 1
    )
    assert SamplingOptions(top_k=np.int64(-1)).top_k == 0


@pytest.mark.parametrize("options", [SamplingOptions, LoadOptions])
def test_none_is_the_default_of_every_option(options: Any) -> None:
    names = [field.name for field in dataclasses.fields(options)]
    assert options(**dict.fromkeys(names)) == options()


def test_stop_strings_come_alone_in_lists_and_in_sets() -> None:
    assert SamplingOptions(stop="a").stop == ("a",)  # type: ignore[arg-type]
    assert SamplingOptions(stop=["b", "a"]).stop == ("b", "a")  # type: ignore[arg-type]
    assert SamplingOptions(stop={"b", "a"}).stop == ("a", "b")  # type: ignore[arg-type]
    assert SamplingOptions(stop=frozenset()).stop == ()  # type: ignore[arg-type]


def test_biases_are_kept_as_pairs() -> None:
    options = SamplingOptions(logit_bias={np.int64(5): 1, 2: -INF})
    assert options.logit_bias == ((5, 1.0), (2, -INF))
    assert SamplingOptions(logit_bias=options.logit_bias) == options
    assert hash(options) == hash(SamplingOptions(logit_bias={5: 1.0, 2: -INF}))
    assert SamplingOptions(logit_bias={}) == SamplingOptions()


def test_what_is_packed_is_what_the_engine_reads() -> None:
    """The fields of `Sampling` in rows.h, by name, type and place."""
    source = (CHECKOUT / "src" / "core" / "rows.h").read_text()
    struct = re.search(r"struct Sampling {(.*?)^};", source, re.DOTALL | re.MULTILINE)
    assert struct is not None
    expected = re.findall(r"^  (float|uint32_t) (\w+) =", struct[1], re.MULTILINE)
    types = {"f": ["float"], "I": ["uint32_t"], "Q": ["uint32_t", "uint32_t"]}
    packed = [
        (kind, name if len(types[option.packed]) == 1 else f"{name}_{part}")
        for name, option in declared_options().items()
        if option.packed
        for kind, part in zip(types[option.packed], ("low", "high"), strict=False)
    ]
    assert packed == expected
    options = SamplingOptions(temperature=0.5, top_k=3, top_p=0.25, penalty_window=7)
    words = np.frombuffer(options.packed(seed=5 + 2**33), np.uint32)
    floats = words.view(np.float32)
    assert (floats[0], words[1], floats[2], words[11]) == (0.5, 3, 0.25, 7)
    assert words[-2:].tolist() == [5, 2]
    own = SamplingOptions(seed=9).packed(seed=1)
    assert np.frombuffer(own, np.uint32)[-2:].tolist() == [9, 0]


def test_samplers_are_packed_by_their_numbers_in_the_engine() -> None:
    source = (CHECKOUT / "src" / "core" / "rows.h").read_text()
    numbers = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): int(number)
        for name, number in re.findall(r"kSampler(\w+) = (\d);", source)
    }
    assert numbers.pop("count") == len(numbers)
    names = SamplingOptions().samplers
    assert {name: number for number, name in enumerate(names, 1)} == numbers

    def packed(*order: str) -> list[int]:
        return np.frombuffer(SamplingOptions(samplers=order).packed(0), np.uint32)[17:19].tolist()

    assert packed(*names) == [0x87654321, 9]
    assert packed("top_k", "temperature", "penalties") == [0x194, 0]


def test_an_option_without_its_sampler_is_refused() -> None:
    SamplingOptions(samplers=("temperature",), temperature=0.5, xtc_threshold=0.3)
    with pytest.raises(ArgumentError, match=r"^xtc_probability is 0\.5, but samplers does "):
        SamplingOptions(samplers=("temperature",), xtc_probability=0.5)


def test_fewer_tokens_at_most_than_at_least_are_refused() -> None:
    SamplingOptions(min_tokens=3, max_tokens=3)
    with pytest.raises(ArgumentError, match=r"^min_tokens is 4; it must not be "):
        SamplingOptions(min_tokens=4, max_tokens=3)


def test_the_page_of_options_lists_every_option() -> None:
    page = (CHECKOUT / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    table = re.search(r"^\| option \| default \| meaning \|\n\|[-|]+\n((?:\|.*\n)+)", page, re.M)
    assert table is not None
    expected = [
        f"| `{field.name}` | `{field.default}` | {declared_options()[field.name].help}"
        for field in dataclasses.fields(SamplingOptions)
    ]
    rows = table[1].splitlines()
    assert len(rows) == len(expected)
    for row, begin in zip(rows, expected, strict=True):
        assert row.startswith(begin)


@each_line(
    ("call", "message"),
    [
        (
            lambda: SamplingOptions(temprature=1),  # type: ignore[call-arg]
            "SamplingOptions() has no option 'temprature'; did you mean 'temperature'?",
        ),
        (
            lambda: LoadOptions(contxt=1),  # type: ignore[call-arg]
            "LoadOptions() has no option 'contxt'; did you mean 'context'?",
        ),
        (
            lambda: akunu.load(Threads=1),  # type: ignore[call-arg]
            "load() has no option 'Threads'; did you mean 'threads'?",
        ),
        (
            lambda: akunu.load(n_ctx=512),  # type: ignore[call-arg]
            "load() has no option 'n_ctx'; did you mean 'context'?",
        ),
        (
            lambda: SamplingOptions(max_completion_tokens=5),  # type: ignore[call-arg]
            "SamplingOptions() has no option 'max_completion_tokens'; did you mean 'max_tokens'?",
        ),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(call: Any, message: str) -> None:
    with pytest.raises(akunu.MisuseError) as caught:
        call()
    assert str(caught.value) == message
    assert isinstance(caught.value, TypeError)


def test_an_option_like_no_other_is_answered_with_all_there_are() -> None:
    with pytest.raises(akunu.MisuseError, match="'banana'; its options are device, context, th"):
        LoadOptions(banana=1)  # type: ignore[call-arg]


NO_SAMPLING = {
    "continue_final_message",
    "n",
    "parallel_tool_calls",
    "priority",
    "stream",
    "template_variables",
    "thinking_budget",
    "thinking",
    "tool_choice",
    "tools",
}  # keyword arguments of the methods that are no such option


@each_line(
    "method",
    [
        akunu.Model.generate,
        akunu.Model.generate_async,
        akunu.Model.chat,
        akunu.Model.chat_async,
    ],
)
def test_the_methods_take_exactly_the_options_with_their_defaults(method: Any) -> None:
    parameters = inspect.signature(method).parameters
    given = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in NO_SAMPLING
    }
    fields = {field.name: field.default for field in dataclasses.fields(SamplingOptions)}
    assert given == {**fields, **STRUCTURE_DEFAULTS}
    assert set(SamplingArguments.__annotations__) == set(fields)
    assert set(StructureArguments.__annotations__) == set(STRUCTURE_DEFAULTS)


def test_load_takes_exactly_the_options_with_their_defaults() -> None:
    parameters = dict(inspect.signature(akunu.load).parameters)
    assert parameters.pop("path_or_name").kind is inspect.Parameter.POSITIONAL_ONLY
    assert parameters.pop("local_only").default is False  # about finding the file
    fields = {field.name: field.default for field in dataclasses.fields(LoadOptions)}
    assert {name: parameter.default for name, parameter in parameters.items()} == fields


def test_the_limit_of_threads_is_the_engines() -> None:
    source = (CHECKOUT / "backend" / "cpu" / "cpu_device.cpp").read_text()
    limit = re.search(r"kMaxThreads = (\d+);", source)
    assert limit is not None
    assert int(limit[1]) == MAX_THREADS
    with pytest.raises(ArgumentError, match=f"threads is {MAX_THREADS + 1}; it must be"):
        LoadOptions(threads=MAX_THREADS + 1)
