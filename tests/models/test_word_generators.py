"""Generators whose tokens are words, WordLevel and WordPiece, beside the library `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hf_directory
import pytest
from random_models import ModelCase
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

import akunu
from akunu import UnsupportedModelError
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

Cases = Callable[..., ModelCase]
CONTROL = ("[UNK]", "<s>", "</s>")


def word_tokenizer(kind: str, n: int) -> Tokenizer:
    """One with `n` tokens: numbers, the first ones of which have names."""
    # No word begins as another does, unless pieces follow (docs/reference/model-files.md).
    pieces = ["to", "##day", "no", "##t"] if kind != "WordLevel" else []
    named = [*CONTROL, "yes", "but", "not", "today", ",", ".", *pieces]
    words = [*named, *(f"w{index}" for index in range(n - len(named)))]
    ids = {word: index for index, word in enumerate(words)}
    model = models.WordPiece if kind != "WordLevel" else models.WordLevel
    tokenizer = Tokenizer(model(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind != "WordLevel":
        tokenizer.decoder = decoders.WordPiece()
    if kind == "BERT":
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in CONTROL])
    return tokenizer


def written(folder: Path, case: ModelCase, kind: str) -> Tokenizer:
    hf_directory.write(folder, case.spec, case.weights, changes={"eos_token_id": 2})
    tokenizer = word_tokenizer(kind, case.spec.vocab_size)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "[UNK]"})
    )
    return tokenizer


@pytest.mark.parametrize("kind", ["WordLevel", "WordPiece", "BERT"])
def test_a_generator_of_words_runs_as_it_lies(model_case: Cases, tmp_path: Path, kind: str) -> None:
    case = model_case("llama-32")
    theirs = written(tmp_path / "model", case, kind)
    prompt = "yes w1, not today w2"
    ids = theirs.encode(prompt).ids
    with akunu.load(tmp_path / "model") as model:
        assert model.tokenizer.encode(prompt) == ids
        whole = model.generate(prompt, max_tokens=24, ignore_eos=True)
        # Behind [SEP] a text begins anew; behind a word it goes on with a space.
        assert whole.startswith(" ") == (kind != "BERT")
        continued = theirs.decode([*ids, *whole.token_ids])
        assert f"{theirs.decode(ids)} {whole.removeprefix(' ')}" == continued
        assert "".join(model.generate(prompt, max_tokens=24, ignore_eos=True, stream=True)) == whole
        fourth = " " + whole.split()[3]
        stopped = model.generate(prompt, max_tokens=24, ignore_eos=True, stop=fourth)
        assert stopped.finish_reason == "stop"
        assert stopped == whole[: whole.index(fourth)]
        for text in ("yes , but not today", "but", "today today"):
            choice = theirs.decode(theirs.encode(text, add_special_tokens=False).ids)
            assert model.generate(prompt, max_tokens=24, choice=[choice]).strip() == choice


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("WordLevel", "model is of type 'WordLevel', for which GGUF has no tokenizer model"),
        ("WordPiece", "GGUF has only BERT's form"),
    ],
)
def test_a_tokenizer_that_gguf_has_not_is_refused_by_name(
    model_case: Cases, tmp_path: Path, kind: str, message: str
) -> None:
    written(tmp_path / "model", model_case("llama-32"), kind)
    with pytest.raises(UnsupportedModelError, match=message):
        Quantization(DirectorySource(tmp_path / "model"), Wishes(recipe=RECIPES["F32"]))


def test_wordpiece_as_berts_is_converted(model_case: Cases, tmp_path: Path) -> None:
    theirs = written(tmp_path / "model", model_case("llama-32"), "BERT")
    target = tmp_path / "made.gguf"
    Quantization(DirectorySource(tmp_path / "model"), Wishes(recipe=RECIPES["F32"])).write(target)
    ours = akunu.Tokenizer.from_gguf(target)
    for text in ("Yes, but not TODAY", "w1w2 wé today.", ""):
        assert ours.encode(text) == theirs.encode(text).ids
