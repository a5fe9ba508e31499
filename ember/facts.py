"""The facts of the tables, one table a name: read from `data/facts.txt`, or worked out."""

from .word_lists import pairs

CAPITALS = pairs("facts", "capitals")

CONTINENTS = pairs("facts", "continents")
ELEMENTS = pairs("facts", "elements")
ELEMENT_NUMBERS = [(name, str(at + 1)) for at, (name, _) in enumerate(ELEMENTS)]
HEAVY = pairs("facts", "heavy")
OPPOSITES = pairs("facts", "opposites")
_known = {word for word, _ in OPPOSITES}
OPPOSITES += [(b, a) for a, b in OPPOSITES if b not in _known]  # both ways where it is clear
OPPOSITES = list(dict(reversed(OPPOSITES)).items())
PLURALS = pairs("facts", "plurals")
PAST = pairs("facts", "past")
COLOURS = pairs("facts", "colours")
MIXES = pairs("facts", "mixes")
YOUNG = pairs("facts", "young")
SOUNDS = pairs("facts", "sounds")
LEGS = pairs("facts", "legs")
SIDES = pairs("facts", "sides")
PLANETS = [
    (name, str(at + 1))
    for at, name in enumerate("Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split())
]
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
MONTH_LENGTHS = [
    (m, d) for m, d in zip(_MONTHS, "31 28 31 30 31 30 31 31 30 31 30 31".split(), strict=True)
]
MONTH_NUMBERS = [(m, str(at + 1)) for at, m in enumerate(_MONTHS)]
NEXT_LETTERS = [
    (a, b) for a, b in zip("abcdefghijklmnopqrstuvwxy", "bcdefghijklmnopqrstuvwxyz", strict=True)
]
PREVIOUS_LETTERS = [(b, a) for a, b in NEXT_LETTERS]
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def _in_words(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


NUMBER_WORDS = [(_in_words(number), str(number)) for number in range(100)]
NUMBER_WORDS += [("one hundred", "100"), ("one thousand", "1000")]
NUMBER_WORDS += [(f"{_SMALL[at]} hundred", f"{at}00") for at in range(2, 10)]
_ROMAN = [
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
]


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        while number >= value:
            text, number = text + letters, number - value
    return text


ROMAN = [(str(number), _roman(number)) for number in [*range(1, 51), 60, 70, 80, 90, 100]]
ROMAN += [("500", "D"), ("1000", "M")]
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NEXT_DAYS = [(day, _DAYS[(at + 1) % 7]) for at, day in enumerate(_DAYS)]
PREVIOUS_DAYS = [(b, a) for a, b in NEXT_DAYS]
NEXT_MONTHS = [(month, _MONTHS[(at + 1) % 12]) for at, month in enumerate(_MONTHS)]
PREVIOUS_MONTHS = [(b, a) for a, b in NEXT_MONTHS]
LANGUAGES = pairs("facts", "languages")
