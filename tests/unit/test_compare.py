"""tools/compare: its numbers, its two workers, its table."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import akunu
from akunu.hub.packaged_models import PACKAGED_MODELS
from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare import report, speed
from tools.compare.engine_process import EngineProcess
from tools.compare.pairs import Spread, ratios, spread
from tools.compare.speed import Test as SpeedTest
from tools.compare.speed import measure, parse_test
from tools.make_synthetic import Shape, write

pytestmark = pytest.mark.tools

REPOSITORY = Path(__file__).resolve().parents[2]
EMBER = PACKAGED_MODELS["ember"]
SHAPE = Shape(
    architecture="qwen2", n_layers=2, dim=64, n_heads=2, n_kv_heads=1, head_dim=32, ffn_dim=128,
    vocab_size=2000,
)  # fmt: skip


def test_quartiles_of_five_numbers_are_the_second_and_the_fourth() -> None:
    assert spread([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(2.0, 3.0, 4.0)


def test_ratios_are_of_neighbours_and_above_1_where_ours_took_less_time() -> None:
    assert ratios([1.0, 4.0], [2.0, 2.0]) == [2.0, 0.5]


@pytest.mark.parametrize(
    ("text", "expected", "name"),
    [
        ("pp512", SpeedTest("pp", 512), "pp512"),
        ("tg64", SpeedTest("tg", 64), "tg64"),
        ("tg16@d256", SpeedTest("tg", 16, 256), "tg16 @ d256"),
    ],
)
def test_tests_are_named_as_llama_bench_names_them(
    text: str, expected: SpeedTest, name: str
) -> None:
    assert parse_test(text) == expected
    assert expected.name == name


@each_line("text", ["", "pp", "pp0", "xx5", "pp512@64", "tg64@", "pp512 "])
def test_other_words_are_no_tests(text: str) -> None:
    with pytest.raises(ValueError, match="expected tests like pp512, tg64 or tg64@2048"):
        parse_test(text)


@each_line(
    ("level", "peer"),
    [
        ("avx2", "CPU : AVX2 = 1 | F16C = 1 | AVX512 = 1 | AVX512_VBMI = 1"),
        ("avx2", "CPU : AVX_VNNI = 1 | AVX2 = 1"),
        ("avxvnni", "CPU : AVX_VNNI = 1 | AVX2 = 1 | AVX512 = 1"),
        ("avx512", "CPU : AVX512 = 1 | AMX_INT8 = 1"),
    ],
)
def test_a_peer_may_not_have_more_instructions_than_the_level(level: str, peer: str) -> None:
    with pytest.raises(ValueError, match=f"does without at level {level}.*--no-cache-dir"):
        speed.check_instructions(f"instruction set level {level}: asked for", peer)


@each_line(
    ("system", "peer"),
    [
        ("instruction set level avx2: asked for", "CPU : AVX2 = 1 | AVX512 = 0"),
        ("instruction set level avxvnni: the best", "CPU : AVX_VNNI = 1 | AVX2 = 1"),
        ("instruction set level avx512: the best", "CPU : AVX_VNNI = 1 | AVX512_VNNI = 1"),
        ("instruction set level amx: the best", "CPU : AMX_INT8 = 1"),
        ("Apple M4", "CPU : NEON = 1"),
    ],
)
def test_a_peer_may_have_as_many(system: str, peer: str) -> None:
    speed.check_instructions(system, peer)


@pytest.mark.parametrize(
    ("test", "positions"),
    [(SpeedTest("pp", 512), 513), (SpeedTest("tg", 64), 66), (SpeedTest("tg", 8, 100), 109)],
)
def test_the_context_holds_all_tokens(test: SpeedTest, positions: int) -> None:
    assert test.positions == positions


def test_akunus_worker_times_what_it_is_asked_for(tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    write(model, SHAPE, "Q8_0")
    with EngineProcess(sys.executable, "akunu_worker", model, context=300, threads=1) as engine:
        assert engine.hello["engine"] == "akunu"
        assert engine.hello["version"] == akunu.__version__
        started = time.perf_counter()
        taken = [
            measure(engine, parse_test(test), random.Random(1))
            for test in ("pp256", "tg8", "tg8@200")
        ]
        elapsed = time.perf_counter() - started
    assert 0 < sum(each["seconds"] for each in taken) < elapsed
    assert all(each["others"] >= 0 for each in taken)


class EndingEngine:
    """An engine whose model ends its text early, as often as it is told."""

    def __init__(self, times: int) -> None:
        self.hello = {"vocab_size": 10}
        self.asked: list[list[int]] = []
        self._times = times

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request["tokens"])
        complete = len(self.asked) > self._times
        return {"seconds": 1.0, "cpu_seconds": 0.0, "complete": complete}


def test_a_text_that_ends_early_is_measured_again_with_another() -> None:
    engine = EndingEngine(1)
    took = measure(engine, SpeedTest("tg", 4, 20), random.Random(1))  # type: ignore[arg-type]
    assert took["seconds"] == 1.0
    first, second = engine.asked
    assert first != second
    assert len(first) == len(second) == 20
    with pytest.raises(RuntimeError, match="ended its text in each of 5 attempts"):
        measure(EndingEngine(9), SpeedTest("tg", 4), random.Random(1))  # type: ignore[arg-type]


def test_a_worker_that_fails_says_why(tmp_path: Path) -> None:
    missing = tmp_path / ("long/" * 50) / "missing.gguf"
    with pytest.raises(RuntimeError, match=r"missing\.gguf"):
        EngineProcess(sys.executable, "akunu_worker", missing, context=64, threads=1)


def test_a_worker_that_dies_is_an_error_and_no_wait() -> None:
    with EngineProcess(sys.executable, "akunu_worker", EMBER, context=64, threads=1) as engine:
        with pytest.raises(RuntimeError, match="ContextOverflowError"):
            engine.ask({"kind": "pp", "n": 100, "tokens": [1] * 100})
        with pytest.raises(RuntimeError, match="ContextOverflowError"):
            engine.ask({"kind": "pp", "n": 1, "tokens": [1]})


RESULT = {
    "model": "model.gguf",
    "threads": 2,
    "date": "2030-01-02T03:04:05+00:00",
    "processor": "A processor",
    "processors": 2,
    "akunu": {"version": "1.2.3", "system": "level"},
    "peer": {"engine": "llama.cpp", "version": "llama-cpp-python 4.5", "system": "AVX2 = 1"},
    "tests": [
        {
            "name": "pp512",
            "tokens": 512,
            "akunu_seconds": [1.0, 2.0, 2.0, 2.0, 4.0],
            "peer_seconds": [2.0, 2.0, 3.0, 5.0, 4.0],
            "akunu_others": [0.0] * 5,
            "peer_others": [0.01] * 5,
        }
    ],
}


def test_the_table_holds_medians_of_speeds_and_of_ratios() -> None:
    table = report.markdown([RESULT])
    # Ratios are 2, 1, 1.5, 2.5, 1: the median of ratios, not the ratio of medians (1.5).
    assert "| model.gguf | pp512 | 256 | 171 | 1.500 | 1.000 to 2.000 |" in table
    assert "5 alternations, 2030-01-02; akunu 1.2.3, llama-cpp-python 4.5." in table
    assert "`AVX2 = 1`" in table
    assert "Not quiet" not in table


def test_the_table_says_when_others_were_busy() -> None:
    busy = {**RESULT["tests"][0], "akunu_others": [0.5] * 5, "peer_others": [0.7] * 5}  # type: ignore[dict-item, index]
    table = report.markdown([{**RESULT, "tests": [busy]}])
    assert "Not quiet: model.gguf, pp512: other processes used 0.60 processors." in table


def test_a_report_goes_between_the_marks_of_a_document(tmp_path: Path) -> None:
    document, results = tmp_path / "page.md", tmp_path / "results.json"
    document.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    results.write_text(json.dumps(RESULT))
    arguments = argparse.Namespace(results=[results], names="*/*", write=document, table=None)
    for _ in range(2):  # a second time changes nothing
        assert report.run(arguments) == 0
        lines = document.read_text().splitlines()
        assert (lines[0], lines[-1]) == ("before", "after")
        assert "old" not in lines
        assert sum(line.startswith("| model.gguf") for line in lines) == 1
    with pytest.raises(ValueError, match="has no lines"):
        report.replace_between("nothing", "table")


def test_a_table_with_a_name_leaves_the_main_one_alone(tmp_path: Path) -> None:
    document, results = tmp_path / "page.md", tmp_path / "results.json"
    begin, end = report.marks("avx2")
    main = f"{report.BEGIN}\nmain\n{report.END}\n"
    document.write_text(f"{main}{begin}\nold\n{end}\n")
    results.write_text(json.dumps(RESULT))
    assert (
        report.run(argparse.Namespace(results=[results], names="*/*", write=document, table="avx2"))
        == 0
    )
    text = document.read_text()
    assert text.startswith(main)
    assert "old" not in text
    assert "| model.gguf | pp512 |" in text.partition(begin)[2].partition(end)[0]


def test_the_benchmarks_page_has_a_place_for_the_table() -> None:
    page = (REPOSITORY / "docs" / "reference" / "benchmarks.md").read_text()
    begin, end = report.marks(None)
    assert "a table" in report.replace_between(page, "a table", begin=begin, end=end)


@each_line(
    ("arguments", "message"),
    [
        (["--peer", sys.executable, "--tests", "tg"], "expected tests like"),
        (["--peer", sys.executable, "-r", "1"], "2 alternations or more"),
        (["--peer", sys.executable, "-t", "0"], "threads must be 1 or more"),
        (["--peer", "/no/such/python"], "/no/such/python"),
    ],
)
def test_the_command_line_says_what_is_wrong(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.compare", "speed", EMBER, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_peer_without_llama_cpp_is_named(tmp_path: Path) -> None:
    # An interpreter of which we know that it has no packages.
    python = tmp_path / "bare"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    with pytest.raises(
        RuntimeError, match=r"no llama-cpp-python .*no xllamacpp .*docs/reference/benchmarks\.md"
    ):
        EngineProcess(str(python), "llama_cpp_worker", EMBER, context=64, threads=1)


def test_speed_is_a_command_with_help() -> None:
    parser = argparse.ArgumentParser()
    speed.add_arguments(parser)
    assert "llama-cpp-python" in parser.format_help()
