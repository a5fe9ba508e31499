"""Prompts for models that fill in what is missing between two texts, mostly of code.

A model that was trained for it has three tokens, which its vocabulary spells in one of these ways.

>>> from akunu import Tokenizer
>>> fill_in_of(Tokenizer.from_gguf("ember")) is None
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from akunu.tokenizers.tokenizer import Tokenizer

# The special tokens that introduce the prefix, the suffix and the missing text. A line with two
# tokens has none for the missing text, and its suffix comes before its prefix.
_SPELLINGS: Final = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen Coder, CodeGemma
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    ("<|fim▁begin|>", "<|fim▁hole|>", "<|fim▁end|>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek Coder
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM
    ("▁<PRE>", "▁<SUF>", "▁<MID>"),  # CodeLlama
    ("[PREFIX]", "[SUFFIX]"),  # Codestral
)


@dataclass(frozen=True, slots=True)
class FillIn:
    """The tokens with which a model fills in a gap."""

    prefix: int
    suffix: int
    middle: int | None
    """None: the text after comes first, and the text before last."""

    def prompt(self, tokenizer: Tokenizer, before: str, behind: str) -> list[int]:
        """Return the ids of a prompt for what is between two texts."""
        opening = tokenizer.encode("")[:1] if tokenizer.add_bos else []
        pieces: list[str | int]
        if self.middle is None:
            pieces = [self.suffix, behind, self.prefix, before]
        else:
            pieces = [self.prefix, before, self.suffix, behind, self.middle]
        return opening + tokenizer.encode_pieces(pieces)


def fill_in_of(tokenizer: Tokenizer) -> FillIn | None:
    """Return how a model fills in, None for one that was not made for it."""
    for names in _SPELLINGS:
        ids = [tokenizer.token_id(name) for name in names]
        if None not in ids:
            prefix, suffix, *middle = ids
            assert prefix is not None
            assert suffix is not None
            return FillIn(prefix, suffix, middle[0] if middle else None)
    return None
