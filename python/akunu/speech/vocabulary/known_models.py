"""What OpenAI published of its models and files of whisper.cpp leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

Heads = tuple[tuple[int, int], ...]

_ALIGNMENT_HEADS: Final[Mapping[str, str]] = {
    "tiny.en": "1.0 2.0 2.5 3.0 3.1 3.2 3.3 3.4",
    "tiny": "2.2 3.0 3.2 3.3 3.4 3.5",
    "base.en": "3.3 4.7 5.1 5.5 5.7",
    "base": "3.1 4.2 4.3 4.7 5.1 5.2 5.4 5.6",
    "small.en": "6.6 7.0 7.3 7.8 8.2 8.5 8.7 9.0 9.4 9.8 9.10 10.0 10.1 10.2 10.3 10.6 10.11 "
    "11.2 11.4",
    "small": "5.3 5.9 8.0 8.4 8.7 8.8 9.0 9.7 9.9 10.5",
    "medium.en": "11.4 14.1 14.12 14.14 15.4 16.0 16.4 16.9 17.12 17.14 18.7 18.10 18.15 20.0 "
    "20.3 20.9 20.14 21.12",
    "medium": "13.15 15.4 15.15 16.1 20.0 23.4",
    "large-v1": "9.19 11.2 11.4 11.17 22.7 22.11 22.17 23.2 23.15",
    "large-v2": "10.12 13.17 16.11 16.12 16.13 17.15 17.16 18.4 18.11 18.19 19.11 21.2 21.3 22.3 "
    "22.9 22.12 23.5 23.7 23.13 25.5 26.1 26.12 27.15",
    "large-v3": "7.0 10.17 12.18 13.12 16.1 17.14 19.11 21.4 24.1 25.6",
    "large-v3-turbo": "2.4 2.11 3.3 3.6 3.11 3.14",
}
"""LAYER.HEAD of the decoder, by model."""

# Layers of the encoder, layers of the decoder and tokens. There is no line for large-v1 and
# large-v2, which only training told apart.
_BY_SHAPE: Final[Mapping[tuple[int, int, int], str]] = {
    (4, 4, 51864): "tiny.en",
    (4, 4, 51865): "tiny",
    (6, 6, 51864): "base.en",
    (6, 6, 51865): "base",
    (12, 12, 51864): "small.en",
    (12, 12, 51865): "small",
    (24, 24, 51864): "medium.en",
    (24, 24, 51865): "medium",
    (32, 32, 51866): "large-v3",
    (32, 4, 51866): "large-v3-turbo",
}

_BRACKETS: Final = "<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
_SYMBOLS: Final = (*'"#()*+/:;<=>@[\\]^_`{|}~「」『』', *_BRACKETS.split())
_MUSIC: Final = "♩♪♫♬♭♮♯"


def known_model(n_encoder_layers: int, n_decoder_layers: int, n_vocab: int) -> str | None:
    """Return the name of OpenAI's model of this shape; None where there is none, or several.

    >>> known_model(4, 4, 51864)
    'tiny.en'
    """
    return _BY_SHAPE.get((n_encoder_layers, n_decoder_layers, n_vocab))


def alignment_heads(model: str) -> Heads:
    """Return (layer, head) whose attention says when words are said.

    >>> alignment_heads("medium")[0]
    (13, 15)
    """
    pairs = (each.split(".") for each in _ALIGNMENT_HEADS[model].split())
    return tuple((int(layer), int(head)) for layer, head in pairs)


def non_speech_tokens(encode: Callable[[str], list[int]]) -> tuple[int, ...]:
    """Return tokens that begin notes on the sound, "(music)", "♪", "[Anna]", by OpenAI's rule.

    A symbol counts if it is one token, after a space or not. The signs of music count by their
    first token, with which other symbols of Unicode begin. Hyphens and quotes may be within words,
    but not at their beginning.
    """
    found = {encode(" -")[0], encode(" '")[0]}
    for symbol in (*_SYMBOLS, *_MUSIC):
        for tokens in (encode(symbol), encode(" " + symbol)):
            if len(tokens) == 1 or symbol in _MUSIC:
                found.add(tokens[0])
    return tuple(sorted(found))
