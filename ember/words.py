"""Words to spell, and invented words and names, made from syllables."""

import random

from .word_lists import lines

COMMON = [word for word in lines("words", "common") if len(word) <= 9]

_ONSETS = (
    "b c d f g h j k l m n p r s t v w y z bl br ch cl cr dr fl fr gl gr kn pl pr qu sc sh "
    "sk sl sm sn sp st str sw th tr tw wh"
).split() + [""]
_VOWELS = "a e i o u a e i o u ai ea ee ie oa oo ou ay ey".split()
_CODAS = (
    "b ck d f g l ll m n nd ng nk nt p r rd rk rm rn rt s sh sk ss st t th x ft lt mp "
    "lk ct ve ze le er ion ing ed"
).split() + [""] * 12
_LETTERS = "eeeeettttaaaaooooiiiinnnnssshhhrrrdddlllccuummwwffggyyppbbvkjxqz"


def pseudo_word(rng: random.Random, longest: int = 9) -> str:
    """A word nobody knows: mostly syllables, now and then plain letters."""
    while True:
        if rng.random() < 0.2:
            return "".join(rng.choices(_LETTERS, k=rng.randint(3, min(8, longest))))
        word = ""
        for _ in range(rng.choice((1, 1, 2, 2, 2, 3))):
            word += rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
        if 3 <= len(word) <= longest:
            return word


FIRST_NAMES = lines("words", "first_names")


# Every word of three to twelve letters in the lists and in the programs, as they were when the
# model was trained: what may become a token is a word to spell. A word more changes what every
# seed draws.
LEXICON = lines("lexicon", "lexicon")


def _compound(rng: random.Random, longest: int) -> str:
    """A known word with something before or after it: the letters of its tokens are learned."""
    while True:
        known, extra = rng.choice(LEXICON), rng.choice(_CODAS + _ONSETS + _VOWELS + LEXICON)
        word = known + extra if rng.random() < 0.75 else extra + known
        if len(word) <= longest and word != known:
            return word


def _part(rng: random.Random, longest: int) -> str:
    """A piece of a known word: tokens that only stand inside of words are spelled as well."""
    word = rng.choice(LEXICON)
    at = rng.randint(0, len(word) - 3)
    return word[at : at + rng.randint(3, longest)]


def any_word(rng: random.Random, longest: int = 9) -> str:
    chance = rng.random()
    if chance < 0.3:
        while len(word := rng.choice(LEXICON)) > longest:
            pass
        return word
    if chance < 0.36:
        return _part(rng, longest)
    return _compound(rng, longest) if chance < 0.58 else pseudo_word(rng, longest)


def first_name(rng: random.Random) -> str:
    return rng.choice(FIRST_NAMES) if rng.random() < 0.5 else pseudo_word(rng, 7).capitalize()


def full_name(rng: random.Random) -> str:
    name = first_name(rng)
    return f"{name} {pseudo_word(rng, 8).capitalize()}" if rng.random() < 0.5 else name


def place(rng: random.Random) -> str:
    endings = ("", "", "", "ton", "ville", "berg", "ford", "stad", "moor", "field")
    return (pseudo_word(rng, 6) + rng.choice(endings)).capitalize()
