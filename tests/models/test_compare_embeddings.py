"""tools/compare/embeddings: its texts, its files, its worker, its table."""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from pathlib import Path

import encoder_models as em
import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

import akunu

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare import embeddings
from tools.compare.embeddings import Measured
from tools.compare.engine_process import EngineProcess

pytestmark = pytest.mark.tools


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = em.EncoderSpec()
    return em.write_directory(tmp_path_factory.mktemp("encoder"), spec, em.random_tensors(spec))


def test_texts_have_as_many_tokens_as_asked_for(directory: Path) -> None:
    vocabulary = json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"]
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    cls, sep = vocabulary["[CLS]"], vocabulary["[SEP]"]
    tokenizer.post_processor = BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    for n in (3, 16, 64):
        texts = embeddings.texts_of(directory / "tokenizer.json", n, random.Random(n))
        assert len(texts) == 32
        assert {len(tokenizer.encode(text).ids) for text in texts} == {n}


def test_the_worker_embeds_as_the_model_does(directory: Path) -> None:
    texts = ["cat dog", "dog"]
    with EngineProcess(sys.executable, "embed_akunu", directory, context=16, threads=1) as worker:
        assert worker.hello["version"].startswith("akunu ")
        answer = worker.ask({"texts": texts, "vectors": True})
        assert worker.ask({"texts": texts, "vectors": False})["vectors"] is None
    assert answer["seconds"] > 0
    with akunu.load(directory) as model:
        assert np.array_equal(np.float32(answer["vectors"]), model.embed(texts))


def test_ratios_say_how_much_longer_an_engine_took() -> None:
    found = {
        "akunu F32": {16: Measured([0.1, 0.2, 0.4], [0.2, 0.2, 0.2])},
        "other": {16: Measured([0.2, 0.4, 0.4], [0.1, 0.1, 0.1], 0.5)},
    }
    lines = embeddings.markdown(found).splitlines()
    assert "| akunu F32 | 200.0 | 1.00000 | 1.00 |" in lines
    assert "| other | 400.0 | 0.50000 | 2.00 |" in lines  # of wall time
    assert "| other | 100.0 | 0.50000 | 0.50 |" in lines  # of processor time


def test_all_of_it_beside_nobody(directory: Path, tmp_path: Path, capsys) -> None:
    parser = argparse.ArgumentParser()
    embeddings.add_arguments(parser)
    given = [str(directory), "--work", str(tmp_path / "work"), "--peers", "", "--tokens", "8"]
    assert embeddings.run(parser.parse_args([*given, "-r", "2", "-t", "1"])) == 0
    said = capsys.readouterr().out
    rows = re.findall(r"^\| akunu ([^|]+) \| [0-9.]+ \| (-?[0-9.]+) \|", said, re.MULTILINE)
    assert {name for name, _ in rows} == set(embeddings.FORMATS)
    assert all(float(cosine) > 0.99 for _, cosine in rows)
    # What was made is taken the next time.
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").iterdir()}
    assert embeddings.run(parser.parse_args([*given, "-r", "2", "-t", "1"])) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "work").iterdir()} == written


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--peers", "tensorflow"], "tensorflow"),
        (["--tokens", "2"], "3 or more"),
        (["--turns", "0"], "turns"),
        (["--threads", "0"], "threads"),
    ],
)
def test_nonsense_is_refused_before_anything_is_made(
    directory: Path, tmp_path: Path, wrong: list[str], said: str
) -> None:
    parser = argparse.ArgumentParser()
    embeddings.add_arguments(parser)
    arguments = parser.parse_args([str(directory), "--work", str(tmp_path / "work"), *wrong])
    with pytest.raises(ValueError, match=said):
        embeddings.run(arguments)
    assert not (tmp_path / "work").exists()
