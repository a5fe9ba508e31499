"""Tokens to compare engines on, in chunks of the same length."""

from __future__ import annotations

import random
from pathlib import Path

from tools.train_ember import mixture
from tools.train_ember.chat_template import pieces
from tools.train_ember.dialogue import Draw

import akunu

Chunks = list[list[int]]


def held_out_dialogues(n_characters: int) -> str:
    """Dialogues that Ember was not trained on, in its chat format, at least that long together."""
    draw = Draw("accuracy", held_out=True)
    text = ""
    while len(text) < n_characters:
        made = mixture.dialogue(draw)
        text += "".join(piece for piece, _ in pieces(made.messages, made.tools))
    return text


def random_tokens(vocab_size: int, n: int) -> list[int]:
    """The same every time; each as likely as any other."""
    draw = random.Random(0)
    return [draw.randrange(vocab_size) for _ in range(n)]


def chunks_of(tokenizer: akunu.Tokenizer, source: str, *, length: int, n_chunks: int) -> Chunks:
    """`n_chunks` chunks of `length` tokens from `source`: "dialogues", "random" or a file's path.

    As llama.cpp's `perplexity` does: the text is one sequence of tokens, and where the model wants
    a token at the beginning, that replaces the first of each chunk. Raises ValueError where the
    text is too short.
    """
    needed = length * n_chunks
    if source == "random":
        tokens = random_tokens(tokenizer.vocab_size, needed)
    else:
        text = (
            # No token is longer than 16 characters on average.
            held_out_dialogues(16 * needed) if source == "dialogues" else Path(source).read_text()
        )
        tokens = tokenizer.encode(text, add_special=True, parse_special=True)
    if len(tokens) < needed:
        raise ValueError(
            f"{source} has {len(tokens)} tokens, {n_chunks} chunks of {length} need {needed}"
        )
    chunks = [tokens[i * length : (i + 1) * length] for i in range(n_chunks)]
    if tokenizer.add_bos and tokenizer.bos_id is not None:
        for chunk in chunks:
            chunk[0] = tokenizer.bos_id
    return chunks
