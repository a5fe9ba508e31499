"""Random texts for tokenizers, made of what they disagree on."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache

# Where tokenizers differ: spaces, digits, cases, scripts, marks, ends of lines, special tokens.
PIECES = (
    *"abcdefghijklmnopqrstuvwxyzABCXYZ0123456789 .,;:!?'\"()[]{}<>|/\\-_+=*&^%$#@~`\n\r\t\v\f",
    " the", "ing", " 's", "'LL", "'ſ", "İstanbul", "ǅ", "K", "ﬁ", "é", "e\u0301", "ñ", "Å",
    "  ", "   ", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1c",
    "中文", "日本語テキスト", "한국어", "ไทย", "हिन्दी", "العربية", "עברית", "Ελληνικά",
    "Русский", "😀", "👩‍👩‍👧", "🇩🇪", "\u200d", "\ufeff", "\ufffd", "½", "²", "Ⅷ", "٣", "१२३", "→",
    "€", "\u0300",
    "<|im_end|>", "<s>", "</s>", "[CLS]", "[UNK]", "<0x0A>", "\u2581", "##", "Ġ", "\x00", "\x7f",
    "\x9f",
)  # fmt: skip
# A surrogate, a number above all characters, and one that is written too long.
FORBIDDEN = (b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80")
# The general categories of Unicode that the regular expressions of tokenizers distinguish.
CLASSES = {
    "marks": ("Mn", "Mc", "Me"),
    "letters": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "numbers": ("Nd", "Nl", "No"),
    "punctuation": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"),
    "spaces": ("Zs", "Zl", "Zp"),
    "others": ("Cc", "Cf", "Co", "Cn"),
}


@cache
def characters(name: str) -> tuple[str, ...]:
    """All characters of a class, from all planes."""
    wanted = CLASSES[name]
    every = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    return tuple(c for c in every if unicodedata.category(c) in wanted)


def random_texts(n: int, seed: int, names: Sequence[str] = ()) -> Iterator[str]:
    """Return `n` texts; `names` are those of the vocabulary's special tokens."""
    choose = random.Random(seed)

    def scalar() -> str:
        while (
            0xD800 <= (code := 0x10000 * choose.randrange(17) + choose.randrange(0x10000)) < 0xE000
        ):
            pass
        return chr(code)

    def of(name: str, most: int) -> str:
        return "".join(choose.choices(characters(name), k=choose.randrange(1, most)))

    def pieces() -> str:
        return "".join(choose.choices(PIECES, k=choose.randrange(1, 30)))

    def planes() -> str:
        return "".join(scalar() for _ in range(choose.randrange(1, 8)))

    def marked() -> str:
        base = choose.choice((*"aeoAEOקक가ㅏ", of("letters", 2)))
        return base + of("marks", 5)

    def whitespace() -> str:
        spaces = choose.choice((" ", "\n", "\t", " \n", " \r\n\t", (*characters("spaces"), " ")))
        return "".join(choose.choices(spaces, k=choose.randrange(1, 24)))

    def special() -> str:
        name = choose.choice(names) if names else choose.choice(("<s>", "<|im_end|>", "[CLS]"))
        begin, end = sorted(choose.choices(range(len(name) + 1), k=2))
        return choose.choice((name, name + name, name[begin:end], name.upper(), " " + name))

    def word() -> str:
        word = "".join(choose.choices("etaoinshrdluETAOIN'", k=choose.randrange(1, 12)))
        return choose.choice((word, " " + word, word.title(), word + "'s"))

    def digits() -> str:
        return "".join(choose.choices("0123456789" + "٣१½", k=choose.randrange(1, 9)))

    def classes() -> str:
        return of(choose.choice(tuple(CLASSES)), 6)

    kinds: tuple[Callable[[], str], ...] = (
        pieces, pieces, planes, marked, whitespace, special, word, word, digits, classes,
    )  # fmt: skip
    for _ in range(n):
        yield "".join(choose.choice(kinds)() for _ in range(choose.randrange(6)))


def random_bytes(n: int, seed: int) -> Iterator[bytes]:
    """Return `n` texts in UTF-8, most of them damaged."""
    choose = random.Random(seed)
    # Bytes that begin a character, go on with one, or do neither.
    damages = (0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF)
    for text in random_texts(n, seed):
        raw = bytearray(text.encode())
        for _ in range(choose.randrange(3)):
            at = choose.randrange(len(raw) + 1)
            match choose.randrange(4):
                case 0:
                    del raw[at:]
                case 1:
                    raw[at : at + 1] = b""
                case 2:
                    raw.insert(at, choose.choice(damages))
                case _:
                    raw[at:at] = choose.choice(
                        (b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80")
                    )
        yield bytes(raw)
