"""Letters: spell a word, turn it round, count, join, sort. Always spell out first, then answer."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .words import any_word

FAMILY = "letters"
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]


def word(draw: Draw, longest: int = 9) -> str:
    return draw.operands(lambda rng: any_word(rng, longest), lambda word: ("word", word))


def typed(draw: Draw, word: str) -> str:
    """Now and then with a capital; the reply is in small letters all the same."""
    chance = draw.rng.random()
    return word.capitalize() if chance < 0.08 else word.upper() if chance < 0.1 else word


def spelled(word: str) -> str:
    return "-".join(word)


_SPELL = ["Spell {w}.", "Spell the word {w}.", "How do you spell {w}?", "Spell out {w}.",
          "Can you spell {w}?", "What are the letters of {w}?", "Give me the letters in {w}.",
          "spell {w}", "Please spell \"{w}\".", "Write {w} letter by letter."]


def spell(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_SPELL), w=typed(draw, w))
    return question_and_answer(FAMILY, "spell", question, spelled(w))


_BACKWARDS = ["Spell {w} backwards.", "Reverse the word {w}.", "What is {w} backwards?",
              "Write {w} backwards.", "Reverse {w}.", "Turn {w} around.", "{w} backwards",
              "Can you reverse the letters of {w}?", "Say {w} backwards.", "Reverse \"{w}\"."]


def reply_backwards(w: str) -> str:
    return f"{spelled(w)}, backwards {spelled(w[::-1])}: {w[::-1]}"


def backwards(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_BACKWARDS), w=typed(draw, w))
    return question_and_answer(FAMILY, "backwards", question, reply_backwards(w))


_LENGTH = ["How many letters does {w} have?", "How many letters are in {w}?",
           "How long is the word {w}?",
           "Count the letters in {w}.", "What is the length of {w}?", "How many letters in {w}?",
           "Number of letters in {w}?"]


def reply_length(w: str) -> str:
    return f"{spelled(w)}: {len(w)} letters."


def length(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_LENGTH), w=typed(draw, w))
    return question_and_answer(FAMILY, "length", question, reply_length(w))


_COUNT = ["How many {l}'s are in {w}?", "How often does {l} appear in {w}?",
          "Count the {l}s in {w}.",
          "How many times does the letter {l} occur in {w}?", "How many {l} in {w}?",
          "How many times is {l} in {w}?", "Count the letter {l} in the word {w}."]


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


_NTH = ["What is the {n} letter of {w}?", "Which letter is {n} in {w}?", "{n} letter of {w}",
        "Give me the {n} letter of {w}.", "Tell me the {n} letter in the word {w}."]


def nth(draw: Draw) -> Dialogue:
    w = word(draw)
    at = draw.rng.choice((0, len(w) - 1, draw.rng.randrange(len(w))))
    last = at == len(w) - 1 and draw.rng.random() < 0.6
    name = "last" if last else ORDINALS[at]
    question = ask(draw.rng, draw.rng.choice(_NTH), w=typed(draw, w), n=name)
    answer = f"{spelled(w)}: the {name} letter is {w[at]}."
    return question_and_answer(FAMILY, "nth letter", question, answer)


_JOIN = ["Join these letters: {s}", "What word is {s}?", "Which word do the letters {s} make?",
         "Put {s} together.", "Join {s}.", "What does {s} spell?", "Make a word of {s}."]


def join(draw: Draw) -> Dialogue:
    w = word(draw)
    separator = draw.rng.choice((" ", "-", ", ", " "))
    question = ask(draw.rng, draw.rng.choice(_JOIN), s=separator.join(w))
    return question_and_answer(FAMILY, "join", question, w)


_CAPITALS = ["Write {w} in capital letters.", "Put {w} in upper case.", "Make {w} uppercase.",
             "{w} in capitals", "How does {w} look in capital letters?", "Uppercase {w}."]


def capitals(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_CAPITALS), keep_case=True, w=w)
    answer = f"{spelled(w.upper())}: {w.upper()}"
    return question_and_answer(FAMILY, "capitals", question, answer)


_SORT = ["Sort these words: {items}", "Sort alphabetically: {items}",
         "Put {items} in alphabetical order.",
         "Order these words by the alphabet: {items}", "Sort {items} from a to z.",
         "Alphabetical order: {items}"]


def sort_words(draw: Draw) -> Dialogue:
    def make(rng):
        words = {any_word(rng, 7) for _ in range(rng.randint(3, 6))}
        return rng.sample(sorted(words), len(words))

    items = draw.operands(make, lambda words: ("sort", *sorted(words)))
    separator = draw.rng.choice((", ", ", ", " "))
    question = ask(draw.rng, draw.rng.choice(_SORT), items=separator.join(items))
    return question_and_answer(FAMILY, "sort words", question, ", ".join(sorted(items)))


_STARTS = ["Does {w} start with {l}?", "Does the word {w} begin with {l}?",
           "Is {l} the first letter of {w}?"]
_HAS = ["Does {w} contain the letter {l}?", "Is there a {l} in {w}?", "Does {w} have a {l} in it?"]


def yes_or_no(draw: Draw) -> Dialogue:
    w = word(draw)
    letter = draw.rng.choice(w[0] * 2 + w + "abcdefghijklmnopqrstuvwxyz"[: len(w)])
    starts = draw.rng.random() < 0.5
    yes = w[0] == letter if starts else letter in w
    question = ask(draw.rng, draw.rng.choice(_STARTS if starts else _HAS), w=typed(draw, w),
                   l=letter)
    answer = f"{spelled(w)}: {'yes' if yes else 'no'}."
    return question_and_answer(FAMILY, "yes or no", question, answer)


TASKS = [(spell, 4), (backwards, 5), (length, 3), (count, 3), (nth, 3), (join, 4), (capitals, 2),
         (sort_words, 4), (yes_or_no, 1.5)]
