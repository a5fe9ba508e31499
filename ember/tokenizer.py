"""A byte-level BPE of 4,096 tokens with the `qwen2` pre-tokenizer: digits stand alone."""

import re
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from . import mixture
from .chat_template import pieces
from .dialogue import Draw

VOCABULARY = 4096
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END_OF_TEXT, TURN_START, TURN_END = range(3)
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train(n_dialogues: int = 60_000, seed: str = "tokenizer") -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    draw = Draw(seed)

    def texts() -> Iterator[str]:
        between = re.compile(
            "|".join(map(re.escape, SPECIAL))
        )  # nothing merges across a control token
        for _ in range(n_dialogues):
            made = mixture.dialogue(draw)
            yield from between.split("".join(text for text, _ in pieces(made.messages, made.tools)))

    tokenizer.train_from_iterator(texts(), trainer)
    if tokenizer.get_vocab_size() != VOCABULARY:
        n_tokens = tokenizer.get_vocab_size()
        raise ValueError(f"expected {VOCABULARY} tokens, the text gave {n_tokens}")
    return tokenizer


def load(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))
