"""How each family of byte-level BPE vocabularies cuts text into words before merging.

`FAMILIES` is the table of the engine: the regular expressions that authors published in their
`tokenizer.json`, applied one after the other (each to the pieces that the ones before it left),
and what the family implies when the file does not say. The name is the value of
`tokenizer.ggml.pre`. Whatever no expression matches stays its own piece.
"""

from __future__ import annotations

from dataclasses import dataclass

from akunu import _core


@dataclass(frozen=True, slots=True, kw_only=True)
class PreTokenizer:
    """One family: its names in files, its regular expressions and its defaults."""

    names: tuple[str, ...]
    splits: tuple[str, ...]
    # A word that is a token as a whole is that token, whatever the merges say.
    ignore_merges: bool = False
    # Whether a prompt starts with BOS where the file has no `tokenizer.ggml.add_bos_token`.
    add_bos: bool = False
    # Whether two texts have one more token between them where it has no
    # `tokenizer.ggml.add_sep_token`.
    add_sep: bool = False


def byte_alphabet() -> list[str]:
    """Return GPT-2's printable character for each of the 256 bytes.

    >>> byte_alphabet()[ord(" ")], byte_alphabet()[0xAD]
    ('Ġ', 'Ń')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {byte: chr(0x100 + index) for index, byte in enumerate(others)}
    return [shifted.get(byte, chr(byte)) for byte in range(256)]


FAMILIES: tuple[PreTokenizer, ...] = tuple(PreTokenizer(**each) for each in _core.pre_tokenizers())

BY_NAME: dict[str, PreTokenizer] = {name: family for family in FAMILIES for name in family.names}
