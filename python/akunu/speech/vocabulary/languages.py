"""Languages that Whisper knows: their codes, and the English names that OpenAI's API has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from akunu.common.quoting import shorten
from akunu.errors import ArgumentError

_TABLE: Final = """
af afrikaans, am amharic, ar arabic, as assamese, az azerbaijani, ba bashkir, be belarusian,
bg bulgarian, bn bengali, bo tibetan, br breton, bs bosnian, ca catalan, cs czech, cy welsh,
da danish, de german, el greek, en english, es spanish, et estonian, eu basque, fa persian,
fi finnish, fo faroese, fr french, gl galician, gu gujarati, ha hausa, haw hawaiian, he hebrew,
hi hindi, hr croatian, ht haitian creole, hu hungarian, hy armenian, id indonesian, is icelandic,
it italian, ja japanese, jw javanese, ka georgian, kk kazakh, km khmer, kn kannada, ko korean,
la latin, lb luxembourgish, ln lingala, lo lao, lt lithuanian, lv latvian, mg malagasy, mi maori,
mk macedonian, ml malayalam, mn mongolian, mr marathi, ms malay, mt maltese, my myanmar, ne nepali,
nl dutch, nn nynorsk, no norwegian, oc occitan, pa punjabi, pl polish, ps pashto, pt portuguese,
ro romanian, ru russian, sa sanskrit, sd sindhi, si sinhala, sk slovak, sl slovenian, sn shona,
so somali, sq albanian, sr serbian, su sundanese, sv swedish, sw swahili, ta tamil, te telugu,
tg tajik, th thai, tk turkmen, tl tagalog, tr turkish, tt tatar, uk ukrainian, ur urdu, uz uzbek,
vi vietnamese, yi yiddish, yo yoruba, yue cantonese, zh chinese
"""
LANGUAGE_NAMES: Final[Mapping[str, str]] = {
    code: name for code, _, name in (each.strip().partition(" ") for each in _TABLE.split(","))
}
"""English names by code."""
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "burmese": "my",
    "castilian": "es",
    "flemish": "nl",
    "haitian": "ht",
    "letzeburgesch": "lb",
    "mandarin": "zh",
    "moldavian": "ro",
    "moldovan": "ro",
    "panjabi": "pa",
    "pushto": "ps",
    "sinhalese": "si",
    "valencian": "ca",
}
_CODES: Final = {name: code for code, name in LANGUAGE_NAMES.items()} | dict(_OTHER_NAMES)


def language_code(language: str) -> str:
    """Return the code of a language, of which a code or an English name is passed.

    Raises ArgumentError for anything else.

    >>> language_code("de"), language_code("German")
    ('de', 'de')
    """
    given = language.strip().lower()
    code = _CODES.get(given, given)
    if code not in LANGUAGE_NAMES:
        raise ArgumentError(
            f"language is {shorten(language)}; it must be the code or the English name of a "
            "language that Whisper knows: de, or german"
        )
    return code
