"""`akunu embed`: texts in, vectors out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["a", "-f", "b"], 2, "two ways"),
        (["a", "-o", "b.txt"], 2, "must end with .npy"),
        (["a " * 40], 1, "texts[0]: the text has 42 tokens, the model takes 32"),
        (["a", "--pooling", "sum"], 1, "pooling is 'sum'"),
        (["--jsonl", "-f", __file__], 2, "line 1"),
    ],
    ids=["two ways", "no npy", "too long", "pooling", "no JSON"],
)
def test_what_makes_no_sense_is_said(
    run_akunu: Run, bert_file: str, arguments: list[str], code: int, words: str
) -> None:
    done = run_akunu("embed", bert_file, *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
