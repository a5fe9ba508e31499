"""`akunu embed`: texts in, vectors out."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from cli_support import COMMAND, ENVIRONMENT

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

import akunu

Run = Callable[..., "CompletedProcess[str]"]
SPEC = em.EncoderSpec(positions=32)


@pytest.fixture(scope="module")
def bert_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("bert") / "bert.gguf"
    return str(em.write_gguf(path, SPEC, em.random_tensors(SPEC)))


def vectors_of(done: CompletedProcess[str]) -> list[list[float]]:
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["index"] for line in lines] == list(range(len(lines)))
    return [line["embedding"] for line in lines]


def test_each_text_is_a_line_of_json(run_akunu: Run, bert_file: str, tmp_path: Path) -> None:
    with akunu.load(bert_file) as model:
        expected = model.embed(["a cat", "dogs"]).tolist()
    assert vectors_of(run_akunu("embed", bert_file, "a cat", "dogs")) == expected
    assert vectors_of(run_akunu("embed", bert_file, stdin="a cat\n\ndogs\n")) == expected
    lines = tmp_path / "texts.jsonl"
    lines.write_text('{"text": "a cat", "id": 7}\n"dogs"\n')
    done = run_akunu("embed", bert_file, "--jsonl", "-f", str(lines))
    assert vectors_of(done) == expected


def test_vectors_are_written_as_numpy_has_them(
    run_akunu: Run, bert_file: str, tmp_path: Path
) -> None:
    path = tmp_path / "vectors.npy"
    done = run_akunu("embed", bert_file, "a", "b", "-o", str(path), "--precision", "int8")
    assert done.returncode == 0, done.stderr
    assert np.load(path).shape == (2, SPEC.dim)
    assert np.load(path).dtype == np.int8


@each_line(
    ("arguments", "code", "words"),
    [
        (["a", "-f", "b"], 2, "by arguments and by --file"),
        (["a", "-o", "b.txt"], 2, "must end with .npy"),
        (["a " * 40], 1, "has 42 tokens, the model takes 32; --truncate embeds what"),
        (["a", "--pooling", "sum"], 1, "pooling is 'sum'"),
        (["--jsonl", "-f", __file__], 2, "line 1"),
    ],
    ids=["by arguments and by --file", "no npy", "too long", "pooling", "no JSON"],
)
def test_what_makes_no_sense_is_said(
    run_akunu: Run, bert_file: str, arguments: list[str], code: int, words: str
) -> None:
    done = run_akunu("embed", bert_file, *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr


def test_a_line_ends_at_a_newline_alone(run_akunu: Run, bert_file: str) -> None:
    # Python's splitlines() also cuts at a form feed and where Unicode has separators.
    with akunu.load(bert_file) as model:
        expected = model.embed(["a\fcat", "a\u2028dog"]).tolist()
    assert vectors_of(run_akunu("embed", bert_file, stdin="a\fcat\r\na\u2028dog\n")) == expected
    lines = '"a\u2028dog"\n'  # JSON has this character as it is
    assert vectors_of(run_akunu("embed", bert_file, "--jsonl", stdin=lines)) == expected[1:]


def test_empty_lines_are_left_out_and_counted(run_akunu: Run, bert_file: str) -> None:
    done = run_akunu("embed", bert_file, stdin="\na cat\n \ndogs\n")
    assert len(vectors_of(done)) == 2
    assert "akunu: 2 empty lines are skipped" in done.stderr
    assert "left out" not in run_akunu("embed", bert_file, stdin="a cat\ndogs\n").stderr


def test_json_that_is_nested_too_deeply_is_said(run_akunu: Run, bert_file: str) -> None:
    done = run_akunu("embed", bert_file, "--jsonl", stdin="[" * 100_000 + "\n")
    assert done.returncode == 2
    assert "line 1 is not JSON" in done.stderr


def test_a_folder_that_is_not_there_is_said_before_the_work(
    run_akunu: Run, bert_file: str, tmp_path: Path
) -> None:
    done = run_akunu("embed", "no-such-model.gguf", "a", "-o", str(tmp_path / "no" / "x.npy"))
    assert done.returncode == 1
    assert f"{tmp_path / 'no'} is not a folder" in done.stderr


def test_threads_auto_is_the_default_of_an_encoder(run_akunu: Run, bert_file: str) -> None:
    with akunu.load(bert_file) as model:
        expected = [model.embed("a cat").tolist()]
    assert vectors_of(run_akunu("embed", bert_file, "a cat", "--threads", "auto")) == expected


def test_an_encoder_does_not_chat(run_akunu: Run, bert_file: str) -> None:
    done = run_akunu("chat", bert_file, "a cat")
    assert done.returncode == 1
    assert "bert is an encoder: it embeds texts (Model.embed, akunu embed)" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["-p", "100000"], ["-p", "4", "-n", "0"]])
def test_an_encoder_is_not_measured(run_akunu: Run, bert_file: str, arguments: list[str]) -> None:
    done = run_akunu("bench", bert_file, *arguments)
    assert done.returncode == 1
    assert "is an encoder: it embeds texts; akunu bench needs a model that generates" in done.stderr


def test_a_disk_that_is_full_is_said(bert_file: str, tmp_path: Path) -> None:
    def few_bytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    # Python would cut its own .pyc files at so many bytes.
    environment = {**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*COMMAND, "embed", bert_file, *["a cat"] * 100, "-o", tmp_path / "vectors.npy"],
        capture_output=True, text=True, env=environment, preexec_fn=few_bytes, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert re.search(r"vectors\.npy could not be written: (?!None)\w", done.stderr), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["profile", "imatrix", "inspect --template"])
def test_commands_of_texts_that_are_written_refuse_an_encoder(
    run_akunu: Run, bert_file: str, tmp_path: Path, command: str
) -> None:
    text, target = tmp_path / "text.txt", tmp_path / "i.gguf"
    text.write_text("a cat " * 40)
    more = [str(text), "-o", str(target), "--context", "8"] if command == "imatrix" else []
    done = run_akunu(*command.split(), bert_file, *more)
    assert done.returncode == 1
    assert f"is an encoder: it embeds texts; akunu {command} needs a model" in done.stderr
    assert not target.exists()
