"""A vocabulary of a real model, cut to the tokens that some texts need: small enough for a test.

    python -m tools.cut_vocabulary ggml-vocab-gpt-2.gguf tests/data/vocabularies --first 300

Beside the file lie `.inp`, texts with a line `__ggml_vocab_test__` between them, and `.out`, their
token ids by llama.cpp, a line for each text. What is written has the same three parts: the file
with control tokens, bytes, the first tokens of the vocabulary, the tokens of the texts and every
token on the way to them; the texts; and llama.cpp's ids in the new numbering.

Merges and scores keep their order, so of two merges the same one comes first as before, and a text
of which all tokens are there has the same ones: this is checked before anything is written. The new
file's array `akunu.original_ids` has the number that each token had.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from gguf import GGUFValueType, GGUFWriter

from akunu import _core
from akunu.tokenizers.text_models import byte_alphabet
from akunu.tokenizers.tokenizer import Tokenizer

ORIGINAL_IDS = "akunu.original_ids"
BETWEEN = "\n__ggml_vocab_test__\n"
NORMAL = 1
PREFIX = "tokenizer.ggml."


class Vocabulary:
    """What a file says of its tokens."""

    def __init__(self, path: Path) -> None:
        self.file = _core.GgufFile(str(path))
        self.tokens: list[str] = self.file[PREFIX + "tokens"]
        self.types = np.asarray(self.file[PREFIX + "token_type"])
        self.model: str = self.file[PREFIX + "model"]
        keys = self.file.keys()
        self.merges: list[str] = self.file[PREFIX + "merges"] if PREFIX + "merges" in keys else []
        self.scores = self.file[PREFIX + "scores"] if PREFIX + "scores" in keys else None
        self.ids = {token: index for index, token in enumerate(self.tokens)}

    def always(self, first: int) -> set[int]:
        """Ids that every cut keeps: what is no ordinary text, bytes, and the first tokens."""
        kept = set(np.flatnonzero(self.types != NORMAL).tolist()) | set(range(first))
        if self.model == "gpt2":
            kept |= {self.ids[letter] for letter in byte_alphabet()}
        return kept

    def steps_to(self, tokens: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The merges that make these tokens, each of the tokens for itself.

        No merge of a text crosses the edge of a token that comes out: there they are the same.
        """
        ranks = {merge: rank for rank, merge in enumerate(self.merges)}

        def rank_of(left: str, right: str) -> float | None:
            if self.scores is None:
                return ranks.get(f"{left} {right}")
            index = self.ids.get(left + right)
            return None if index is None else -float(self.scores[index])

        for token in tokens:
            parts = list(token)
            while len(parts) > 1:
                ranked = [
                    (rank, i)
                    for i in range(len(parts) - 1)
                    if (rank := rank_of(parts[i], parts[i + 1])) is not None
                ]
                if not ranked:
                    break  # a token that no merges lead to: of a word that is one
                _, i = min(ranked)
                yield parts[i], parts[i + 1]
                parts[i : i + 2] = [parts[i] + parts[i + 1]]


def needed(vocabulary: Vocabulary, ids: Iterable[int]) -> tuple[list[int], list[str]]:
    """Ids with all that lead to them, in order; and the merges, in order."""
    kept = set(ids)
    merges: set[str] = set()
    if vocabulary.model != "bert":  # that one looks words up, and does not put them together
        ordinary = [vocabulary.tokens[i] for i in sorted(kept) if vocabulary.types[i] == NORMAL]
        for left, right in vocabulary.steps_to(ordinary):
            merges.add(f"{left} {right}")
            kept |= {vocabulary.ids[part] for part in (left, right, left + right)}
    return sorted(kept), [merge for merge in vocabulary.merges if merge in merges]


def write(vocabulary: Vocabulary, kept: list[int], merges: list[str], path: Path) -> None:
    """The file with these tokens and what else was said of the tokenizer."""
    file = vocabulary.file
    new_id = {old: new for new, old in enumerate(kept)}
    writer = GGUFWriter(path, file["general.architecture"])
    writer.add_name(f"{file['general.name']}, {len(kept)} of {len(vocabulary.tokens)} tokens")
    for key in file.keys():  # noqa: SIM118 - it is no dict
        value = file[key]
        if not key.startswith("tokenizer.") or isinstance(value, (list, np.ndarray)):
            continue
        if key.endswith("_token_id"):
            writer.add_uint32(key, new_id[value])
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_uint32(key, value)
    writer.add_token_list([vocabulary.tokens[old] for old in kept])
    writer.add_token_types([int(vocabulary.types[old]) for old in kept])
    if vocabulary.scores is not None:
        writer.add_token_scores([float(vocabulary.scores[old]) for old in kept])
    if merges:
        writer.add_token_merges(merges)
    writer.add_key_value(ORIGINAL_IDS, kept, GGUFValueType.ARRAY, GGUFValueType.INT32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def cut(path: Path, folder: Path, *, first: int, more: list[str]) -> int:
    """Write the three files into `folder`; return how many tokens are left."""
    inputs, outputs = Path(f"{path}.inp"), Path(f"{path}.out")
    with open(inputs, encoding="utf-8", newline="") as file:
        texts = file.read().split(BETWEEN)
    lines = outputs.read_text(encoding="utf-8").split("\n")
    expected = [[int(word) for word in line.split()] for line in lines]
    full = Tokenizer.from_gguf(path)
    for text in more:  # of which llama.cpp's ids are not known
        texts.append(text)
        expected.append(full.encode(text, add_special=False))

    vocabulary = Vocabulary(path)
    kept, merges = needed(
        vocabulary, vocabulary.always(first) | {index for ids in expected for index in ids}
    )
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / path.name
    write(vocabulary, kept, merges, made)
    new_id = {old: new for new, old in enumerate(kept)}
    tokenizer = Tokenizer.from_gguf(made)
    for text, ids in zip(texts, expected, strict=True):
        found = [kept[index] for index in tokenizer.encode(text, add_special=False)]
        if found != ids:
            made.unlink()
            raise SystemExit(f"{path}: {text!r} gives {found} of the cut vocabulary, not {ids}")
    shutil.copyfile(inputs, f"{made}.inp")
    Path(f"{made}.out").write_text(
        "\n".join(
            "".join(f" {new_id[i]}" for i in ids) for ids in expected[: len(expected) - len(more)]
        ),
        encoding="utf-8",
    )
    return len(kept)


def main(arguments: list[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.cut_vocabulary", description=__doc__)
    parser.add_argument("path", type=Path, help="a vocabulary, with .inp and .out beside it")
    parser.add_argument("folder", type=Path, help="where the cut one goes, under the same name")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="keep the first N tokens")
    parser.add_argument(
        "--text", action="append", default=[], help="keep this text's tokens too (repeatable)"
    )
    chosen = parser.parse_args(arguments)
    count = cut(chosen.path, chosen.folder, first=chosen.first, more=chosen.text)
    print(f"{chosen.folder / chosen.path.name}: {count} tokens")


if __name__ == "__main__":
    main(sys.argv[1:])
