"""Vocabularies for the tokenizer tests: parts of real ones, the whole ones where they are, and tiny
ones made here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from akunu.tokenizers.text_models import byte_alphabet
from akunu.tokenizers.tokenizer import Tokenizer

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "data"


def with_whole(*families: str) -> list[ParameterSet]:
    """Names for `real_tokenizer`: parts that lie in `tests/data`, and nightly the whole ones."""
    whole = [pytest.param(f"whole-{family}", marks=pytest.mark.slow) for family in families]
    return [*map(pytest.param, families), *whole]


FAMILIES = with_whole("bert-bge", "gpt-2", "llama-bpe", "llama-spm", "qwen2")


def shared(variable: str, name: str) -> Path:
    """Return a folder of test data, or skip."""
    given = os.environ.get(variable)
    folder = Path(given) if given else REPOSITORY.parent / "shared" / name
    if not folder.is_dir():
        pytest.skip(f"no test data: set {variable} or put it at {folder}")
    return folder


def vocabulary_file(family: str) -> Path:
    """Return the file with a part of a real model's vocabulary, or the whole one, or skip."""
    name = f"ggml-vocab-{family.removeprefix('whole-')}.gguf"
    if not family.startswith("whole-"):
        return DATA / "vocabularies" / name
    path = shared("AKUNU_TEST_VOCABS", "vocab") / name
    if not path.is_file():
        pytest.skip(f"no test data: {path}")
    return path


def cases(family: str) -> list[tuple[str, list[int]]]:
    """Return the texts that come with a real vocabulary and the ids they must give."""
    path = vocabulary_file(family)
    with open(f"{path}.inp", encoding="utf-8", newline="") as file:
        texts = file.read().split("\n__ggml_vocab_test__\n")
    with open(f"{path}.out", encoding="utf-8") as file:
        ids = [[int(word) for word in line.split()] for line in file.read().split("\n")]
    assert len(texts) == len(ids)
    return list(zip(texts, ids, strict=True))


def metadata_from_gguf_package(path: Path) -> dict[str, object]:
    """Read a file's metadata with the `gguf` package: a second source, not our parser."""
    gguf = pytest.importorskip("gguf")
    metadata: dict[str, object] = {}
    for key, field in gguf.GGUFReader(path).fields.items():
        if field.types[0] != gguf.GGUFValueType.ARRAY:
            metadata[key] = field.contents()
        elif field.types[1] == gguf.GGUFValueType.STRING:
            metadata[key] = [
                bytes(field.parts[part]).decode("utf-8", "surrogateescape") for part in field.data
            ]
        else:
            metadata[key] = np.concatenate([field.parts[part] for part in field.data])
    return metadata


def read_metadata(path: Path) -> Mapping[str, object]:
    """Read a file's metadata with our parser, or with the `gguf` package where it is not built."""
    try:
        from akunu import _core

        return _core.GgufFile(str(path))
    except (ImportError, AttributeError):
        return metadata_from_gguf_package(path)


@cache
def real_tokenizer(family: str) -> Tokenizer:
    """Return the tokenizer of a real model: `"gpt-2"` of a part, `"whole-gpt-2"` or skip."""
    return Tokenizer.from_metadata(read_metadata(vocabulary_file(family)))


def byte_level(*tokens: str, merges: tuple[str, ...] = (), **keys: object) -> dict[str, object]:
    """Return a byte-level vocabulary: the 256 bytes (ids 0 to 255 are the bytes), then these.

    A token written `<|...|>` is a control token, one written `{...}` user-defined.
    """
    texts = [*byte_alphabet(), *tokens]
    types = [3 if text.startswith("<|") else 4 if text.startswith("{") else 1 for text in texts]
    types[:256] = [1] * 256
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.merges": list(merges),
        **{f"tokenizer.ggml.{name}": value for name, value in keys.items()},
    }


def sentencepiece(
    *pieces: tuple[str, float], user_defined: tuple[str, ...] = (), **keys: object
) -> dict[str, object]:
    """Return a SentencePiece vocabulary: <unk> 0, <s> 1, </s> 2, bytes from 3, pieces from 259."""
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    scores = [0.0] * len(texts)
    types = [2, 3, 3] + [6] * 256
    for text, score in pieces:
        texts.append(text)
        scores.append(score)
        types.append(1)
    for text in user_defined:
        texts.append(text)
        scores.append(0.0)
        types.append(4)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.scores": np.array(scores, np.float32),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        **{f"tokenizer.ggml.{name}": value for name, value in keys.items()},
    }
