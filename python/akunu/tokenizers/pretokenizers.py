"""How each family of byte-level BPE vocabularies cuts text into words before merging.

A family is one row of `FAMILIES`: the regular expressions that its authors published in their
`tokenizer.json`, applied one after the other (each to the pieces that the ones before it left),
and what the family implies when the file does not say. The name is the value of
`tokenizer.ggml.pre`. Whatever no expression matches stays a piece of its own.
"""

from __future__ import annotations

from dataclasses import dataclass


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


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

_QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The letters that deepseek-llm keeps together: cased ones, as a table of an older Unicode version
# lists them (so neither \p{L} nor \p{Lu}\p{Ll}\p{Lt} is the same set).
_DEEPSEEK_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5"
    "\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
)
_DEEPSEEK_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

# Words begin a new piece where small letters are followed by capital ones.
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Kimi's: Chinese characters are words of their own, and no other word has any. The published
# expression takes them out of classes (`&&[^\p{Han}]`); here a class is what its complement leaves.
_HAN = (
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d\ufa70-\ufad9\U00016fe2\U00016fe3"
    "\U00016ff0-\U00016ff6\U00020000-\U0002a6df\U0002a700-\U0002b81e"
    "\U0002b820-\U0002cead\U0002ceb0-\U0002ebe0\U0002ebf0-\U0002ee5d"
    "\U0002f800-\U0002fa1d\U00030000-\U0003134a\U00031350-\U00033479"
)
_CAPITALS = rf"[^\p{{Ll}}\p{{N}}\p{{P}}\p{{S}}\p{{Z}}\p{{C}}{_HAN}]"
_SMALL = rf"[^\p{{Lu}}\p{{Lt}}\p{{N}}\p{{P}}\p{{S}}\p{{Z}}\p{{C}}{_HAN}]"
_KIMI = (
    rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?{_CAPITALS}*{_SMALL}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_CAPITALS}+{_SMALL}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# o200k, which gpt-oss has: as Tekken, but for endings such as 's, and digits by threes.
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Seed's: a run of punctuation does not take the line's end with it.
_SEED = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}"
    r"| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_DEEPSEEK_3 = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)

_DEFAULT_PUNCTUATION = r"[\p{P}\$\+<=>\^~\|]+"
_FALCON_PUNCTUATION = r"[\p{P}\$\+<=>\^~\|`]+"
_THREE_DIGITS = "[0-9][0-9][0-9]"

FAMILIES: tuple[PreTokenizer, ...] = (
    # Also what a byte-level vocabulary without `tokenizer.ggml.pre` gets, as in llama.cpp.
    PreTokenizer(
        names=("default",), splits=(_DEFAULT_PUNCTUATION, _GPT2, r"\p{N}+", _THREE_DIGITS)
    ),
    PreTokenizer(
        names=("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1"),
        splits=(_LLAMA3,),
        ignore_merges=True,
        add_bos=True,
    ),
    PreTokenizer(names=("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), splits=(_LLAMA3,)),
    PreTokenizer(
        names=("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"), splits=(_QWEN2,)
    ),
    PreTokenizer(names=("tekken",), splits=(_TEKKEN,), ignore_merges=True, add_bos=True),
    PreTokenizer(names=("kimi-k2",), splits=(_KIMI,)),
    PreTokenizer(names=("seed-coder",), splits=(_SEED,)),
    PreTokenizer(names=("deepseek-v3", "hunyuan-dense"), splits=_DEEPSEEK_3),
    PreTokenizer(names=("gpt-4o",), splits=(_O200K,)),
    PreTokenizer(names=("qwen35",), splits=(_QWEN35,)),
    PreTokenizer(
        names=("gpt-2", "mpt", "olmo", "exaone4", "jina-v2-es", "jina-v2-de", "modern-bert"),
        splits=(_GPT2,),
    ),
    PreTokenizer(
        names=("roberta-bpe", "jina-v1-en", "jina-v2-code"), splits=(_GPT2,), add_sep=True
    ),
    PreTokenizer(
        names=("deepseek-llm",),
        splits=(
            r"[\r\n]",
            rf"\s?[{_DEEPSEEK_LETTERS}]+",
            "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"\s+$",
            _DEEPSEEK_CJK,
            r"\p{N}+",
        ),
    ),
    PreTokenizer(
        names=("deepseek-coder",),
        splits=(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _DEEPSEEK_CJK, r"\p{N}"),
    ),
    PreTokenizer(names=("falcon",), splits=(_FALCON_PUNCTUATION, _GPT2, _THREE_DIGITS)),
    PreTokenizer(
        names=("starcoder", "refact", "command-r", "smollm", "exaone"), splits=(r"\p{N}", _GPT2)
    ),
)

BY_NAME: dict[str, PreTokenizer] = {name: family for family in FAMILIES for name in family.names}
