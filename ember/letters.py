"""Letters: spell a word, turn it round, count, join, sort. Always spell out first, then answer."""

from .arithmetic import listed
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .word_lists import lines
from .words import any_word

FAMILY = "letters"
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]


def word(draw: Draw, longest: int = 0) -> str:
    """To nine letters; now and then a longer one in training, which nothing promises."""
    if not longest:
        longest = 12 if not draw.held_out and draw.rng.random() < 0.06 else 9
    return draw.operands(lambda rng: any_word(rng, longest), lambda word: ("word", word))


def typed(draw: Draw, word: str) -> str:
    """Now and then with a capital or in quotes; the reply is in small letters all the same."""
    chance = draw.rng.random()
    word = word.capitalize() if chance < 0.08 else word.upper() if chance < 0.1 else word
    if draw.rng.random() < 0.1:
        word = draw.rng.choice(("'{}'", '"{}"', "“{}”", "*{}*")).format(word)
    return word


def spelled(word: str) -> str:
    return "-".join(word)


_SPELL = lines("letters", "spell")


def spell(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_SPELL), w=typed(draw, w))
    return question_and_answer(FAMILY, "spell", question, spelled(w))


_BACKWARDS = lines("letters", "backwards")


def reply_backwards(w: str) -> str:
    return f"{spelled(w)}, backwards {spelled(w[::-1])}: {w[::-1]}"


def backwards(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_BACKWARDS), w=typed(draw, w))
    return question_and_answer(FAMILY, "backwards", question, reply_backwards(w))


_LENGTH = lines("letters", "length")


def reply_length(w: str) -> str:
    return f"{spelled(w)}: {len(w)} letters."


def length(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_LENGTH), w=typed(draw, w))
    return question_and_answer(FAMILY, "length", question, reply_length(w))


_COUNT = lines("letters", "count")


def count(draw: Draw) -> Dialogue:
    w = word(draw)
    if draw.rng.random() < 0.75:
        letter = draw.rng.choice(w)
    else:
        letter = draw.rng.choice("abcdefghijklmnopqrstuvwxyz")
    n_times = w.count(letter)
    times = "once" if n_times == 1 else "never" if n_times == 0 else f"{n_times} times"
    question = ask(draw.rng, draw.rng.choice(_COUNT), w=typed(draw, w), l=letter)
    return question_and_answer(FAMILY, "count", question, f"{spelled(w)}: {letter} {times}.")


_NTH = lines("letters", "nth")
_FIRST = lines("letters", "first")
_LAST = lines("letters", "last")
_SHORT = "1st 2nd 3rd 4th 5th 6th 7th 8th 9th".split()


def nth(draw: Draw) -> Dialogue:
    w = word(draw, 9)
    at = draw.rng.choice((0, len(w) - 1, draw.rng.randrange(len(w))))
    last = at == len(w) - 1 and draw.rng.random() < 0.6
    name = "last" if last else ORDINALS[at]
    shown = name if last or draw.rng.random() < 0.7 else _SHORT[at]
    phrasings = _NTH
    if name in ("first", "last") and draw.rng.random() < 0.45:
        phrasings = _FIRST if name == "first" else _LAST
    question = ask(draw.rng, draw.rng.choice(phrasings), w=typed(draw, w), n=shown)
    answer = f"{spelled(w)}: the {name} letter is {w[at]}."
    return question_and_answer(FAMILY, "nth letter", question, answer)


_JOIN = lines("letters", "join")


def join(draw: Draw) -> Dialogue:
    w = word(draw)
    separator = draw.rng.choice((" ", "-", ", ", " ", " - ", ".", " + "))
    question = ask(draw.rng, draw.rng.choice(_JOIN), s=separator.join(w))
    return question_and_answer(FAMILY, "join", question, w)


_CAPITALS = lines("letters", "capitals")


def capitals(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_CAPITALS), keep_case=True, w=w)
    answer = f"{spelled(w.upper())}: {w.upper()}"
    return question_and_answer(FAMILY, "capitals", question, answer)


_SORT = lines("letters", "sort")


def sort_words(draw: Draw) -> Dialogue:
    def make(rng):
        words = {any_word(rng, 7) for _ in range(rng.randint(3, 6))}
        return rng.sample(sorted(words), len(words))

    items = draw.operands(make, lambda words: ("sort", *sorted(words)))
    question = ask(draw.rng, draw.rng.choice(_SORT), items=listed(draw, items))
    return question_and_answer(FAMILY, "sort words", question, ", ".join(sorted(items)))


_STARTS = lines("letters", "starts")
_HAS = lines("letters", "has")


def yes_or_no(draw: Draw) -> Dialogue:
    w = word(draw)
    letter = draw.rng.choice(w[0] * 2 + w + "abcdefghijklmnopqrstuvwxyz"[: len(w)])
    starts = draw.rng.random() < 0.5
    yes = w[0] == letter if starts else letter in w
    question = ask(
        draw.rng, draw.rng.choice(_STARTS if starts else _HAS), w=typed(draw, w), l=letter
    )
    answer = f"{spelled(w)}: {'yes' if yes else 'no'}."
    return question_and_answer(FAMILY, "yes or no", question, answer)


TASKS = [
    (spell, 4),
    (backwards, 5),
    (length, 3),
    (count, 3),
    (nth, 3),
    (join, 4),
    (capitals, 2),
    (sort_words, 4),
    (yes_or_no, 1.5),
]
