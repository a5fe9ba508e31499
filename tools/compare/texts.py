"""Tokens to compare engines on, in chunks of the same length."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from ember import mixture
from ember.chat_template import pieces
from ember.dialogue import Draw

import akunu

Chunks = list[list[int]]


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens in chunks, and for each whether the perplexity counts it, in the same shape."""

    chunks: Chunks
    counted: list[list[bool]]


def held_out_dialogues(n_characters: int) -> list[tuple[str, bool]]:
    """Dialogues that Ember was not trained on, in its chat format, at least that long together.

    In pieces, each with whether it is a reply: Ember never learned to write the questions.
    """
    draw = Draw("accuracy", held_out=True)
    text: list[tuple[str, bool]] = []
    length = 0
    while length < n_characters:
        made = mixture.dialogue(draw)
        for piece, is_reply in pieces(made.messages, made.tools):
            text.append((piece, is_reply))
            length += len(piece)
    return text


def random_tokens(vocab_size: int, n: int) -> list[int]:
    """The same every time; each as likely as any other."""
    draw = random.Random(0)
    return [draw.randrange(vocab_size) for _ in range(n)]


def read_text(tokenizer: akunu.Tokenizer, source: str, *, length: int, n_chunks: int) -> Text:
    """`n_chunks` chunks of `length` tokens from `source`: "dialogues", "random" or a file's path.

    As llama.cpp's `perplexity` does: the text is one sequence of tokens, and where the model wants
    a token at the beginning, that replaces the first of each chunk. Of dialogues only replies are
    counted. Raises ValueError where the text is too short.
    """
    needed = length * n_chunks
    if source == "random":
        tokens = random_tokens(tokenizer.vocab_size, needed)
        counted = [True] * needed
    elif source == "dialogues":
        tokens, counted = [], []
        for piece, is_reply in held_out_dialogues(16 * needed):  # no token is longer on average
            ids = tokenizer.encode(piece, add_special=False, parse_special=True)
            tokens += ids
            counted += [is_reply] * len(ids)
    else:
        text = Path(source).read_text()
        tokens = tokenizer.encode(text, add_special=True, parse_special=True)
        counted = [True] * len(tokens)
    if len(tokens) < needed:
        raise ValueError(
            f"{source} has {len(tokens)} tokens, {n_chunks} chunks of {length} need {needed}"
        )
    places = [slice(i * length, (i + 1) * length) for i in range(n_chunks)]
    made = Text([tokens[place] for place in places], [counted[place] for place in places])
    if tokenizer.add_bos and tokenizer.bos_id is not None:
        for chunk in made.chunks:
            chunk[0] = tokenizer.bos_id
    return made
