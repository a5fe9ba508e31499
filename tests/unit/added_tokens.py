"""Tokenizers of the library with random added tokens, and texts that have those in them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tokenizer_support import cases
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

NAMES = (
    "<A>",
    "<b>",
    "<A> ",
    "Ab",
    "the",
    "<a><b>",
    "<A",
    "é",
    "e\u0301",
    " x",
    "_x",
    "\n\n",
    "日",
)
AROUND = ("", " ", "  ", "\n", "\n\n", "\t\u3000", "\u00a0", "a", "B", "é", "_", "1", "-", ".", "<")


def bytes_of(*cuts: Any, **options: Any) -> Tokenizer:
    """BPE on bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("a", "t"), ("Ġ", "the"), ("Ċ", "Ċ"), ("<", "A")]
    tokens = [*letters, *(a + b for a, b in merges)]
    model = models.BPE({token: i for i, token in enumerate(tokens)}, merges, **options)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not cuts)]
    )
    return tokenizer


def characters(*steps: Any, cut: Any = None) -> Tokenizer:
    """BPE on characters as SentencePiece's."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁theao12xA<>"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("a", "t"), ("▁", "a"), ("▁", "▁"), ("▁", "x")]
    tokens += [a + b for a, b in merges]
    options = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges, **options))
    if steps:
        tokenizer.normalizer = normalizers.Sequence([*steps])
    if cut is not None:
        tokenizer.pre_tokenizer = cut
    return tokenizer


def unigram(*steps: Any, cut: Any) -> Tokenizer:
    """Pieces with scores, as T5 has."""
    pieces = [("<unk>", 0.0), ("▁the", -2.0), ("▁", -1.5), ("at", -3.1), ("the", -2.5)]
    pieces += [(letter, -3.0 - index / 8) for index, letter in enumerate("heaox12<Ab>")]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    if steps:
        tokenizer.normalizer = normalizers.Sequence([*steps])
    tokenizer.pre_tokenizer = cut
    return tokenizer


def wordpiece(**options: Any) -> Tokenizer:
    """Words as BERT's."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"theao1,日éxb", "the", "##at", "##t", "##h"]
    model = models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def words(*steps: Any, cut: Any) -> Tokenizer:
    """Whole words."""
    tokens = ["<unk>", "the", "a", "at", "x", "<", ">"]
    model = models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    if steps:
        tokenizer.normalizer = normalizers.Sequence([*steps])
    tokenizer.pre_tokenizer = cut
    return tokenizer


def with_normalizer(tokenizer: Tokenizer, normalizer: Any) -> Tokenizer:
    """The same, with another normalizer."""
    tokenizer.normalizer = normalizer
    return tokenizer


def metaspace(scheme: str, **options: Any) -> Any:
    """Spaces written by the pre-tokenizer."""
    return pre_tokenizers.Metaspace("▁", scheme, **options)


SPELL = normalizers.Replace(" ", "▁")
PREFIX = normalizers.Prepend("▁")
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "bytes": bytes_of,
    "bytes, whole words": lambda: bytes_of(
        pre_tokenizers.Split(Regex(r"\s+|\S+"), "isolated"), ignore_merges=True
    ),
    "bytes, digits": lambda: bytes_of(
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Split(Regex(r" ?[\p{L}\p{N}]+|\s+(?!\S)|\s+|[^\s\p{L}\p{N}]"), "isolated"),
    ),
    "bytes, nfc": lambda: with_normalizer(bytes_of(), normalizers.NFC()),
    "bytes, nfkc": lambda: with_normalizer(bytes_of(), normalizers.NFKC()),
    "bytes, lower case": lambda: with_normalizer(bytes_of(), normalizers.Lowercase()),
    "characters": lambda: characters(SPELL),
    "characters, prefixed": lambda: characters(PREFIX, SPELL),
    "characters, nfc": lambda: characters(normalizers.NFC(), PREFIX, SPELL),
    "characters, lower case": lambda: characters(normalizers.Lowercase(), SPELL),
    "characters, split at spaces": lambda: characters(
        SPELL, cut=pre_tokenizers.Split(" ", "merged_with_previous")
    ),
    "characters, prefixed by the cutter": lambda: characters(cut=metaspace("always", split=False)),
    "characters, first prefixed": lambda: characters(cut=metaspace("first", split=False)),
    "characters, by the cutter": lambda: characters(cut=metaspace("never", split=False)),
    "characters, by both": lambda: characters(SPELL, cut=metaspace("always", split=False)),
    "unigram": lambda: unigram(cut=metaspace("always")),
    "unigram, first": lambda: unigram(normalizers.Lowercase(), cut=metaspace("first")),
    "unigram, stripped": lambda: unigram(
        normalizers.NFC(), normalizers.Strip(), cut=metaspace("always")
    ),
    "unigram, nfkc": lambda: unigram(
        normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), cut=metaspace("never")
    ),
    "bert": wordpiece,
    "bert, with case": lambda: wordpiece(lowercase=False),
    "words": lambda: words(cut=pre_tokenizers.Whitespace()),
    "words, lower case": lambda: words(
        normalizers.NFD(), normalizers.Lowercase(), cut=pre_tokenizers.WhitespaceSplit()
    ),
}


def with_added(tokenizer: Tokenizer, seed: int) -> Tokenizer:
    """Add three to six tokens, each found in its own way."""
    choose = random.Random(seed)
    for name in choose.sample(NAMES, choose.randrange(3, 7)):
        options = {key: choose.random() < 0.4 for key in ("lstrip", "rstrip", "single_word")}
        token = AddedToken(name, normalized=choose.random() < 0.5, **options)
        # What the model makes of ordinary text never becomes a control token of akunu.
        is_special = choose.random() < 0.3 and tokenizer.token_to_id(name) is None
        (tokenizer.add_special_tokens if is_special else tokenizer.add_tokens)([token])
    return tokenizer


def ids_of(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """The library's ids; None where it panics: of two tokens, both take the space between."""
    try:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:
        if "bad split" not in str(error):
            raise
        return None
    return ids


def texts(tokenizer: Tokenizer, seed: int, n: int = 40) -> Iterator[str]:
    """Texts that come with a real vocabulary, and such with the added tokens in them."""
    choose = random.Random(seed)
    given = [text for text, _ in cases("gpt-2")]
    names = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    yield from given
    for _ in range(n):
        parts = [choose.choice(names) for _ in range(choose.randrange(1, 4))]
        text = choose.choice((*AROUND, *given))
        for part in parts:
            part = choose.choice((part, part, part.upper(), part.lower()))
            text += choose.choice(AROUND) + part + choose.choice(AROUND)
        yield text
