"""`akunu rank`: a query and documents in, documents in order out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from gguf import PoolingType

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

import akunu

Run = Callable[..., "CompletedProcess[str]"]
SPEC = em.EncoderSpec(positions=32)
DOCUMENTS = ["dogs", "cat a b", "b c d"]


@pytest.fixture(scope="module")
def ranker_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(1)
    more = {"cls.output.weight": rng.standard_normal((1, SPEC.dim)).astype(np.float32)}
    path = tmp_path_factory.mktemp("ranker") / "ranker.gguf"
    tensors = em.random_tensors(SPEC)
    return str(em.write_gguf(path, SPEC, tensors, pooling=PoolingType.RANK, more=more))


def lines_of(done: CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_documents_come_best_first_a_line_each(
    run_akunu: Run, ranker_file: str, tmp_path: Path
) -> None:
    with akunu.load(ranker_file) as model:
        expected = [
            {"index": each.index, "score": each.score, "document": each.document}
            for each in model.rank("a cat", DOCUMENTS)
        ]
    assert lines_of(run_akunu("rank", ranker_file, "a cat", *DOCUMENTS)) == expected
    piped = run_akunu("rank", ranker_file, "a cat", "--top-k", "2", stdin="\n".join(DOCUMENTS))
    assert lines_of(piped) == expected[:2]
    lines = tmp_path / "documents.jsonl"
    lines.write_text('{"text": "dogs"}\n"cat a b"\n{"text": "b c d", "id": 3}\n')
    done = run_akunu("rank", ranker_file, "a cat", "--jsonl", "-f", str(lines))
    assert lines_of(done) == expected


@each_line(
    ("arguments", "code", "words"),
    [
        (["a", "b", "-f", "c"], 2, "by arguments and by --file"),
        (["a", "b", "a " * 40], 1, "documents[1]: the query and the document have 44 tokens"),
        (["a", "b", "--top-k", "0"], 1, "top_k is 0"),
        (["a", "b", "--instruction", "c"], 1, "instruction is for models"),
    ],
    ids=["two ways", "too long", "top_k", "instruction"],
)
def test_what_makes_no_sense_is_said(
    run_akunu: Run, ranker_file: str, arguments: list[str], code: int, words: str
) -> None:
    done = run_akunu("rank", ranker_file, *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
